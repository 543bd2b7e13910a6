#include "cli/trace_input.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "cli/progress_bar.h"
#include "report/report.h"

const char *const sync_method_choices[] = { "auto", "tsc", "events", "containment", "offset=", "none", NULL };

char *trace_input_path(const char *named, struct error *err)
{
	struct progress_bar bar;
	const struct progress progress = progress_bar_begin(&bar, NULL);
	char *path = packed_input_path(named, &progress, err);
	progress_bar_end(&bar);
	return path;
}

static int replace_path(struct trace_input *w, const char **named, struct error *err)
{
	char *path = trace_input_path(*named, err);
	if (!path)
		return -1;
	if (strcmp(path, *named) != 0) {
		*ARRAY_PUSH(w->copied.item, w->copied.len, w->copied.cap) = (struct input_copy){ path, *named };
		*named = path;
		return 0;
	}
	free(path);
	return 0;
}

/* Replaces pipes and packed files by the paths of their private copies. */
static int replace_paths(struct trace_input *w, char **what, struct error *err)
{
	for (size_t i = 0; i < w->named.whats; i++) {
		const char *path = what[i];
		if (replace_path(w, &path, err))
			return -1;
		what[i] = (char *)(uintptr_t)path;
	}
	if (w->named.host && replace_path(w, &w->named.host, err))
		return -1;
	for (size_t i = 0; i < w->guest.len; i++) {
		const char *eq = strchr(w->guest.item[i], '='), *path = eq ? eq + 1 : NULL;
		if (!path || !*path)
			continue;
		if (replace_path(w, &path, err))
			return -1;
		if (path == eq + 1)
			continue;
		char *guest = mem_printf("%.*s=%s", (int)(eq - w->guest.item[i]), w->guest.item[i], path);
		*ARRAY_PUSH(w->copied.item, w->copied.len, w->copied.cap) = (struct input_copy){ guest, w->guest.item[i] };
		w->guest.item[i] = guest;
	}
	return 0;
}

int trace_input_parse(struct trace_input *w, const struct opts *o, int argc, char **argv, struct error *err)
{
	int first;
	if (opts_parse(o, argc, argv, &first, err))
		return -1;
	w->named.what = argv + first;
	w->named.whats = (size_t)(argc - first);
	w->named.guest = w->guest.item;
	w->named.guests = w->guest.len;
	w->named.domain = w->domain.item;
	w->named.domains = w->domain.len;
	const int rc = replace_paths(w, argv + first, err);
	w->named.copy = w->copied.item;
	w->named.copies = w->copied.len;
	return rc;
}

void trace_input_release(struct trace_input *w)
{
	for (size_t i = 0; i < w->copied.len; i++)
		free(w->copied.item[i].path);
	free(w->copied.item);
	free(w->guest.item);
	free(w->domain.item);
}

void trace_input_remember_host(const struct input_options *named)
{
	struct stat st;
	struct save save;
	if (!named->host || named->whats || named->guests || stat(named->host, &st) || !S_ISDIR(st.st_mode))
		return;
	char *path = mem_printf("%s/session.yaml", named->host);
	if (access(path, F_OK) && atomic_file_begin(&save, path, NULL) == 0) {
		fputs("# Written for --host: this machine is physical.\nhost:\n  dir: .\n", save.f);
		if (atomic_file_end(&save, 0, NULL) == 0)
			fprintf(stderr, "stealscope: %s remembers --host\n", path);
	}
	free(path);
}

int trace_input_build(struct input *in, const char *path, struct build_times *times, struct error *err)
{
	struct progress_bar bar;
	struct notes notes = { 0 };
	struct build_times unused = { 0 };
	times = times ? times : &unused;
	int rc = index_build(in, path, progress_bar_begin(&bar, &times->phase), times, &notes, err);
	progress_bar_end(&bar);
	print_notes(&notes);
	notes_release(&notes);
	return rc;
}

/* Returns true if the failure is a full disk or an exhausted quota: the reason at the text's end is the system's. */
static bool is_out_of_space(const struct error *failure)
{
	return strstr(failure->text, strerror(ENOSPC)) || strstr(failure->text, strerror(EDQUOT));
}

/* Builds the history in the user's cache instead, if the recording's disk is full, and replaces *path. Returns
 * -1 if that is not possible either; the caller reports the first failure. */
static int build_in_user_cache(struct input *in, char **path, const char *failure)
{
	char *other = cache_path_of_user(in, NULL);
	if (!other || strcmp(other, *path) == 0) {
		free(other);
		return -1;
	}
	fprintf(stderr, "stealscope: %s; writing %s instead\n", failure, other);
	free(*path);
	*path = other;
	return trace_input_build(in, other, NULL, NULL);
}

static struct history *open_cache(struct input *in, struct error *err)
{
	char why[1024];
	char *path = cache_path(in, err);
	int fits = path ? cache_is_current(path, in, why, sizeof why, err) : -1;
	if (fits == 0 && why[0])
		fprintf(stderr, "stealscope: indexing again: %s\n", why);
	struct history *h = NULL;
	struct error failure = ERROR_INIT;
	if (fits == 0 && trace_input_build(in, path, NULL, &failure) != 0) {
		fits = -1;
		if (failure.status == STATUS_SYSTEM && is_out_of_space(&failure))
			fits = build_in_user_cache(in, &path, failure.text);
		if (fits < 0 && err)
			*err = failure;
	}
	if (fits >= 0)
		h = history_open(path, err);
	free(path);
	return h;
}

struct history *trace_input_open(const struct input_options *named, struct error *err)
{
	struct history *h = NULL;
	if (input_is_history(named)) {
		h = input_check_history_options(named, err) ? NULL : history_open(named->what[0], err);
	} else {
		struct input in;
		h = input_resolve(&in, named, err) ? NULL : open_cache(&in, err);
		input_release(&in);
	}
	if (!h)
		input_name_copies(named, err);
	return h;
}

struct history *trace_input_open_named(char *recording, struct error *err)
{
	char *path = trace_input_path(recording, err);
	const struct input_copy copy = { path, recording };
	const struct input_options named = { .what = &path, .whats = 1, .copy = &copy, .copies = 1 };
	struct history *h = path ? trace_input_open(&named, err) : NULL;
	free(path);
	return h;
}

int trace_input_close(struct history *h, int rc, struct error *err)
{
	if (h && rc == 0)
		rc = history_damage(h, err);
	history_close(h);
	return rc;
}
