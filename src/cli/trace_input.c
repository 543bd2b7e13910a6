#include "cli/trace_input.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/progress_bar.h"

const char *const what_syncs[] = { "auto", "tsc", "events", "containment", "offset=", "none", NULL };
const char *const what_readers[] = { "auto", "native", "babeltrace", NULL };

int what_parse(struct what *w, const struct opts *o, int argc, char **argv, struct error *err)
{
	int first;
	if (opts_parse(o, argc, argv, &first, err))
		return -1;
	w->named.what = argv + first;
	w->named.whats = (size_t)(argc - first);
	w->named.guest = w->guest.item;
	w->named.guests = w->guest.len;
	return 0;
}

void what_release(struct what *w)
{
	free(w->guest.item);
}

void what_say(const struct notes *n)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; i < n->len; i++)
		if (notes_text(n, i, text))
			fprintf(stderr, "stealscope: note: %s\n", text);
}

int what_build(struct input *in, const char *path, struct build_times *times, struct error *err)
{
	struct progress_bar bar;
	struct notes notes = { 0 };
	struct build_times own = { 0 };
	times = times ? times : &own;
	int rc = index_build(in, path, progress_bar_begin(&bar, &times->phase), times, &notes, err);
	progress_bar_end(&bar);
	what_say(&notes);
	notes_release(&notes);
	return rc;
}

static struct history *open_cache(struct input *in, struct error *err)
{
	char why[1024];
	char *path = cache_path(in, err);
	int fits = path ? cache_fits(path, in, why, sizeof why, err) : -1;
	if (fits == 0 && why[0])
		fprintf(stderr, "stealscope: indexing again: %s\n", why);
	struct history *h = NULL;
	if (fits == 1 || (fits == 0 && what_build(in, path, NULL, err) == 0))
		h = history_open(path, err);
	free(path);
	return h;
}

struct history *what_open(const struct input_options *named, struct error *err)
{
	if (input_names_history(named))
		return input_refuse_shape(named, err) ? NULL : history_open(named->what[0], err);
	struct input in;
	struct history *h = input_resolve(&in, named, err) ? NULL : open_cache(&in, err);
	input_release(&in);
	return h;
}

struct history *what_open_named(char *what, struct error *err)
{
	const struct input_options named = { .what = &what, .whats = 1 };
	return what_open(&named, err);
}

int what_close(struct history *h, int rc, struct error *err)
{
	if (h && rc == 0)
		rc = history_damage(h, err);
	history_close(h);
	return rc;
}
