/* Builds a flow from resolutions in order of time. Private to query/.
 *
 * Equal neighbours are joined before they are counted. Memory: 24 bytes per stored interval, 16 per cell. Reports an
 * error if lists that grow with the trace do not fit. */
#pragma once

#include "query/culprit.h"
#include "query/resolver.h"

struct flow_builder {
	struct flow flow;               /* entry[i] is the entry of actor i until flow_builder_finish() */
	struct flow_options options;
	int64_t window_start, window_end;  /* this window is divided into the columns */
	bool is_part;                 /* the builder covers a part of the window: its first interval may continue the last
	                               * interval of the previous part, so it is held back in `first` */
	bool has_open, has_first, too_many;
	struct flow_interval open, first;
	struct resolution last;              /* of `open` */
	struct actors actors;
	size_t interval_cap, entry_cap, cell_cap, latest_cap, cpu_cap;
	struct map cpu_of;              /* entry << 16 | CPU: index into flow.cpu */
	uint32_t *latest;               /* by entry: index + 1 of its latest cell; 0: none */
	unsigned column;                /* column of the latest addition; UINT_MAX: none yet */
	int64_t column_end;
	struct error *err;
};

void flow_builder_init(struct flow_builder *g, int64_t from, int64_t to, const struct flow_options *options, bool is_part,
                       struct error *err);
void flow_builder_release(struct flow_builder *g);
int flow_builder_add(struct flow_builder *g, const struct resolution *p, bool lost, int64_t start, int64_t end);
/* Appends a part. id[name of the part]: the same name in g. */
int flow_builder_append(struct flow_builder *g, const struct flow_builder *part, const uint32_t *id);
/* Completes the flow: sorts the entries and computes their shares. */
int flow_builder_finish(struct flow_builder *g);
