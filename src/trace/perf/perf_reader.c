/* Reader of perf files: operations of struct trace_reader in the main process. */
#include <sys/stat.h>

#include "base/base.h"
#include "trace/perf/perf.h"

/* Adds the sizes of the files data.0, data.1, ... */
static void add_sizes(struct perf_file *f)
{
	struct stat st;
	for (unsigned i = 0; f->is_dir; i++) {
		char *path = mem_printf("%s.%u", f->path, i);
		const bool is_there = stat(path, &st) == 0 && S_ISREG(st.st_mode);
		free(path);
		if (!is_there)
			break;
		f->bytes += (uint64_t)st.st_size;
	}
}

static int describe_file(struct trace_location *p, struct error *err)
{
	struct perf_file *f = p->data = perf_file_read(p->path, err);
	if (!f)
		return -1;
	add_sizes(f);
	p->bytes = f->bytes;
	if (f->clock_real && f->clock_real < INT64_MAX / 2 && f->clock_count < INT64_MAX / 2)
		p->scale = (struct clock_scale){ .count = f->clock_count, .ns = (int64_t)f->clock_real,
			.millihertz = CLOCK_SCALE_NS };
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", f->hostname);
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "perf%s%.60s, clock %s", *f->release ? " " : "", f->release,
	         f->clock == PERF_CLOCK_DEFAULT && f->is_tsc ? "TSC" : perf_clock_name(f->clock));
	p->saved_names = f->names;
	p->saved_bytes = f->names_len;
	f->names = NULL;
	return 0;
}

static void forget_file(struct trace_location *p)
{
	perf_file_free(p->data);
	p->data = NULL;
}

static void add_notes(const struct source *s, const char *machine, struct notes *notes)
{
	const struct perf_file *f = s->location[0]->data;
	if (f->clock == PERF_CLOCK_DEFAULT && !f->is_tsc)
		note_add(notes, CLOCK_PERF, machine);
	if (s->truncation)
		note_add(notes, LIVE_TRUNCATED, machine, s->location[0]->path, s->truncation);
}

const struct trace_reader perf_reader = {
	.name = "perf",
	IN_CHILD("libtraceevent crashed or hung while reading it"),
	.is_whole_machine = true,
	.finds_streams = true,
	.remedy = "copy the file again after perf has finished",
	.unit = "record",
	.claims = perf_claims,
	.describe = describe_file,
	.forget = forget_file,
	.enter = perf_enter,
	.decode = perf_decode,
	.add_notes = add_notes,
};
