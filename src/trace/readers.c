/* Table of the readers. The first reader in the table that claims a file reads it. */
#include "trace/ctf/ctf.h"
#include "trace/live/live.h"
#include "trace/pages/pages.h"
#include "trace/perf/perf.h"
#include "trace/perfetto/perfetto.h"
#include "trace/reader.h"
#include "trace/text/text_reader.h"
#include "trace/tracecmd/tracecmd.h"
#include "trace/xen/xen.h"

const struct trace_reader *const readers[] = { &ctf_reader, &tracecmd_reader, &pages_reader, &perf_reader, &xen_reader,
	&perfetto_reader, &text_reader, NULL };
