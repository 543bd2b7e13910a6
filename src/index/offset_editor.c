/* Changes the manual clock offsets of guests, for the viewer.
 *
 * The displayed history contains its traces, options, hints and manual offsets; there is no other state. So a change
 * that fails or is cancelled has no effect.
 *
 * A history with changed offsets is an unlinked file, which disappears when the viewer ends; the cache keeps the history
 * with the synchronized clocks. Only a session file stores offsets permanently. */

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
#include "index/provenance.h"
#include "index/session.h"

#define SESSION_NAME "stealscope.yaml"

/* ---- Reading the provenance */

static struct json_object *find_row(struct json_object *doc, const char *table, const char *key, const char *name)
{
	struct json_object *rows = json_member_array(doc, table);
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(json_member_text(row, key), name) == 0)
			return row;
	}
	return NULL;
}

static struct sync_hint *find_hint(struct input *in, const char *guest)
{
	for (size_t i = 0; i < in->hints; i++)
		if (strcmp(in->hint[i].guest, guest) == 0)
			return &in->hint[i];
	return NULL;
}

/* Fails if the traces have changed: the difference between the histories would then be attributed to the offset. */
static int check_traces(struct json_object *before, struct json_object *after, struct error *err)
{
	static const char *const compared[] = { "begin", "end", "events", "lost", "bytes" };
	struct json_object *rows = json_member_array(after, "traces");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *now = json_object_array_get_idx(rows, i);
		struct json_object *then = find_row(before, "traces", "machine", json_member_text(now, "machine"));
		bool same = then != NULL;
		for (size_t k = 0; k < sizeof compared / sizeof *compared; k++)
			same = same && json_member_int(then, compared[k], -1) == json_member_int(now, compared[k], -1);
		if (!same)
			return error_set(err, STATUS_INPUT, "quit, and open the traces again",
			                 "%s: changed since it was indexed", json_member_text(now, "dir"));
	}
	return 0;
}

static void containment_text(struct json_object *row, char *buf, size_t size)
{
	double share = json_member_real(row, "containment", -1);
	if (share < 0)
		snprintf(buf, size, "unknown");
	else
		snprintf(buf, size, "%.4f", share);
}

/* Writes the effect of the new offset, for example "Debian +3 us: containment 1.0000 -> 0.9731, worst 2.10 us". Returns
 * -1 if the guest has no synchronized clock. */
static int describe_change(struct json_object *before, struct json_object *after, const char *guest, int64_t moved,
                    int64_t manual_offset, char *message, size_t size, struct error *err)
{
	char name[128], offset_text[TIME_TEXT], old[16], new[16], worst[TIME_TEXT];
	struct json_object *a = find_row(before, "sync", "guest", text_escape(name, sizeof name, guest));
	struct json_object *b = find_row(after, "sync", "guest", name);
	int64_t ns = json_member_int(b, "worst_violation_ns", -1);
	if (json_member_int(b, "ref_host_ns", 0) - json_member_int(a, "ref_host_ns", 0) != moved)
		return error_set(err, STATUS_INPUT, "see stealscope info",
		                 "%s: the clock of this guest is not synchronized and cannot be adjusted", guest);
	containment_text(a, old, sizeof old);
	containment_text(b, new, sizeof new);
	snprintf(message, size, "%s %s: containment %s -> %s%s%s", name, time_exact(offset_text, manual_offset), old, new,
	         ns <= 0 ? "" : ", worst ", ns <= 0 ? "" : time_duration(worst, ns));
	return 0;
}

/* ---- Building a history with other offsets */

/* Returns a path for a temporary history, malloc'ed: next to the first history, or in the cache directory if that
 * directory is not writable. NULL: failure. */
static char *temporary_path(const struct offset_editor *n, const struct input *in, struct error *err)
{
	const char *file = history_file(n->first), *slash = strrchr(file, '/');
	char *dir = slash ? mem_printf("%.*s", (int)(slash - file + 1), file) : mem_dup("./");
	char *beside = access(dir, W_OK) == 0 ? mem_dup(dir) : cache_path(in, err);
	char *path = beside ? mem_printf("%s.offset-%ld.steal", beside, (long)getpid()) : NULL;
	free(beside);
	free(dir);
	return path;
}

/* Returns true if the first history has these offsets already, so no history needs to be built. */
static bool has_first_offsets(const struct offset_editor *n, const struct input *in)
{
	struct json_object *wanted = provenance_manual_offsets(in), *doc = provenance_load(n->first, NULL);
	bool same = json_object_equal(wanted, json_member_array(doc, "nudges"));
	json_object_put(wanted);
	json_object_put(doc);
	return same;
}

static struct history *build_history(const struct offset_editor *n, struct input *in, struct progress progress,
                                     struct error *err)
{
	if (has_first_offsets(n, in))
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

static struct history *build_with_offset(const struct offset_editor *n, const struct history *shown, struct input *in,
                                   const char *guest, int64_t ns, struct progress progress, char *message, size_t size,
                                   struct error *err)
{
	char name[128];
	struct sync_hint *hint = find_hint(in, guest);
	struct json_object *before = provenance_load(shown, err), *after = NULL;
	struct history *h = NULL;
	if (before && (!hint || !find_row(before, "sync", "guest", text_escape(name, sizeof name, guest)))) {
		error_set(err, STATUS_INPUT, NULL, "%s: this guest has no trace, or no host: it cannot be adjusted", guest);
	} else if (before) {
		int64_t moved = ns - hint->manual_offset;
		hint->manual_offset = ns;
		in->jobs = n->jobs;
		h = build_history(n, in, progress, err);
		after = h ? provenance_load(h, err) : NULL;
		if (h && (!after || check_traces(before, after, err) ||
		          describe_change(before, after, guest, moved, ns, message, size, err))) {
			if (h != n->first)
				history_close(h);
			h = NULL;
		}
	}
	json_object_put(before);
	json_object_put(after);
	return h;
}

struct history *offset_editor_move(void *offset_editor, const struct history *shown, const char *guest, int64_t ns,
                             struct progress progress, char *message, size_t size, struct error *err)
{
	struct input in = { 0 };
	struct history *h = NULL;
	if (ns > SYNC_MANUAL_OFFSET_MAX || ns < -SYNC_MANUAL_OFFSET_MAX)
		error_set(err, STATUS_USAGE, NULL, "manual offset: more than an hour");
	else if (provenance_input(shown, &in, err) < 0)
		error_wrap(err, "the traces of this history cannot be read");
	else if (input_is_live(&in))
		error_set(err, STATUS_INPUT, "index the directory written by lttng-relayd", "live traces cannot be read again");
	else
		h = build_with_offset(offset_editor, shown, &in, guest, ns, progress, message, size, err);
	input_release(&in);
	return h;
}

/* ---- Listing and saving offsets */

void offset_editor_list(void *offset_editor, const struct history *shown, char *buf, size_t size)
{
	struct json_object *doc = provenance_load(shown, NULL), *rows = json_member_array(doc, "nudges");
	size_t used = 0;
	(void)offset_editor;
	buf[0] = '\0';
	for (size_t i = 0; rows && i < json_object_array_length(rows) && used < size; i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		char offset_text[TIME_TEXT];
		int n = snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "", json_member_text(row, "guest"),
		                 time_exact(offset_text, json_member_int(row, "nudge_ns", 0)));
		used += n < 0 ? size : (size_t)n;
	}
	json_object_put(doc);
}

/* Returns the directory that contains a trace, with a slash at its end, malloc'ed. A trace may be a single file. */
static char *dir_with_slash(const char *place)
{
	struct stat st;
	char *real = realpath(place, NULL);
	char *dir = mem_printf("%s/", real ? real : place);
	if (real && stat(real, &st) == 0 && !S_ISDIR(st.st_mode))
		dir[strrchr(real, '/') - real + 1] = '\0';
	free(real);
	return dir;
}

/* Returns the deepest directory that contains all traces, with a slash at its end, malloc'ed. */
static char *common_dir_of_traces(const struct input *in)
{
	char *all = dir_with_slash(in->spec[0].dir);
	for (size_t i = 1; i < in->specs; i++) {
		char *dir = dir_with_slash(in->spec[i].dir);
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
		return error_set(err, STATUS_INPUT, "open the existing file, or use :offset save FILE",
		                 "%s: the file exists already", path);
	char *text = session_text(in, NULL, NULL, path, err);
	int rc = text ? atomic_file_begin(&save, path, err) : -1;
	if (rc == 0) {
		fprintf(save.f, "# Manual clock offsets from the viewer: see nudge in stealscope-session(5).\n%s", text);
		rc = atomic_file_end(&save, 0, err);
	}
	free(text);
	return rc;
}

static int save_as(struct offset_editor *n, const char *file, const struct input *in, struct error *err)
{
	if (!is_session_file_name(file))
		return error_set(err, STATUS_USAGE, "the name must end in .yaml", "%s: not a session file", file);
	bool in_use = n->session && strcmp(n->session, file) == 0;
	if (in_use ? session_set_manual_offsets(file, in, err) : write_session(file, in, err))
		return -1;
	if (!in_use) {
		free(n->session);
		n->session = mem_dup(file);
	}
	return 0;
}

int offset_editor_save(void *offset_editor, const struct history *shown, const char *file, char *message, size_t size,
                struct error *err)
{
	struct offset_editor *n = offset_editor;
	struct input in;
	char manual_offsets[256], shown_name[512];
	int rc = provenance_input(shown, &in, err);
	offset_editor_list(n, shown, manual_offsets, sizeof manual_offsets);
	if (rc == 0) {
		char *dir = *file || n->session ? NULL : common_dir_of_traces(&in);
		char *path = *file ? mem_dup(file) : n->session ? mem_dup(n->session) : mem_printf("%s" SESSION_NAME, dir);
		if (!manual_offsets[0] && !n->session)
			rc = error_set(err, STATUS_USAGE, NULL, "no manual offset: nothing to save");
		else
			rc = save_as(n, path, &in, err);
		snprintf(message, size, "wrote %s: %s", text_escape(shown_name, sizeof shown_name, path),
		         manual_offsets[0] ? manual_offsets : "no manual offset");
		free(dir);
		free(path);
	}
	input_release(&in);
	return rc;
}

void offset_editor_init(struct offset_editor *n, struct history *h, const struct input_options *o)
{
	bool session = o->whats == 1 && is_session_file_name(o->what[0]);
	*n = (struct offset_editor){ .first = h, .session = session ? mem_dup(o->what[0]) : NULL, .jobs = o->jobs };
}

void offset_editor_release(struct offset_editor *n)
{
	free(n->session);
}
