/* Speaks no version that Gearshift speaks. */
#include <stddef.h>

#include "gearshift/gearshift_plugin.h"

const gearshift_plugin_table* gearshift_plugin(int abi) { return abi < 0 ? (const gearshift_plugin_table*)"" : NULL; }
