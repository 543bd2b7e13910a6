/* Reads CTF with libbabeltrace2. The library trusts its input: damage makes it abort, and a file that shrinks during
 * reading kills it with SIGBUS. So it only runs in child processes. */
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "trace/ctf/ctf_trace_set.h"
#include "trace/internal.h"
#include "trace/reader.h"

#define MAX_DAMAGE 100  /* maximum number of damaged packets per stream; then the rest of the stream is skipped */

/* Decoding state of a child process. */
struct babeltrace_worker {
	struct ctf_trace_set *set;
	struct decoder *decoder;
	size_t *port;  /* decoder port of each stream; NO_PORT: the file of the stream was deleted after the trace was opened */
};
#define NO_PORT SIZE_MAX

static enum claim babeltrace_claims(const char *name, const unsigned char *head, size_t len)
{
	static const unsigned char packetized_le[] = { 0x57, 0x1d, 0xd1, 0x75 };
	static const unsigned char packetized_be[] = { 0x75, 0xd1, 0x1d, 0x57 };
	if (strcmp(name, "metadata") != 0 || len < 6)
		return CLAIM_NONE;
	if (!memcmp(head, packetized_le, 4) || !memcmp(head, packetized_be, 4) || !memcmp(head, "/* CTF", 6) || *head == 0x1e)
		return CLAIM_DIR;
	return CLAIM_NONE;
}

static uint64_t dir_bytes(const char *path)
{
	char *const paths[] = { (char *)path, NULL };
	uint64_t bytes = 0;
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *e; fts && (e = fts_read(fts));)
		if (e->fts_info == FTS_F)
			bytes += (uint64_t)e->fts_statp->st_size;
	if (fts)
		fts_close(fts);
	return bytes;
}

static int babeltrace_describe(struct trace_location *p, struct error *err)
{
	p->bytes = dir_bytes(p->path);
	return metadata_read(p->path, &p->meta, err);
}

/* ---- opening */

struct file_list { struct stream_file **file; size_t len, cap; };

static int run_find_packets(void *arg, size_t i)
{
	const struct file_list *f = arg;
	stream_file_find_packets(f->file[i]);
	return 0;
}

static void find_all_packets(struct ctf_trace_set *g, unsigned workers)
{
	struct file_list all = { 0 };
	for (size_t d = 0; d < g->dirs; d++)
		for (size_t k = 0; k < g->files[d]; k++)
			*ARRAY_PUSH(all.file, all.len, all.cap) = &g->file[d][k];
	parallel_run(&(struct parallel){ .workers = workers, .task = run_find_packets, .arg = &all }, all.len);
	free(all.file);
}

static void add_source_stream(struct source *s, const struct ctf_port *p)
{
	struct source_stream *to = ARRAY_PUSH(s->stream, s->streams, s->streams_cap);
	*to = (struct source_stream){ .name = mem_dup(p->file_name ? p->file_name : p->name), .bytes = p->bytes };
	for (size_t i = 1; p->file && i < p->file->packets; i++)
		if (packets_may_cut(p->file, i))
			*ARRAY_PUSH(to->cut, to->cuts, to->cuts_cap) = (struct stream_cut){ i, p->file->packet[i].offset };
}

static int babeltrace_open(struct source *s, struct error *err)
{
	struct ctf_trace_set *g = s->data = mem_new(1, sizeof *g);
	*g = (struct ctf_trace_set){ .mapping = &s->mapping, .notes = &s->notes, .bytes = s->bytes };
	g->temp_dir = temp_dir_make(s->options->spill_dir, err);
	s->dir = g->temp_dir;
	if (!g->temp_dir)
		return -1;
	g->dir = mem_new(s->locations, sizeof *g->dir);
	for (; g->dirs < s->locations; g->dirs++)
		g->dir[g->dirs] = mem_dup(s->location[g->dirs]->path);
	for (size_t i = 0; i < g->dirs; i++)
		if (missing_streams(g->dir[i], g->notes, err))
			return -1;
	if (ctf_trace_set_list(g, err))
		return -1;
	find_all_packets(g, s->workers);
	if (ctf_trace_set_open(g, err))
		return -1;
	for (size_t i = 0; i < g->ports; i++)
		add_source_stream(s, &g->port[i]);
	return 0;
}

static void babeltrace_close(struct source *s)
{
	if (s->data)
		ctf_trace_set_release(s->data);
	free(s->data);
}

/* ---- decoding */

static size_t find_port(const struct decoder *d, const char *name)
{
	for (size_t i = 0; i < decoder_ports(d); i++)
		if (strcmp(decoder_port_name(d, i), name) == 0)
			return i;
	return NO_PORT;
}

static void *babeltrace_enter(struct source *s, struct error *err)
{
	struct ctf_trace_set *g = s->data;
	struct decoder *d = ctf_trace_set_decoder(g, err);
	if (!d)
		return NULL;
	struct babeltrace_worker *w = mem_new(1, sizeof *w);
	*w = (struct babeltrace_worker){ g, d, mem_new(g->ports + 1, sizeof *w->port) };
	for (size_t i = 0; i < g->ports; i++)
		w->port[i] = find_port(d, g->port[i].name);
	return w;
}

static void babeltrace_leave(void *state)
{
	struct babeltrace_worker *w = state;
	decoder_close(w->decoder);
	free(w->port);
	free(w);
}

/* Decodes exactly the packets of *w, from a port with known packets. A subset that cannot be created or opened sets
 * progress->has_unexpected and is no error. */
static int decode_subset(struct ctf_trace_set *g, const struct stream_file *f, struct decode_request *w,
                         struct event_sink *out, struct decode_progress *progress)
{
	struct ctf_subset v;
	const size_t first = (size_t)(w->packet - f->packet);
	w->port = 0;
	w->must_match = true;
	w->stop_after = false;
	w->previous = first ? w->packet - 1 : NULL;
	*progress = (struct decode_progress){ .has_unexpected = true };
	if (ctf_subset_open(&v, f->dir, g->temp_dir, NULL))
		return 0;
	int status = 0;
	struct decoder *d = ctf_subset_add(&v, f, first, first + w->packets, NULL) ? NULL :
		decoder_open(g->mapping, &v.dir, 1, NULL);
	if (d && decoder_ports(d) == 1)
		status = decoder_run(d, w, out, progress);
	decoder_close(d);
	ctf_subset_close(&v);
	return status;
}

/* Moves *w after the damaged packet at which decoding stopped. Returns false if nothing readable follows. */
static bool skip_damaged_packet(struct decode_request *w, const struct decode_progress *progress, unsigned *n_damaged)
{
	const uint64_t used = progress->packets +
	                      !progress->in_packet; /* a packet with a damaged header is not counted as begun */
	if (!w->packet || used >= w->packets || ++*n_damaged > MAX_DAMAGE)
		return false;
	w->packet += used;
	w->packets -= used;
	w->bytes += progress->bytes;
	w->lost_from = progress->last;
	return true;
}

static int babeltrace_decode(void *state, const struct stream_part *s, struct event_sink *out)
{
	struct babeltrace_worker *worker = state;
	const struct ctf_port *p = &worker->set->port[s->stream];
	const struct stream_file *f = p->file;
	if (worker->port[s->stream] == NO_PORT)
		return event_sink_report_damage(out, "the file of the stream was deleted during reading", false);
	struct decode_request w = { .port = worker->port[s->stream], .lost_first = p->lost_first, .lost_from = INT64_MIN,
		.max_events = 8 * worker->set->bytes };
	if (f) {
		w.packet = f->packet + s->from;
		w.must_match = w.stop_after = s->to < f->packets;
		w.packets = (w.stop_after ? s->to : f->packets) - s->from;
	}
	unsigned n_damaged = 0;
	for (bool first = true, more = true; more; first = false) {
		struct decode_progress progress;
		int status = first && !s->from ? decoder_run(worker->decoder, &w, out, &progress) :
			decode_subset(worker->set, f, &w, out, &progress);
		if (!status && progress.has_unexpected)
			return first ? DECODE_WHOLE : 0;  /* keeps the events before the damage */
		more = !status && progress.error_text && skip_damaged_packet(&w, &progress, &n_damaged);
		if (!status && progress.error_text)
			status = event_sink_report_damage(out, progress.error_text, more);
		free(progress.error_text);
		if (status)
			return -1;
	}
	return 0;
}

#define CRASHED "libbabeltrace2 crashed or hung while reading it"
const struct trace_reader babeltrace_reader = {
	.name = "libbabeltrace2", .isolated = true, .silence_limit = 60, .crash_message = CRASHED, .silence_message = CRASHED,
	.remedy = "copy the trace again", .unit = "packet",
	.claims = babeltrace_claims, .describe = babeltrace_describe, .open = babeltrace_open, .enter = babeltrace_enter,
	.decode = babeltrace_decode, .leave = babeltrace_leave, .close = babeltrace_close,
};
