#include "trace/load.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

struct decoder *group_decoder(struct group *g, struct error *err)
{
	return decoder_open(&g->ctf, g->view ? g->view_dir : g->dir, g->dirs, err);
}

/* ---- damaged traces */

void child_begin(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGPIPE };
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], SIG_DFL);
}

/* Can libbabeltrace2 open this trace?  Asked in a child process, because the answer may be abort().  No thread of ours
 * may be at work when it is made: the child gets the locks as they are. */
static void opens_begin(struct group *g, char *const *dir, size_t n)
{
	int answer[2];
	g->trial = -1;
	g->answer = -1;
	if (pipe(answer))
		return;
	g->trial = fork();
	if (g->trial == 0) {
		struct error err = ERROR_INIT;
		child_begin();
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 2);
		struct decoder *d = decoder_open(&g->ctf, dir, n, &err);
		ssize_t told = write(answer[1], err.text, strnlen(err.text, 255));
		_exit(d && told >= 0 ? 0 : 1);
	}
	close(answer[1]);
	g->answer = answer[0];
}

static bool opens_end(struct group *g, char why[256])
{
	int status = 0;
	snprintf(why, 256, "libbabeltrace2 does not survive reading it");
	ssize_t len = g->trial > 0 ? read(g->answer, why, 255) : -1;
	if (g->answer >= 0)
		close(g->answer);
	if (len > 0)
		why[len] = '\0';
	while (g->trial > 0 && waitpid(g->trial, &status, 0) < 0 && errno == EINTR)
		;
	return g->trial > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The same of a trace of nothing but packets [0, end) of this file; 0 packets: of the metadata alone. */
static bool readable(struct group *g, size_t dir, const struct stream_file *f, size_t end, const char *temporary,
                     char why[256])
{
	struct view v;
	struct error err = ERROR_INIT;
	bool good = false;
	snprintf(why, 256, "no room for temporary files");
	if (view_open(&v, g->dir[dir], temporary, &err))
		return false;
	if (!end || view_add(&v, f, 0, end, &err) == 0) {
		opens_begin(g, &v.dir, 1);
		good = opens_end(g, why);
	}
	view_close(&v);
	return good;
}

/* How many of the file's packets can be read; says what is left out. */
static size_t good_packets(struct group *g, size_t dir, const struct stream_file *f, const char *temporary)
{
	char why[256];
	size_t end = f->packets;
	if (f->damaged)
		notes_add(&g->notes, "%s/%s: left out for damage: %zu of its packets", f->dir, f->name, f->damaged);
	if (!end)
		return 0;  /* no stream: some other file beside the metadata */
	if (readable(g, dir, f, end, temporary, why))
		return end;
	if (end > 1 && readable(g, dir, f, end - 1, temporary, why)) {
		notes_add(&g->notes, "%s/%s: the last packet cannot be read; its %llu bytes are left out", f->dir,
		          f->name, (unsigned long long)f->packet[end - 1].size);
		return end - 1;
	}
	notes_add(&g->notes, "%s/%s: cannot be read, the stream is left out: %s", f->dir, f->name, why);
	return 0;
}

static int make_view(struct group *g, size_t dir, const char *temporary, size_t *kept, struct error *err)
{
	struct view *v = &g->view[dir];
	if (view_open(v, g->dir[dir], temporary, err))
		return -1;
	g->view_dir[dir] = v->dir;
	for (size_t i = 0; i < g->files[dir]; i++) {
		struct stream_file *f = &g->file[dir][i];
		f->packets = good_packets(g, dir, f, temporary);
		if (f->packets && view_add(v, f, 0, f->packets, err))
			return -1;
		*kept += f->packets > 0;
	}
	return 0;
}

static int make_views(struct group *g, const char *temporary, struct error *err)
{
	char why[256];
	size_t kept = 0;
	if (!readable(g, 0, NULL, 0, temporary, why))
		return error_set(err, STATUS_INPUT, "copy the trace again", "%s: the metadata cannot be read: %s",
		                 g->dir[0], why);
	g->view = mem_new(g->dirs, sizeof *g->view);
	g->view_dir = mem_new(g->dirs, sizeof *g->view_dir);
	for (size_t i = 0; i < g->dirs; i++)
		if (make_view(g, i, temporary, &kept, err))
			return -1;
	if (!kept)
		return error_set(err, STATUS_INPUT, "copy the trace again", "%s: none of its streams can be read: %s",
		                 g->dir[0], g->notes.len ? g->notes.line[g->notes.len - 1] : "damaged");
	return 0;
}

void group_rescue(struct group *g, const char *temporary)
{
	g->status = make_views(g, temporary, &g->err);
	if (!g->status)
		group_open(g);
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
			if (f->packet->sequence == 0)  /* where the counter began */
				p->lost_first = f->packet->discarded;
		}
	}
	if (!matches)
		p->bytes = g->bytes / g->ports;
	if (p->file && !p->file->indexed && !p->file->sized)
		p->file = NULL;
}

static void find_ports(struct group *g, const struct decoder *d)
{
	g->ports = decoder_ports(d);
	g->port = mem_new(g->ports + 1, sizeof *g->port);
	for (size_t i = 0; i < g->ports; i++) {
		g->port[i].name = mem_dup(decoder_port_name(d, i));
		find_files(g, &g->port[i]);
	}
}

static void note_cuts(struct group *g)
{
	for (size_t i = 0; i < g->dirs; i++) {
		for (size_t k = 0; k < g->files[i]; k++) {
			const struct stream_file *f = &g->file[i][k];
			if (f->missing)
				notes_add(&g->notes, "%s/%s: cut short: %llu bytes are missing at its end", f->dir,
				          f->name, (unsigned long long)f->missing);
			if (f->extra)
				notes_add(&g->notes, "%s/%s: %llu bytes at its end are not in the trace's index",
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
		notes_add(&g->notes, "%s: a copy of %s; left out", g->dir[i], g->dir[k]);
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

void group_list(struct group *g)
{
	g->file = mem_new(g->dirs, sizeof *g->file);
	g->files = mem_new(g->dirs, sizeof *g->files);
	for (size_t i = 0; i < g->dirs; i++)
		stream_files_list(g->dir[i], &g->file[i], &g->files[i]);
	drop_copies(g);
}

void group_survey(struct group *g)
{
	bool sound = true, indexed = true;
	for (size_t i = 0; i < g->dirs; i++) {
		for (size_t k = 0; k < g->files[i]; k++) {
			sound &= !g->file[i][k].damaged;
			indexed &= g->file[i][k].indexed;
		}
	}
	g->suspect = !sound;
	/* Nothing tells whether the packets' headers are good but trying. */
	g->tried = sound && !indexed;
	if (g->tried)
		opens_begin(g, g->dir, g->dirs);
}

void group_surveyed(struct group *g)
{
	char why[256];
	if (g->tried)
		g->suspect = !opens_end(g, why);
}

void group_open(struct group *g)
{
	struct decoder *d = group_decoder(g, &g->err);
	g->status = d ? 0 : -1;
	if (!d)
		return;
	note_cuts(g);
	find_ports(g, d);
	*ARRAY_PUSH(g->idle, g->idles, g->idles_cap) = d;
}

void group_release(struct group *g)
{
	for (size_t i = 0; i < g->idles; i++)
		decoder_close(g->idle[i]);
	free(g->idle);
	for (size_t i = 0; i < g->ports; i++)
		free(g->port[i].name);
	free(g->port);
	for (size_t i = 0; i < g->dirs; i++) {
		if (g->view)
			view_close(&g->view[i]);
		if (g->file)
			stream_files_free(g->file[i], g->files[i]);
		free(g->dir[i]);
	}
	free(g->view);
	free(g->view_dir);
	free(g->file);
	free(g->files);
	free(g->dir);
	notes_release(&g->notes);
}
