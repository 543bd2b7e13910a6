#include "base/schema.h"

#define ROW(code, field, name, type) [code] = { name, SCHEMA_##type },
const struct schema_attr machine_schema[MACHINE_ATTRS] = { MACHINE_ATTRIBUTES(ROW) };
const struct schema_attr cpu_schema[CPU_ATTRS] = { CPU_ATTRIBUTES(ROW) };
const struct schema_attr thread_schema[THREAD_ATTRS] = { THREAD_ATTRIBUTES(ROW) };
const struct schema_attr request_schema[REQUEST_ATTRS] = { REQUEST_ATTRIBUTES(ROW) };
const struct schema_attr group_schema[GROUP_ATTRS] = { GROUP_ATTRIBUTES(ROW) };
