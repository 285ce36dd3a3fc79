// The smallest program that uses an installed Gearshift: plans a model and prints how many layers it has.
#include <gearshift/pipeline.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto plan = gearshift::plan_model(argv[1], {});
  if (!plan) return std::fprintf(stderr, "%s\n", plan.error().message().c_str()), 1;
  return std::printf("%zu layers\n", plan->layers.size()), 0;
}
