/* A recording of which several changes are asked: what it wanted and by which rules it ran is found once.  Private to
 * compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_WHATIF_H
#define STEALSCOPE_COMPARE_WHATIF_WHATIF_H

#include "compare/compare.h"

struct whatif_base;

/* NULL and *err: it cannot be replayed.  Notes which requests are left out. */
struct whatif_base *whatif_open(const struct diff_side *side, struct notes *notes, struct error *err);
/* As whatif_of(); each time as if it were the first. */
int whatif_ask(struct whatif_base *b, const struct whatif_change *change, size_t changes, bool requests, struct whatif *out,
               struct notes *notes, struct error *err);
void whatif_close(struct whatif_base *b);  /* NULL is allowed */

#endif
