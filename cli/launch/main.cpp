// gearshift_launch: the child process in which a kernel is launched for the first time. Started by the library.
#include "gearshift/pipeline.h"

int main(int argc, char** argv) { return gearshift::launch_program(argc, argv); }
