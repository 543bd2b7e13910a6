#include "cli/recording_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "base/hash.h"
#include "base/json_field.h"
#include "cli/captured_command.h"

static void set_text(struct recording_line *l, size_t i, const char *text)
{
	char escaped[512];
	text_escape(escaped, sizeof escaped, text);
	free(l->texts[i]);
	l->texts[i] = mem_dup(escaped);
}

static const char *describe_machines(struct json_object *rows, char *buf, size_t size)
{
	unsigned hosts = 0, others = 0;
	char name[64] = "";
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		const char *machine = json_member_text(row, "machine");
		if (json_member_int(row, "tid", -1) >= 0)
			continue;
		hosts += strcmp(machine, "host") == 0;
		others += strcmp(machine, "host") != 0;
		snprintf(name, sizeof name, "%s", machine);
	}
	if (hosts)
		snprintf(buf, size, others ? "%u VM%s" : "host", others, others == 1 ? "" : "s");
	else if (others > 1)
		snprintf(buf, size, "%u VMs", others);
	else
		snprintf(buf, size, "%s", others ? "guest" : "");
	return buf;
}

/* Removes " (26 % of the time it wanted to run)": the line has the share in its own column. */
static void drop_share(char *text)
{
	char *open = strstr(text, " % of ");
	const char *close = open ? strchr(open, ')') : NULL;
	while (open && open > text && *open != '(')
		open--;
	if (close && open > text && open[-1] == ' ')
		memmove(open - 1, close + 1, strlen(close));
}

/* Fills the line from an answer of `summary --format json`. Returns true if it has a window. */
static bool fill_line(struct recording_line *l, struct json_object *answer)
{
	struct json_object *window = json_object_object_get(answer, "window");
	struct json_object *verdict = json_object_object_get(answer, "verdict");
	char who[32];
	if (!window)
		return false;
	const int64_t start = json_member_int(window, "start", 0);
	set_text(l, 1, describe_machines(json_member_array(answer, "rows"), who, sizeof who));
	set_text(l, 2, json_member_text(verdict, "text"));
	drop_share(l->texts[2]);
	l->shown.when = start < WALL_CLOCK_MIN ? l->recording->modified : start;
	l->shown.length = json_member_int(window, "end", start) - start + 1;
	l->shown.share = *json_member_text(verdict, "base") ? json_member_real(verdict, "share", -1) : -1;
	return true;
}

static void refresh_row(struct recording_lines *r, size_t i)
{
	struct recording_line *l = &r->line[i];
	r->row[i] = l->shown;
	r->row[i].name = l->texts[0];
	r->row[i].who = l->texts[1] ? l->texts[1] : "";
	r->row[i].verdict = l->texts[2] ? l->texts[2] : "";
}

/* ---- the cache: one file per directory, with the lines as a json array */

static char *cache_file(const struct recording_lines *r)
{
	char name[40], *real = realpath(r->dir, NULL);
	snprintf(name, sizeof name, "list-%016" PRIx64 ".json", hash_text(HASH_BEGIN, real ? real : r->dir));
	free(real);
	return user_file_path("XDG_CACHE_HOME", ".cache", name);
}

static void take_cached(struct recording_lines *r, struct json_object *cached)
{
	const char *name = json_member_text(cached, "name");
	const uint64_t fingerprint = strtoull(json_member_text(cached, "fingerprint"), NULL, 16);
	for (size_t i = 0; i < r->lines; i++) {
		struct recording_line *l = &r->line[i];
		if (l->recording->fingerprint != fingerprint || strcmp(l->recording->name, name) != 0)
			continue;
		set_text(l, 1, json_member_text(cached, "who"));
		set_text(l, 2, json_member_text(cached, "verdict"));
		l->shown.when = json_member_int(cached, "when", 0);
		l->shown.length = json_member_int(cached, "length", 0);
		l->shown.share = json_member_real(cached, "share", -1);
		l->shown.read = l->from_cache = true;
		refresh_row(r, i);
	}
}

static void load_cache(struct recording_lines *r)
{
	char *path = cache_file(r);
	size_t size = 0;
	const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char *text = fd >= 0 ? captured_file(fd, &size) : NULL;
	struct json_object *cache = text ? json_parse(text, size) : NULL;
	struct json_object *lines = cache && strcmp(json_member_text(cache, "program"), PACKAGE_VERSION) == 0
	                            ? json_member_array(cache, "lines") : NULL;
	for (size_t i = 0; lines && i < json_object_array_length(lines); i++)
		take_cached(r, json_object_array_get_idx(lines, i));
	json_object_put(cache);
	free(text);
	free(path);
	if (fd >= 0)
		close(fd);
}

static struct json_object *line_as_json(const struct recording_line *l)
{
	char fingerprint[24];
	struct json_object *o = json_new_object();
	snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, l->recording->fingerprint);
	json_object_object_add(o, "name", json_object_new_string(l->recording->name));
	json_object_object_add(o, "fingerprint", json_object_new_string(fingerprint));
	json_object_object_add(o, "who", json_object_new_string(l->texts[1]));
	json_object_object_add(o, "verdict", json_object_new_string(l->texts[2]));
	json_object_object_add(o, "when", json_object_new_int64(l->shown.when));
	json_object_object_add(o, "length", json_object_new_int64(l->shown.length));
	json_object_object_add(o, "share", json_object_new_double(l->shown.share));
	return o;
}

/* Saves the lines. A cache that cannot be written costs only time. */
static void save_cache(const struct recording_lines *r)
{
	struct save save;
	bool has_news = false;
	for (size_t i = 0; i < r->lines; i++)
		has_news |= r->line[i].shown.read && !r->line[i].from_cache;
	char *path = has_news ? cache_file(r) : NULL;
	if (path)
		make_parent_dirs(path);
	if (path && atomic_file_begin(&save, path, NULL) == 0) {
		struct json_object *cache = json_new_object(), *lines = json_new_array();
		json_object_object_add(cache, "program", json_object_new_string(PACKAGE_VERSION));
		for (size_t i = 0; i < r->lines; i++)
			if (r->line[i].shown.read && r->line[i].shown.length)
				json_object_array_add(lines, line_as_json(&r->line[i]));
		json_object_object_add(cache, "lines", lines);
		fputs(json_object_to_json_string(cache), save.f);
		json_object_put(cache);
		atomic_file_end(&save, 0, NULL);
	}
	free(path);
}

/* ---- lines */

void recording_lines_take(struct recording_lines *r, size_t i, char *text)
{
	struct recording_line *l = &r->line[i];
	char *begin = strstr(text, "{\n  \"program\"");  /* notes may precede the json */
	struct json_object *answer = begin ? json_parse(begin, strlen(begin)) : NULL;
	l->shown.read = true;
	if (!answer || !fill_line(l, answer)) {
		text[strcspn(text, "\n")] = '\0';
		set_text(l, 1, "");
		set_text(l, 2, strncmp(text, "stealscope: ", 12) == 0 ? text + 12 : *text ? text : "unreadable");
		l->shown.failed = true;
	}
	json_object_put(answer);
	refresh_row(r, i);
	r->unread--;
}

void recording_lines_print(const struct recording_lines *r, FILE *f)
{
	char when[TIME_TEXT], length[TIME_TEXT], share[16];
	int width = 9;
	for (size_t i = 0; i < r->lines; i++)
		width = text_width(r->row[i].name) > width ? text_width(r->row[i].name) : width;
	fprintf(f, "%-*s  %-16s  %7s  %-8s  %5s  verdict\n", width, "recording", "when", "long", "machines", "share");
	for (size_t i = 0; i < r->lines; i++) {
		const struct ui_recording *l = &r->row[i];
		ui_recording_texts(l, when, length, share);
		fprintf(f, "%s%*s  %-16s  %7s  %-8s  %5s  %s\n", l->name, width - text_width(l->name), "", when, length, l->who,
		        share, l->read ? l->verdict : "..");
	}
}

static int compare_ages(const void *a, const void *b)
{
	const struct recording_line *x = a, *y = b;
	return (x->recording->modified < y->recording->modified) - (x->recording->modified > y->recording->modified);
}

void recording_lines_begin(struct recording_lines *r, const char *dir, const struct recordings *found)
{
	*r = (struct recording_lines){ .dir = dir, .lines = found->len, .unread = found->len };
	r->line = mem_new(r->lines, sizeof *r->line);
	r->row = mem_new(r->lines, sizeof *r->row);
	for (size_t i = 0; i < r->lines; i++) {
		r->line[i] = (struct recording_line){ .recording = &found->item[i] };
		r->line[i].shown = (struct ui_recording){ .when = found->item[i].modified, .share = -1 };
		set_text(&r->line[i], 0, found->item[i].name);
	}
	ARRAY_SORT(r->line, r->lines, compare_ages);
	for (size_t i = 0; i < r->lines; i++)
		refresh_row(r, i);
	load_cache(r);
	for (size_t i = 0; i < r->lines; i++)
		r->unread -= r->line[i].shown.read;
}

void recording_lines_end(struct recording_lines *r)
{
	save_cache(r);
	for (size_t i = 0; i < r->lines; i++)
		for (size_t k = 0; k < sizeof r->line->texts / sizeof *r->line->texts; k++)
			free(r->line[i].texts[k]);
	free(r->line);
	free(r->row);
}
