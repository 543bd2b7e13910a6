#include "trace/ctf/ctf_trace_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/babeltrace/probe.h"

struct decoder *ctf_trace_set_decoder(const struct ctf_trace_set *g, struct error *err)
{
	return decoder_open(g->mapping, g->subset ? g->subset_dir : g->dir, g->dirs, err);
}

/* ---- damaged traces */

/* Removes the path of a temporary directory from an error message, because the user does not know this directory. */
static void strip_dir_prefix(char *text, const char *dir)
{
	const size_t n = strlen(dir);
	if (!strncmp(text, dir, n) && !strncmp(text + n, ": ", 2))
		memmove(text, text + n + 2, strlen(text + n + 2) + 1);
}

/* Returns true if libbabeltrace2 opens a subset with packets [0, end) of this file; end 0: with the metadata only. Sets
 * *reason if it does not. */
static bool opens_in_babeltrace(const struct ctf_trace_set *g, size_t dir, const struct stream_file *f, size_t end,
                                struct error *reason)
{
	struct ctf_subset v;
	struct babeltrace_probe probe = { .err = ERROR_INIT };
	if (ctf_subset_open(&v, g->dir[dir], g->temp_dir, reason))
		return false;
	if (end && ctf_subset_add(&v, f, 0, end, reason)) {
		ctf_subset_close(&v);
		return false;
	}
	babeltrace_probe_run(&probe, g->mapping, &v.dir, 1, g->bytes);
	const bool opens = probe.opens;
	*reason = probe.err;
	strip_dir_prefix(reason->text, v.dir);
	babeltrace_probe_release(&probe);
	ctf_subset_close(&v);
	return opens;
}

/* Reduces f->packets to the packets that libbabeltrace2 can read, and adds notes about the others. Returns 0, or -1: the
 * system cannot read the file. */
static int drop_unreadable_packets(const struct ctf_trace_set *g, size_t dir, struct stream_file *f, struct error *err)
{
	struct error reason = ERROR_INIT;
	const size_t end = f->packets;
	if (f->index_damaged)
		note_add(g->notes, INDEX_DAMAGED, NULL, f->dir, f->name);
	if (f->damaged_packets)
		note_add(g->notes, PACKETS_DAMAGED, NULL, f->dir, f->name, f->damaged_packets);
	/* A file with another name is unrelated to the trace. */
	if (!end && !f->damaged_packets && stream_file_has_stream_name(f->name))
		note_add(g->notes, NOT_A_STREAM, NULL, f->dir, f->name);
	if (!end || opens_in_babeltrace(g, dir, f, end, &reason))
		return 0;
	const bool is_last_bad = end > 1 && reason.status != STATUS_SYSTEM && opens_in_babeltrace(g, dir, f, end - 1, &reason);
	f->packets = is_last_bad ? end - 1 : 0;
	if (f->packets) {
		note_add(g->notes, LAST_PACKET_UNREADABLE, NULL, f->dir, f->name, (unsigned long long)f->packet[end - 1].size);
	} else if (reason.status == STATUS_SYSTEM) {
		*err = reason;
		return -1;
	} else {
		note_add(g->notes, STREAM_UNREADABLE, NULL, f->dir, f->name, reason.text);
	}
	return 0;
}

static int make_subset(struct ctf_trace_set *g, size_t dir, size_t *n_streams, struct error *err)
{
	struct ctf_subset *v = &g->subset[dir];
	if (ctf_subset_open(v, g->dir[dir], g->temp_dir, err))
		return -1;
	g->subset_dir[dir] = v->dir;
	for (size_t i = 0; i < g->files[dir]; i++) {
		struct stream_file *f = &g->file[dir][i];
		if (drop_unreadable_packets(g, dir, f, err) || (f->packets && ctf_subset_add(v, f, 0, f->packets, err)))
			return -1;
		*n_streams += f->packets > 0;
	}
	return 0;
}

static int make_subsets(struct ctf_trace_set *g, struct error *err)
{
	struct error reason = ERROR_INIT;
	size_t n_streams = 0;
	if (!opens_in_babeltrace(g, 0, NULL, 0, &reason))
		return error_repeat(err, reason.status, reason.remedy[0] ? reason.remedy : "copy the trace again",
		                    "%s: the metadata cannot be read: %s", g->dir[0], reason.text);
	g->subset = mem_new(g->dirs, sizeof *g->subset);
	g->subset_dir = mem_new(g->dirs, sizeof *g->subset_dir);
	for (size_t i = 0; i < g->dirs; i++)
		if (make_subset(g, i, &n_streams, err))
			return -1;
	if (!n_streams)
		return error_repeat(err, STATUS_INPUT, "copy the trace again", "%s: no stream can be read: %s",
		                    g->dir[0], g->notes->len ? g->notes->item[g->notes->len - 1].text : "damaged");
	return 0;
}

/* ---- ports */

/* Returns true if the port reads this file. Port names end in "| CLASS | INSTANCE", or in the path of the file if
 * packets contain no instance. */
static bool is_port_of_file(const char *port_name, const struct stream_file *f)
{
	char tail[64];
	const char *slash = strrchr(port_name, '/');
	if (slash && strcmp(slash + 1, f->name) == 0)
		return true;
	snprintf(tail, sizeof tail, "| %llu | %llu", (unsigned long long)f->stream_class,
	         (unsigned long long)f->instance);
	size_t len = strlen(port_name), n = strlen(tail);
	return f->has_index && len >= n && strcmp(port_name + len - n, tail) == 0;
}

static void match_port_files(struct ctf_trace_set *g, struct ctf_port *p)
{
	size_t matches = 0;
	for (size_t d = 0; d < g->dirs; d++) {
		for (size_t i = 0; i < g->files[d]; i++) {
			const struct stream_file *f = &g->file[d][i];
			if (!f->packets || !(is_port_of_file(p->name, f) || (g->ports == 1 && g->files[d] == 1)))
				continue;
			p->bytes += f->bytes;
			p->file = matches++ ? NULL : f;
			p->file_name = p->file ? f->name : NULL;
			if (f->packet->sequence == 0)  /* first packet of the recording: the counter started at 0 */
				p->lost_first = f->packet->discarded;
		}
	}
	if (!matches)
		p->bytes = g->bytes / g->ports;
	if (p->file && !p->file->has_index && !p->file->has_sizes)
		p->file = NULL;
}

static void make_ports(struct ctf_trace_set *g, const struct babeltrace_probe *probe)
{
	g->ports = probe->ports;
	g->port = mem_new(g->ports + 1, sizeof *g->port);
	for (size_t i = 0; i < g->ports; i++) {
		g->port[i].name = mem_dup(probe->port[i]);
		match_port_files(g, &g->port[i]);
	}
}

static void note_size_mismatches(struct ctf_trace_set *g)
{
	for (size_t i = 0; i < g->dirs; i++) {
		for (size_t k = 0; k < g->files[i]; k++) {
			const struct stream_file *f = &g->file[i][k];
			if (f->missing_bytes)
				note_add(g->notes, STREAM_TRUNCATED, NULL, f->dir, f->name, (unsigned long long)f->missing_bytes);
			if (f->extra_bytes)
				note_add(g->notes, BYTES_NOT_INDEXED, NULL, f->dir, f->name, (unsigned long long)f->extra_bytes);
		}
	}
}

/* Removes directories that are copies of another one, with a note: otherwise every event would occur twice. */
static void drop_duplicate_dirs(struct ctf_trace_set *g)
{
	for (size_t i = 1; i < g->dirs; i++) {
		size_t k = 0;
		while (k < i && !stream_files_same(g->file[k], g->files[k], g->file[i], g->files[i]))
			k++;
		if (k == i)
			continue;
		note_add(g->notes, DUPLICATE_TRACE, NULL, g->dir[i], g->dir[k]);
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

int ctf_trace_set_list(struct ctf_trace_set *g, struct error *err)
{
	g->file = mem_new(g->dirs, sizeof *g->file);
	g->files = mem_new(g->dirs, sizeof *g->files);
	for (size_t i = 0; i < g->dirs; i++)
		if (stream_files_list(g->dir[i], &g->file[i], &g->files[i]))
			return error_read(err, "make it readable for you", "%s", g->dir[i]);
	drop_duplicate_dirs(g);
	return 0;
}

/* Fails if the system could not read a file: such a file is not damaged. */
static int check_read_errors(const struct ctf_trace_set *g, struct error *err)
{
	for (size_t i = 0; i < g->dirs; i++) {
		for (size_t k = 0; k < g->files[i]; k++) {
			const struct stream_file *f = &g->file[i][k];
			errno = f->read_errno;
			if (f->read_errno)
				return error_read(err, "make it readable for you", "%s/%s", f->dir, f->name);
		}
	}
	return 0;
}

/* Returns true if no damaged packet or index was found in the files. */
static bool is_undamaged(const struct ctf_trace_set *g)
{
	for (size_t i = 0; i < g->dirs; i++)
		for (size_t k = 0; k < g->files[i]; k++)
			if (g->file[i][k].damaged_packets || g->file[i][k].index_damaged)
				return false;
	return true;
}

/* Tries to open the trace in a child process: nothing else shows whether libbabeltrace2 can open it. */
int ctf_trace_set_open(struct ctf_trace_set *g, struct error *err)
{
	struct babeltrace_probe probe = { .err = ERROR_INIT };
	if (check_read_errors(g, err))
		return -1;
	if (is_undamaged(g))
		babeltrace_probe_run(&probe, g->mapping, g->dir, g->dirs, g->bytes);
	if (!probe.opens && probe.err.status != STATUS_SYSTEM) {
		if (make_subsets(g, err))
			return -1;
		babeltrace_probe_run(&probe, g->mapping, g->subset_dir, g->dirs, g->bytes);
	}
	const int status = probe.opens ? 0 : -1;
	if (status)
		*err = probe.err;
	note_size_mismatches(g);
	make_ports(g, &probe);
	babeltrace_probe_release(&probe);
	return status;
}

void ctf_trace_set_release(struct ctf_trace_set *g)
{
	for (size_t i = 0; i < g->ports; i++)
		free(g->port[i].name);
	free(g->port);
	for (size_t i = 0; i < g->dirs; i++) {
		if (g->subset)
			ctf_subset_close(&g->subset[i]);
		if (g->file)
			stream_files_free(g->file[i], g->files[i]);
		free(g->dir[i]);
	}
	temp_dir_remove(g->temp_dir);
	free(g->subset);
	free(g->subset_dir);
	free(g->file);
	free(g->files);
	free(g->dir);
}
