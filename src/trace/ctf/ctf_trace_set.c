#include "trace/ctf/ctf_trace_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/babeltrace/probe.h"

struct decoder *group_decoder(const struct group *g, struct error *err)
{
	return decoder_open(g->meaning, g->excerpt ? g->excerpt_dir : g->dir, g->dirs, err);
}

/* ---- damaged traces */

/* An excerpt's folder means nothing to who reads why it cannot be opened. */
static void leave_out(char *text, const char *folder)
{
	const size_t n = strlen(folder);
	if (!strncmp(text, folder, n) && !strncmp(text + n, ": ", 2))
		memmove(text, text + n + 2, strlen(text + n + 2) + 1);
}

/* Can libbabeltrace2 open a trace of nothing but packets [0, end) of this file?  0 packets: of the metadata alone. */
static bool readable(const struct group *g, size_t dir, const struct stream_file *f, size_t end, struct error *why)
{
	struct excerpt v;
	struct attempt attempt = { .err = ERROR_INIT };
	if (excerpt_open(&v, g->dir[dir], g->temporary, why))
		return false;
	if (end && excerpt_add(&v, f, 0, end, why)) {
		excerpt_close(&v);
		return false;
	}
	attempt_run(&attempt, g->meaning, &v.dir, 1, g->bytes);
	const bool opens = attempt.opens;
	*why = attempt.err;
	leave_out(why->text, v.dir);
	attempt_release(&attempt);
	excerpt_close(&v);
	return opens;
}

/* Leaves the file those of its packets that can be read; says what is left out. */
static int keep_good_packets(const struct group *g, size_t dir, struct stream_file *f, struct error *err)
{
	struct error why = ERROR_INIT;
	const size_t end = f->packets;
	if (f->misled)
		notes_add(g->notes, NOTE_DAMAGE, NULL, "%s/index/%s.idx: damaged; the packets are told by their headers",
		          f->dir, f->name);
	if (f->damaged)
		notes_add(g->notes, NOTE_DAMAGE, NULL, "%s/%s: left out for damage: %zu of its packets", f->dir, f->name,
		          f->damaged);
	if (!end && !f->damaged && stream_file_name(f->name))  /* else it is some other file beside the metadata */
		notes_add(g->notes, NOTE_DAMAGE, NULL, "%s/%s: does not begin as a stream does; left out", f->dir, f->name);
	if (!end || readable(g, dir, f, end, &why))
		return 0;
	f->packets = end > 1 && why.status != STATUS_SYSTEM && readable(g, dir, f, end - 1, &why) ? end - 1 : 0;
	if (f->packets) {
		notes_add(g->notes, NOTE_DAMAGE, NULL, "%s/%s: the last packet cannot be read; its %llu bytes are left out",
		          f->dir, f->name, (unsigned long long)f->packet[end - 1].size);
	} else if (why.status == STATUS_SYSTEM) {
		*err = why;
		return -1;
	} else {
		notes_add(g->notes, NOTE_DAMAGE, NULL, "%s/%s: cannot be read, the stream is left out: %s", f->dir, f->name,
		          why.text);
	}
	return 0;
}

static int make_excerpt(struct group *g, size_t dir, size_t *kept, struct error *err)
{
	struct excerpt *v = &g->excerpt[dir];
	if (excerpt_open(v, g->dir[dir], g->temporary, err))
		return -1;
	g->excerpt_dir[dir] = v->dir;
	for (size_t i = 0; i < g->files[dir]; i++) {
		struct stream_file *f = &g->file[dir][i];
		if (keep_good_packets(g, dir, f, err) || (f->packets && excerpt_add(v, f, 0, f->packets, err)))
			return -1;
		*kept += f->packets > 0;
	}
	return 0;
}

static int make_excerpts(struct group *g, struct error *err)
{
	struct error why = ERROR_INIT;
	size_t kept = 0;
	if (!readable(g, 0, NULL, 0, &why))
		return error_set(err, why.status, why.mend[0] ? why.mend : "copy the trace again",
		                 "%s: the metadata cannot be read: %s", g->dir[0], why.text);
	g->excerpt = mem_new(g->dirs, sizeof *g->excerpt);
	g->excerpt_dir = mem_new(g->dirs, sizeof *g->excerpt_dir);
	for (size_t i = 0; i < g->dirs; i++)
		if (make_excerpt(g, i, &kept, err))
			return -1;
	if (!kept)
		return error_set(err, STATUS_INPUT, "copy the trace again", "%s: none of its streams can be read: %s",
		                 g->dir[0], g->notes->len ? g->notes->item[g->notes->len - 1].text : "damaged");
	return 0;
}

/* ---- ports */

/* Names of ports end in "| CLASS | INSTANCE", or in the path of a file whose packets tell no instance. */
static bool is_port_of(const char *port, const struct stream_file *f)
{
	char tail[64];
	const char *slash = strrchr(port, '/');
	if (slash && strcmp(slash + 1, f->name) == 0)
		return true;
	snprintf(tail, sizeof tail, "| %llu | %llu", (unsigned long long)f->stream_class,
	         (unsigned long long)f->instance);
	size_t len = strlen(port), n = strlen(tail);
	return f->indexed && len >= n && strcmp(port + len - n, tail) == 0;
}

static void find_files(struct group *g, struct port *p)
{
	size_t matches = 0;
	for (size_t d = 0; d < g->dirs; d++) {
		for (size_t i = 0; i < g->files[d]; i++) {
			const struct stream_file *f = &g->file[d][i];
			if (!f->packets || !(is_port_of(p->name, f) || (g->ports == 1 && g->files[d] == 1)))
				continue;
			p->bytes += f->bytes;
			p->file = matches++ ? NULL : f;
			p->file_name = p->file ? f->name : NULL;
			if (f->packet->sequence == 0)  /* where the counter began */
				p->lost_first = f->packet->discarded;
		}
	}
	if (!matches)
		p->bytes = g->bytes / g->ports;
	if (p->file && !p->file->indexed && !p->file->sized)
		p->file = NULL;
}

static void find_ports(struct group *g, const struct attempt *attempt)
{
	g->ports = attempt->ports;
	g->port = mem_new(g->ports + 1, sizeof *g->port);
	for (size_t i = 0; i < g->ports; i++) {
		g->port[i].name = mem_dup(attempt->port[i]);
		find_files(g, &g->port[i]);
	}
}

static void note_cuts(struct group *g)
{
	for (size_t i = 0; i < g->dirs; i++) {
		for (size_t k = 0; k < g->files[i]; k++) {
			const struct stream_file *f = &g->file[i][k];
			if (f->missing)
				notes_add(g->notes, NOTE_DAMAGE, NULL, "%s/%s: cut short: %llu bytes are missing at its end", f->dir,
				          f->name, (unsigned long long)f->missing);
			if (f->extra)
				notes_add(g->notes, NOTE_FACT, NULL, "%s/%s: %llu bytes at its end are not in the trace's index",
				          f->dir, f->name, (unsigned long long)f->extra);
		}
	}
}

/* A copy of a trace beside it would give every event twice. */
static void drop_copies(struct group *g)
{
	for (size_t i = 1; i < g->dirs; i++) {
		size_t k = 0;
		while (k < i && !stream_files_same(g->file[k], g->files[k], g->file[i], g->files[i]))
			k++;
		if (k == i)
			continue;
		notes_add(g->notes, NOTE_FACT, NULL, "%s: a copy of %s; left out", g->dir[i], g->dir[k]);
		stream_files_free(g->file[i], g->files[i]);
		free(g->dir[i]);
		g->dirs--;
		for (size_t j = i; j < g->dirs; j++) {
			g->file[j] = g->file[j + 1];
			g->files[j] = g->files[j + 1];
			g->dir[j] = g->dir[j + 1];
		}
		i--;
	}
}

int group_list(struct group *g, struct error *err)
{
	g->file = mem_new(g->dirs, sizeof *g->file);
	g->files = mem_new(g->dirs, sizeof *g->files);
	for (size_t i = 0; i < g->dirs; i++)
		if (stream_files_list(g->dir[i], &g->file[i], &g->files[i]))
			return error_read(err, "make it readable for you", "%s", g->dir[i]);
	drop_copies(g);
	return 0;
}

/* What the system cannot read is not damaged. */
static int check_read(const struct group *g, struct error *err)
{
	for (size_t i = 0; i < g->dirs; i++) {
		for (size_t k = 0; k < g->files[i]; k++) {
			const struct stream_file *f = &g->file[i][k];
			errno = f->why;
			if (f->why)
				return error_read(err, "make it readable for you", "%s/%s", f->dir, f->name);
		}
	}
	return 0;
}

/* May the trace be given to libbabeltrace2 as it is? */
static bool is_sound(const struct group *g)
{
	for (size_t i = 0; i < g->dirs; i++)
		for (size_t k = 0; k < g->files[i]; k++)
			if (g->file[i][k].damaged || g->file[i][k].misled)
				return false;
	return true;
}

/* Nothing tells whether libbabeltrace2 opens it but trying. */
int group_open(struct group *g, struct error *err)
{
	struct attempt attempt = { .err = ERROR_INIT };
	if (check_read(g, err))
		return -1;
	if (is_sound(g))
		attempt_run(&attempt, g->meaning, g->dir, g->dirs, g->bytes);
	if (!attempt.opens && attempt.err.status != STATUS_SYSTEM) {
		if (make_excerpts(g, err))
			return -1;
		attempt_run(&attempt, g->meaning, g->excerpt_dir, g->dirs, g->bytes);
	}
	const int status = attempt.opens ? 0 : -1;
	if (status)
		*err = attempt.err;
	note_cuts(g);
	find_ports(g, &attempt);
	attempt_release(&attempt);
	return status;
}

void group_release(struct group *g)
{
	for (size_t i = 0; i < g->ports; i++)
		free(g->port[i].name);
	free(g->port);
	for (size_t i = 0; i < g->dirs; i++) {
		if (g->excerpt)
			excerpt_close(&g->excerpt[i]);
		if (g->file)
			stream_files_free(g->file[i], g->files[i]);
		free(g->dir[i]);
	}
	excerpts_close(g->temporary);
	free(g->excerpt);
	free(g->excerpt_dir);
	free(g->file);
	free(g->files);
	free(g->dir);
}
