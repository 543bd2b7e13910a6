/* What is nudged is told by the history that is shown: it knows the traces, options and hints it was made of.  So there
 * is no other state, and a nudge that is cancelled or fails leaves none.
 *
 * A nudged history is a file without a name, which goes with the viewer: the cache keeps the clocks as they were found.
 * Only a session file makes a nudge last. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_field.h"
#include "base/mem.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "index/input.h"
#include "index/provenance.h"
#include "index/session.h"

#define SESSION_NAME "stealscope.yaml"

/* ---- What a history says of its traces and clocks */

static struct json_object *find_row(struct json_object *doc, const char *table, const char *key, const char *name)
{
	struct json_object *rows = field_array(doc, table);
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(field_text(row, key), name) == 0)
			return row;
	}
	return NULL;
}

static struct sync_hint *hint_of(struct input *in, const char *guest)
{
	for (size_t i = 0; i < in->hints; i++)
		if (strcmp(in->hint[i].guest, guest) == 0)
			return &in->hint[i];
	return NULL;
}

/* A history of other traces under the same names would be shown as if the clock alone had changed. */
static int check_traces(struct json_object *before, struct json_object *after, struct error *err)
{
	static const char *const facts[] = { "begin", "end", "events", "lost", "bytes" };
	struct json_object *rows = field_array(after, "traces");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *now = json_object_array_get_idx(rows, i);
		struct json_object *then = find_row(before, "traces", "machine", field_text(now, "machine"));
		bool same = then != NULL;
		for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
			same = same && field_int(then, facts[k], -1) == field_int(now, facts[k], -1);
		if (!same)
			return error_set(err, STATUS_INPUT, "leave, and open the traces again",
			                 "%s: changed since it was indexed", field_text(now, "dir"));
	}
	return 0;
}

static void containment_text(struct json_object *row, char *buf, size_t size)
{
	double share = field_real(row, "containment", -1);
	if (share < 0)
		snprintf(buf, size, "unknown");
	else
		snprintf(buf, size, "%.4f", share);
}

/* "Debian +3 us: containment 1.0000 -> 0.9731, worst 2.10 us" */
static int describe(struct json_object *before, struct json_object *after, const char *guest, int64_t moved,
                    int64_t nudge, char *said, size_t size, struct error *err)
{
	char name[128], by[TIME_TEXT], was[16], is[16], worst[TIME_TEXT];
	struct json_object *a = find_row(before, "sync", "guest", text_escape(name, sizeof name, guest));
	struct json_object *b = find_row(after, "sync", "guest", name);
	int64_t ns = field_int(b, "worst_violation_ns", -1);
	if (field_int(b, "ref_host_ns", 0) - field_int(a, "ref_host_ns", 0) != moved)
		return error_set(err, STATUS_INPUT, "stealscope info tells why",
		                 "%s: its clock is not known: there is nothing to add a nudge to", guest);
	containment_text(a, was, sizeof was);
	containment_text(b, is, sizeof is);
	snprintf(said, size, "%s %s: containment %s -> %s%s%s", name, time_exact(by, nudge), was, is, ns <= 0 ? "" : ", worst ",
	         ns <= 0 ? "" : time_duration(worst, ns));
	return 0;
}

/* ---- Another history */

/* Beside the history that the viewer began with, else where caches are. */
static char *temporary_path(const struct nudger *n, const struct input *in, struct error *err)
{
	const char *file = history_file(n->first), *slash = strrchr(file, '/');
	char *folder = slash ? mem_printf("%.*s", (int)(slash - file + 1), file) : mem_dup("./");
	char *path = NULL;
	if (access(folder, W_OK) == 0)
		path = mem_printf("%s.nudged-%ld.steal", folder, (long)getpid());
	else if ((path = cache_path(in, err))) {
		char *cache = path;
		path = mem_printf("%s.nudged-%ld.steal", cache, (long)getpid());
		free(cache);
	}
	free(folder);
	return path;
}

/* The history that the viewer began with, when that has these nudges; it need not be built again. */
static bool is_first(const struct nudger *n, const struct input *in)
{
	struct json_object *wanted = provenance_nudges(in), *doc = provenance_load(n->first, NULL);
	bool same = json_object_equal(wanted, field_array(doc, "nudges"));
	json_object_put(wanted);
	json_object_put(doc);
	return same;
}

static struct history *build(const struct nudger *n, struct input *in, struct progress progress, struct error *err)
{
	if (is_first(n, in))
		return n->first;
	struct history *h = NULL;
	char *path = temporary_path(n, in, err);
	if (path && index_build(in, path, progress, NULL, NULL, err) == 0) {
		h = history_open(path, err);
		unlink(path);
	}
	free(path);
	return h;
}

static struct history *nudge_input(const struct nudger *n, const struct history *shown, struct input *in,
                                   const char *guest, int64_t ns, struct progress progress, char *said, size_t size,
                                   struct error *err)
{
	char name[128];
	struct sync_hint *hint = hint_of(in, guest);
	struct json_object *before = provenance_load(shown, err), *after = NULL;
	struct history *h = NULL;
	if (before && (!hint || !find_row(before, "sync", "guest", text_escape(name, sizeof name, guest)))) {
		error_set(err, STATUS_INPUT, NULL, "%s: was not traced: it has no clock of its own", guest);
	} else if (before) {
		int64_t moved = ns - hint->nudge;
		hint->nudge = ns;
		in->jobs = n->jobs;
		h = build(n, in, progress, err);
		after = h ? provenance_load(h, err) : NULL;
		if (h && (!after || check_traces(before, after, err) ||
		          describe(before, after, guest, moved, ns, said, size, err))) {
			if (h != n->first)
				history_close(h);
			h = NULL;
		}
	}
	json_object_put(before);
	json_object_put(after);
	return h;
}

struct history *nudger_nudge(void *nudger, const struct history *shown, const char *guest, int64_t ns,
                             struct progress progress, char *said, size_t size, struct error *err)
{
	struct input in = { 0 };
	struct history *h = NULL;
	if (ns > SYNC_NUDGE_MAX || ns < -SYNC_NUDGE_MAX)
		error_set(err, STATUS_USAGE, NULL, "more than an hour is no nudge");
	else if (provenance_input(shown, &in, err) < 0)
		error_wrap(err, "the traces of this history cannot be read");
	else if (input_is_live(&in))
		error_set(err, STATUS_INPUT, "index the folder that lttng-relayd wrote", "a live session is not read twice");
	else
		h = nudge_input(nudger, shown, &in, guest, ns, progress, said, size, err);
	input_release(&in);
	return h;
}

/* ---- What is nudged, and where that is kept */

void nudger_list(void *nudger, const struct history *shown, char *buf, size_t size)
{
	struct json_object *doc = provenance_load(shown, NULL), *rows = field_array(doc, "nudges");
	size_t used = 0;
	(void)nudger;
	buf[0] = '\0';
	for (size_t i = 0; rows && i < json_object_array_length(rows) && used < size; i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		char by[TIME_TEXT];
		int n = snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "", field_text(row, "guest"),
		                 time_exact(by, field_int(row, "nudge_ns", 0)));
		used += n < 0 ? size : (size_t)n;
	}
	json_object_put(doc);
}

/* The folder of a trace, with a slash at its end: its own, or that of a single file; malloc'ed. */
static char *folder_of(const char *place)
{
	struct stat st;
	char *real = realpath(place, NULL);
	char *dir = mem_printf("%s/", real ? real : place);
	if (real && stat(real, &st) == 0 && !S_ISDIR(st.st_mode))
		dir[strrchr(real, '/') - real + 1] = '\0';
	free(real);
	return dir;
}

/* The deepest folder that holds all the traces, likewise. */
static char *folder_of_all(const struct input *in)
{
	char *all = folder_of(in->spec[0].dir);
	for (size_t i = 1; i < in->specs; i++) {
		char *dir = folder_of(in->spec[i].dir);
		size_t same = 0;
		for (size_t n = 0; all[n] && all[n] == dir[n]; n++)
			same = all[n] == '/' ? n + 1 : same;
		all[same] = '\0';
		free(dir);
	}
	return all;
}

static int write_session(const char *path, const struct input *in, struct error *err)
{
	struct save save;
	if (access(path, F_OK) == 0)
		return error_set(err, STATUS_INPUT, "open that one, or :offset save FILE", "%s: exists already", path);
	char *text = session_text(in, NULL, NULL, path, err);
	int rc = text ? save_begin(&save, path, err) : -1;
	if (rc == 0) {
		fprintf(save.f, "# Clocks moved by hand in the viewer: see nudge in stealscope-session(5).\n%s", text);
		rc = save_end(&save, 0, err);
	}
	free(text);
	return rc;
}

static int save_as(struct nudger *n, const char *file, const struct input *in, struct error *err)
{
	if (!session_is_one(file))
		return error_set(err, STATUS_USAGE, "a session file's name ends in .yaml", "%s: no session file", file);
	bool in_use = n->session && strcmp(n->session, file) == 0;
	if (in_use ? session_set_nudges(file, in, err) : write_session(file, in, err))
		return -1;
	if (!in_use) {
		free(n->session);
		n->session = mem_dup(file);
	}
	return 0;
}

int nudger_save(void *nudger, const struct history *shown, const char *file, char *said, size_t size,
                struct error *err)
{
	struct nudger *n = nudger;
	struct input in;
	char nudges[256], shown_name[512];
	int rc = provenance_input(shown, &in, err);
	nudger_list(n, shown, nudges, sizeof nudges);
	if (rc == 0) {
		char *folder = *file || n->session ? NULL : folder_of_all(&in);
		char *path = *file ? mem_dup(file) : n->session ? mem_dup(n->session) : mem_printf("%s" SESSION_NAME, folder);
		if (!nudges[0] && !n->session)
			rc = error_set(err, STATUS_USAGE, NULL, "no clock is nudged: there is nothing to save");
		else
			rc = save_as(n, path, &in, err);
		snprintf(said, size, "wrote %s: %s", text_escape(shown_name, sizeof shown_name, path),
		         nudges[0] ? nudges : "no clock is nudged");
		free(folder);
		free(path);
	}
	input_release(&in);
	return rc;
}

void nudger_init(struct nudger *n, struct history *h, const struct input_options *o)
{
	bool session = o->whats == 1 && session_is_one(o->what[0]);
	*n = (struct nudger){ .first = h, .session = session ? mem_dup(o->what[0]) : NULL, .jobs = o->jobs };
}

void nudger_release(struct nudger *n)
{
	free(n->session);
}
