/* Who waited for a CPU that somebody else had: what they weigh against each other has been tried.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_WAIT_GRAPH_H
#define STEALSCOPE_COMPARE_WHATIF_WAIT_GRAPH_H

#include "base/map.h"

struct contests { struct map ns; };  /* by two kins, the smaller number first */

void contests_add(struct contests *c, uint32_t a, uint32_t b, int64_t ns);
void contests_release(struct contests *c);

struct contest { uint32_t a, b; int64_t ns; };
/* Those of `then` that last at least `matters` ns, whose two no chain of contests of `tried` ns links in `was`: the longest
 * first.  There are `kins` numbers.  The caller frees *out; returns how many there are. */
size_t contests_untried(const struct contests *was, const struct contests *then, int64_t tried, int64_t matters,
                        uint32_t kins, struct contest **out);

#endif
