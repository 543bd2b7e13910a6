/* Pieces, in order of time, gathered into a flow.  Private to query/.
 *
 * Equal neighbours are joined before they count.  Memory: 24 bytes per interval that is kept, 16 per cell; what grows with
 * the trace and does not fit is an error. */
#ifndef STEALSCOPE_QUERY_FLOW_BUILDER_H
#define STEALSCOPE_QUERY_FLOW_BUILDER_H

#include "query/culprit.h"
#include "query/resolver.h"

struct gather {
	struct flow flow;               /* entry[i] is that of party i, as long as pieces come */
	struct flow_options options;
	int64_t window_start, window_end;  /* what the columns are parts of */
	bool of_a_part;                 /* the first interval may join to what stands before it: it is held back */
	bool has_open, has_first, too_many;
	struct flow_interval open, first;
	struct piece last;              /* of `open` */
	struct parties parties;
	size_t interval_cap, entry_cap, cell_cap, latest_cap;
	uint32_t *latest;               /* by entry: its latest cell, + 1 */
	unsigned column;                /* of the latest booking; UINT_MAX before */
	int64_t column_end;
	struct error *err;
};

void gather_init(struct gather *g, int64_t from, int64_t to, const struct flow_options *options, bool of_a_part,
                 struct error *err);
void gather_release(struct gather *g);
int gather_piece(struct gather *g, const struct piece *p, bool lost, int64_t start, int64_t end);
/* Appends a part.  id: the names of the part in the numbers of g. */
int gather_part(struct gather *g, const struct gather *part, const uint32_t *id);
/* The last piece is there: entries in order, with their shares. */
int gather_finish(struct gather *g);

#endif
