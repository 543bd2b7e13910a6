/* Wait graph: which threads competed for CPUs, and how long. The relative weights of threads that competed in the
 * recording were observed. Private to compare/. */
#pragma once

#include "base/map.h"

struct wait_graph { struct map ns; };  /* ns waited, by pair of name numbers: the smaller one << 32 | the larger one */

void wait_graph_add(struct wait_graph *g, uint32_t a, uint32_t b, int64_t ns);
void wait_graph_release(struct wait_graph *g);

struct wait_edge { uint32_t a, b; int64_t ns; };
/* Lists the pairs of names that wait for each other for at least `relevant_ns` in `changed`, but are not connected by
 * pairs with at least `tested_ns` in `recorded`; longest wait first. name_groups: name count. The caller frees
 * *out. Returns the pair count. */
size_t wait_graph_untested(const struct wait_graph *recorded, const struct wait_graph *changed, int64_t tested_ns,
                           int64_t relevant_ns, uint32_t name_groups, struct wait_edge **out);
