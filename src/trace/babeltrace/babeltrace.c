/* CTF through libbabeltrace2, which trusts what it reads: it aborts on damage, and dies when a file gets shorter. */
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "trace/ctf/ctf_trace_set.h"
#include "trace/internal.h"
#include "trace/reader.h"

#define MOST_DAMAGE 100  /* damaged packets of a stream after which the rest is given up */

/* What a child process decodes with. */
struct worker {
	struct group *group;
	struct decoder *decoder;
	size_t *port;  /* of each stream, in the decoder; NONE: it has gone since the trace was looked at */
};
#define NONE SIZE_MAX

static enum claim claims(const char *name, const unsigned char *head, size_t len)
{
	static const unsigned char packetized_le[] = { 0x57, 0x1d, 0xd1, 0x75 };
	static const unsigned char packetized_be[] = { 0x75, 0xd1, 0x1d, 0x57 };
	if (strcmp(name, "metadata") != 0 || len < 6)
		return CLAIM_NONE;
	if (!memcmp(head, packetized_le, 4) || !memcmp(head, packetized_be, 4) || !memcmp(head, "/* CTF", 6) || *head == 0x1e)
		return CLAIM_FOLDER;
	return CLAIM_NONE;
}

static uint64_t folder_bytes(const char *path)
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

static int describe(struct place *p, struct error *err)
{
	p->bytes = folder_bytes(p->path);
	return metadata_read(p->path, &p->meta, err);
}

/* ---- opening */

struct files { struct stream_file **file; size_t len, cap; };

static int find_packets(void *arg, size_t i)
{
	const struct files *f = arg;
	stream_file_read(f->file[i]);
	return 0;
}

static void find_all_packets(struct group *g, unsigned workers)
{
	struct files all = { 0 };
	for (size_t d = 0; d < g->dirs; d++)
		for (size_t k = 0; k < g->files[d]; k++)
			*ARRAY_PUSH(all.file, all.len, all.cap) = &g->file[d][k];
	parallel_run(&(struct parallel){ .workers = workers, .task = find_packets, .arg = &all }, all.len);
	free(all.file);
}

static void add_stream(struct source *s, const struct port *p)
{
	struct source_stream *to = ARRAY_PUSH(s->stream, s->streams, s->streams_cap);
	*to = (struct source_stream){ .name = mem_dup(p->file_name ? p->file_name : p->name), .bytes = p->bytes };
	for (size_t i = 1; p->file && i < p->file->packets; i++)
		if (packets_may_cut(p->file, i))
			*ARRAY_PUSH(to->cut, to->cuts, to->cuts_cap) = (struct stream_cut){ i, p->file->packet[i].offset };
}

static int open_group(struct source *s, struct error *err)
{
	struct group *g = s->data = mem_new(1, sizeof *g);
	*g = (struct group){ .meaning = &s->meaning, .notes = &s->notes, .bytes = s->bytes };
	g->temporary = excerpts_open(s->options->spill_dir, err);
	s->folder = g->temporary;
	if (!g->temporary)
		return -1;
	g->dir = mem_new(s->places, sizeof *g->dir);
	for (; g->dirs < s->places; g->dirs++)
		g->dir[g->dirs] = mem_dup(s->place[g->dirs]->path);
	for (size_t i = 0; i < g->dirs; i++)
		if (missing_streams(g->dir[i], g->notes, err))
			return -1;
	if (group_list(g, err))
		return -1;
	find_all_packets(g, s->workers);
	if (group_open(g, err))
		return -1;
	for (size_t i = 0; i < g->ports; i++)
		add_stream(s, &g->port[i]);
	return 0;
}

static void close_group(struct source *s)
{
	if (s->data)
		group_release(s->data);
	free(s->data);
}

/* ---- decoding */

static size_t find_port(const struct decoder *d, const char *name)
{
	for (size_t i = 0; i < decoder_ports(d); i++)
		if (strcmp(decoder_port_name(d, i), name) == 0)
			return i;
	return NONE;
}

static void *enter(struct source *s, struct error *err)
{
	struct group *g = s->data;
	struct decoder *d = group_decoder(g, err);
	if (!d)
		return NULL;
	struct worker *w = mem_new(1, sizeof *w);
	*w = (struct worker){ g, d, mem_new(g->ports + 1, sizeof *w->port) };
	for (size_t i = 0; i < g->ports; i++)
		w->port[i] = find_port(d, g->port[i].name);
	return w;
}

static void leave(void *entered)
{
	struct worker *w = entered;
	decoder_close(w->decoder);
	free(w->port);
	free(w);
}

/* Of a port whose packets are known: the packets of w, and no others.  An excerpt that cannot be made or opened counts as
 * one that shows something unexpected, not as a failure. */
static int run_in_excerpt(struct group *g, const struct stream_file *f, struct decode *w, struct outlet *out,
                          struct passage *how)
{
	struct excerpt v;
	const size_t first = (size_t)(w->packet - f->packet);
	w->port = 0;
	w->check = true;
	w->limit = false;
	w->before = first ? w->packet - 1 : NULL;
	*how = (struct passage){ .unexpected = true };
	if (excerpt_open(&v, f->dir, g->temporary, NULL))
		return 0;
	int status = 0;
	struct decoder *d = excerpt_add(&v, f, first, first + w->packets, NULL) ? NULL :
		decoder_open(g->meaning, &v.dir, 1, NULL);
	if (d && decoder_ports(d) == 1)
		status = decoder_run(d, w, out, how);
	decoder_close(d);
	excerpt_close(&v);
	return status;
}

/* After a passage that ended early: sets w to what follows the damaged packet.  False: nothing that can be read. */
static bool skip_damage(struct decode *w, const struct passage *how, unsigned *damages)
{
	const uint64_t used = how->packets + !how->open;  /* a packet whose header is damaged was not begun */
	if (!w->packet || used >= w->packets || ++*damages > MOST_DAMAGE)
		return false;
	w->packet += used;
	w->packets -= used;
	w->bytes += how->bytes;
	w->lost_from = how->last;
	return true;
}

static int decode(void *entered, const struct stretch *s, struct outlet *out)
{
	struct worker *worker = entered;
	const struct port *p = &worker->group->port[s->stream];
	const struct stream_file *f = p->file;
	if (worker->port[s->stream] == NONE)
		return outlet_damaged(out, "it was taken away while it was read", false);
	struct decode w = { .port = worker->port[s->stream], .lost_first = p->lost_first, .lost_from = INT64_MIN };
	if (f) {
		w.packet = f->packet + s->from;
		w.check = w.limit = s->to < f->packets;
		w.packets = (w.limit ? s->to : f->packets) - s->from;
	}
	unsigned damages = 0;
	for (bool first = true, more = true; more; first = false) {
		struct passage how;
		int status = first && !s->from ? decoder_run(worker->decoder, &w, out, &how) :
			run_in_excerpt(worker->group, f, &w, out, &how);
		if (!status && how.unexpected)
			return first ? DECODE_WHOLE : 0;  /* what came before the damage is all there is */
		more = !status && how.broken && skip_damage(&w, &how, &damages);
		if (!status && how.broken)
			status = outlet_damaged(out, how.broken, more);
		free(how.broken);
		if (status)
			return -1;
	}
	return 0;
}

#define DIED "libbabeltrace2 does not survive reading it"
const struct trace_reader babeltrace_reader = {
	.name = "libbabeltrace2", .apart = true, .patience = 60, .died = DIED, .silent = DIED,
	.mend = "copy the trace again", .unit = "packet",
	.claims = claims, .describe = describe, .open = open_group, .enter = enter, .decode = decode, .leave = leave,
	.close = close_group,
};
