/* A recording prepared for several what-if queries: demand and scheduler parameters are computed once. Private to
 * compare/. */
#pragma once

#include "compare/compare.h"

struct whatif_base;

/* Prepares the window. Notes skipped requests. Returns NULL with *err if the recording cannot be replayed. */
struct whatif_base *whatif_open(const struct diff_side *side, struct notes *notes, struct error *err);
/* Like whatif_of(), with a prepared window; earlier queries have no effect. requests: report latencies, too. */
int whatif_query(struct whatif_base *b, const struct whatif_change *change, size_t changes, bool requests,
                 struct whatif *out, struct notes *notes, struct error *err);
void whatif_close(struct whatif_base *b);  /* NULL is allowed */
