/* stealscope ticket: a page for a provider, a colleague or a mailing list. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "cli/captured_command.h"
#include "cli/cli.h"
#include "cli/query_context.h"
#include "cli/target_arg.h"
#include "cli/ticket_page.h"
#include "cli/ticket_timeline.h"
#include "index/index.h"

#define HISTORY_FILE "history.steal"
#define PART_FILE "part.steal"    /* of the history, for the page */
#define SECONDS 300               /* maximum duration of each command, s */
#define PAGE_BYTES 300000         /* largest page with its history */
#define ROWS "12"                 /* each table's rows */
#define ROWS_SHOWN 12
#define WAITS_READ "5000"         /* waits among which those for the verdict's culprit are searched */

enum { NAMES_KEEP, NAMES_HASH };
static const char *const names_choice[] = { "keep", "hash", NULL };

struct ticket {
	const char *output;
	bool is_page;          /* output is a page, otherwise a directory */
	int names;
	char dir[PATH_MAX];    /* temporary directory, or the output directory */
	char *history, *picture, *key;  /* paths in it; key: NULL without aliases */
	char *target;          /* operand in the cut history; NULL: all machines */
	int64_t from, to;
	int64_t moment_start;  /* of the verdict; 0: no moment */
};

/* ---- the cut history */

static int write_key(const char *path, struct error *err)
{
	unsigned char key[32];
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const bool ok = fd >= 0 && getrandom(key, sizeof key, 0) == sizeof key && write(fd, key, sizeof key) == sizeof key;
	const int rc = ok ? 0 : error_system(err, NULL, "%s", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Finds the operand of the target in the cut history, where names may be replaced. */
static int find_operand(struct ticket *t, const struct catalog *catalog, const struct target *target, struct error *err)
{
	const struct catalog_machine *m = &catalog->machine[target_machine(catalog, target)];
	char escaped[ACTOR_TEXT];
	text_escape(escaped, sizeof escaped, m->name);
	char *machine = t->key ? cut_alias(t->key, escaped, err) : mem_dup(escaped);
	if (!machine)
		return -1;
	if (target->kind == TARGET_THREAD)
		t->target = mem_printf("%s/%d", machine, catalog->thread[target->index].tid);
	else if (target->kind == TARGET_CPU)
		t->target = mem_printf("%s/CPU%u", machine, catalog->cpu[target->index].number);
	else
		t->target = mem_dup(machine);
	free(machine);
	return 0;
}

/* Reduces the window to the thread's life if no window was given. */
static int choose_window(struct ticket *t, const struct query_context *s, const struct target *target, struct error *err)
{
	int64_t start, end;
	t->from = s->window.from;
	t->to = s->window.to;
	if (!target || target->kind != TARGET_THREAD)
		return 0;
	const int alive = catalog_lifetime(&s->catalog, target, &start, &end, err);
	if (alive > 0 && start > t->from)
		t->from = start;
	if (alive > 0 && end < t->to)
		t->to = end;
	return alive < 0 ? -1 : 0;
}

static int cut_window(struct ticket *t, char *recording, const char *target_text, const struct window_options *when,
                      struct error *err)
{
	struct query_context s;
	struct target target;
	int rc = query_context_open(&s, recording, when, err);
	if (rc == 0 && target_text)
		rc = target_parse_victim(&s, target_text, &target, err);
	if (rc == 0)
		rc = choose_window(t, &s, target_text ? &target : NULL, err);
	if (rc == 0 && t->names == NAMES_HASH) {
		t->key = mem_printf("%s/key", t->dir);
		rc = write_key(t->key, err);
	}
	if (rc == 0 && target_text)
		rc = find_operand(t, &s.catalog, &target, err);
	const struct cut_options o = { .from = t->from, .to = t->to, .aliases = t->key != NULL, .key = t->key };
	if (rc == 0)
		rc = cut_history(s.h, t->history, &o, err);
	return query_context_close(&s, rc, err);
}

/* ---- the page */

/* Runs a command on the cut history. Returns its output; NULL with *err set if it failed. */
static char *ask(int (*run)(int, char **, struct error *), char **argv, struct error *err)
{
	int argc = 0;
	char *text = NULL, *notes = NULL;
	while (argv[argc])
		argc++;
	const int status = captured_command(run, argc, argv, SECONDS, NULL, &text, &notes, err);
	if (status > 0)
		error_set(err, (enum status)status, NULL, "%.*s", notes ? (int)strcspn(notes, "\n") : 0, notes ? notes : "");
	free(notes);
	if (status == 0)
		return text;
	free(text);
	return NULL;
}

/* Explains the target, or all machines (NULL). Fills *first with the first finding, *text with sentences, allocated. */
static int explain(const struct query_context *s, const struct target *target, struct finding *first, char **text,
                   struct error *err)
{
	struct findings l = { 0 };
	char *all = NULL;
	int rc = query_answer(findings_open(&s->catalog, target, s->window.from, s->window.to), &l, err);
	if (rc == 0)
		*first = l.item[0];
	findings_release(&l);
	if (rc == 0)
		rc = explain_window(&s->catalog, target, s->window.from, s->window.to, &all, err);
	*text = rc == 0 ? text_insert_file_name(all, HISTORY_FILE) : NULL;
	free(all);
	return rc;
}

static char *warnings_text(const struct origin *o)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	for (size_t i = 0; i < o->lines; i++)
		if (strncmp(o->line[i], "history", 7) != 0)  /* a temporary name */
			fprintf(f, "%s\n", o->line[i]);
	fclose(f);
	return text;
}

static char *read_file(const char *path, size_t *n, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd >= 0 ? captured_file(fd, n) : NULL;
	if (!text)
		error_system(err, NULL, "%s", path);
	if (fd >= 0)
		close(fd);
	return text;
}

/* The verdict's moment: its picture, and the waits of its target for its culprit. */
struct shown_moment {
	char *picture;               /* SVG; NULL: none */
	char *gaps;                  /* csv */
	char title[2 * ACTOR_TEXT];
};

/* Keeps the waits for the finding's culprit. */
static void keep_culprit(const struct catalog *catalog, const struct finding *f, char **gaps)
{
	const struct actor *a = &f->moment.culprit;
	const bool is_thread = a->machine >= 0 && f->culprit.tid > 0;
	const bool is_limit = a->kind == FLOW_LIMITED && a->reason < OUT_REASON_COUNT;
	char machine[256] = "", tid[16] = "";
	if (a->machine >= 0)
		text_escape(machine, sizeof machine, catalog->machine[a->machine].name);
	if (is_thread)
		snprintf(tid, sizeof tid, "%d", f->culprit.tid);
	char *kept = ticket_page_waits_for(*gaps, machine, tid, is_limit ? out_reason_name[a->reason] : "", ROWS_SHOWN);
	free(*gaps);
	*gaps = kept;
}

/* Makes the picture of the finding's moment, with as much time before and after, and lists the waits of its target. */
static int show_moment(const struct ticket *t, const struct query_context *s, const struct finding *f,
                       struct shown_moment *out, struct error *err)
{
	const struct moment *m = &f->moment;
	char from[32], to[32], target[300], name[ACTOR_TEXT], at[TIME_TEXT], d[TIME_TEXT];
	const int64_t margin = m->end - m->start + 1;
	size_t size;
	if (m->end < m->start)
		return 0;
	catalog_operand_text(&s->catalog, &m->target, target, sizeof target);
	snprintf(out->title, sizeof out->title, "The moment: %s UTC, %s, %s", time_clock(at, m->start, 6),
	         time_duration(d, margin), catalog_target_text(&s->catalog, &m->target, name, sizeof name));
	snprintf(from, sizeof from, "%" PRId64, m->start - margin > s->window.from ? m->start - margin : s->window.from);
	snprintf(to, sizeof to, "%" PRId64, m->end + margin < s->window.to ? m->end + margin : s->window.to);
	char *file = mem_printf("%s/moment.svg", t->dir);
	char *picture_argv[] = { (char[]){ "picture" }, t->history, (char[]){ "-o" }, file, (char[]){ "--theme" },
		(char[]){ "cvd-light" }, (char[]){ "--width" }, (char[]){ "80" },
		(char[]){ "--from" }, from, (char[]){ "--to" }, to, target, NULL };
	char *gaps_argv[] = { (char[]){ "gaps" }, t->history, (char[]){ "--format" }, (char[]){ "csv" }, (char[]){ "--top" },
		(char[]){ WAITS_READ }, target, NULL };
	char *drawn = ask(cmd_picture, picture_argv, err);
	out->picture = drawn ? read_file(file, &size, err) : NULL;
	out->gaps = out->picture ? ask(cmd_gaps, gaps_argv, err) : NULL;
	if (out->gaps)
		keep_culprit(&s->catalog, f, &out->gaps);
	unlink(file);
	free(drawn);
	free(file);
	return out->gaps ? 0 : -1;
}

static int write_file(const char *path, const struct ticket_page *p, void (*write)(FILE *, const struct ticket_page *),
                      struct error *err)
{
	struct save s;
	if (atomic_file_begin(&s, path, err))
		return -1;
	write(s.f, p);
	return atomic_file_end(&s, 0, err);
}

static int write_ticket(const struct ticket *t, const struct ticket_page *p, struct error *err)
{
	if (t->is_page)
		return write_file(t->output, p, ticket_page_write_html, err);
	char *html = mem_printf("%s/ticket.html", t->dir), *text = mem_printf("%s/ticket.txt", t->dir);
	int rc = write_file(html, p, ticket_page_write_html, err);
	if (rc == 0)
		rc = write_file(text, p, ticket_page_write_text, err);
	free(html);
	free(text);
	return rc;
}

/* Shortens the path of the history in a text to its last component: the directory may be temporary. */
static void omit_directory(char *text, const char *history)
{
	const size_t n = strlen(history) - strlen(HISTORY_FILE);
	char *at = strstr(text, history);
	if (at)
		memmove(at, at + n, strlen(at + n) + 1);
}

/* Makes the interactive timeline. Its places are the verdict's moment and the csv's waits, the longest first. */
static int make_timeline(const struct query_context *s, const struct target *target, const struct moment *moment,
                         const char *gaps, char **text, struct error *err)
{
	const bool has_moment = moment->end >= moment->start;
	struct ticket_timeline t = { .catalog = &s->catalog, .target = target, .victim = has_moment ? &moment->target : NULL,
		.from = s->window.from, .to = s->window.to, .place = { { moment->start, moment->end } }, .places = has_moment };
	t.places += ticket_page_places(gaps, t.place + t.places, TIMELINE_PLACES - t.places);
	size_t bytes;
	FILE *out = open_memstream(text, &bytes);
	if (!out)
		abort();
	const int rc = ticket_timeline_write(out, &t, err);
	fclose(out);
	return rc;
}

/* Reads the cut history, or a part of it around the first wait, such that the page with it has at most PAGE_BYTES. The
 * length of a part is written to `part`, "" for the whole window. If no part fits, the page has no history. */
static int embed_history(const struct ticket *t, struct ticket_page *p, char **history, char part[TIME_TEXT],
                         struct error *err)
{
	char *page = NULL, *path = mem_printf("%s/" PART_FILE, t->dir), *file = t->history;
	size_t bytes, page_bytes;
	FILE *out = open_memstream(&page, &page_bytes);
	int64_t moment[1][2] = { { t->from, t->to } }, ns = t->to - t->from + 1;
	if (!out)
		abort();
	ticket_page_write_html(out, p);
	fclose(out);
	free(page);
	if (t->moment_start)
		moment[0][0] = t->moment_start;
	else
		ticket_page_places(p->gaps, moment, 1);
	const size_t room = page_bytes < PAGE_BYTES ? (PAGE_BYTES - page_bytes) / 4 * 3 : 0;
	int rc = (*history = read_file(file, &bytes, err)) ? 0 : -1;
	*part = '\0';
	for (int tries = 0; rc == 0 && bytes > room && tries < 6; tries++) {
		struct history *h = history_open(t->history, err);
		ns = (int64_t)((double)ns * (room ? (double)room / (double)bytes * 0.9 : 0.25));
		const int64_t from = moment[0][0] - ns / 2 > t->from ? moment[0][0] - ns / 2 : t->from;
		const struct cut_options o = { .from = from, .to = from + ns - 1 };
		free(*history);
		*history = NULL;
		rc = h && cut_history(h, path, &o, err) == 0 && (*history = read_file(path, &bytes, err)) ? 0 : -1;
		history_close(h);
		time_duration(part, ns);
	}
	unlink(path);
	free(path);
	p->history_part = part;
	if (rc == 0 && bytes > room) {  /* names and states before a window take space, however short the window is */
		p->history_name = NULL;
		return 0;
	}
	p->history = *history;
	p->history_bytes = bytes;
	return rc;
}

/* Answers the questions of the page on the cut history, so that replaced names are replaced everywhere. */
static int make_page(struct ticket *t, struct error *err)
{
	struct query_context s;
	struct target target;
	const struct window_options whole = { 0 };
	char from[TIME_TEXT], to[TIME_TEXT], span[TIME_TEXT], part[TIME_TEXT], subject[ACTOR_TEXT] = "all machines";
	struct finding first;
	struct shown_moment moment = { 0 };
	char *verdict = NULL, *explanation = NULL, *warnings = NULL, *history = NULL, *picture = NULL, *timeline = NULL;
	size_t picture_bytes;
	char *steal_argv[] = { (char[]){ "steal" }, t->history, (char[]){ "--by" }, (char[]){ "thread" },
		(char[]){ "--format" }, (char[]){ "csv" }, (char[]){ "--top" }, (char[]){ ROWS }, t->target, NULL };
	char *gaps_argv[] = { (char[]){ "gaps" }, t->history, (char[]){ "--format" }, (char[]){ "csv" }, (char[]){ "--top" },
		(char[]){ ROWS }, t->target, NULL };
	char *info_argv[] = { (char[]){ "info" }, t->history, NULL };
	char *picture_argv[] = { (char[]){ "picture" }, t->history, (char[]){ "-o" }, t->picture, (char[]){ "--theme" },
		(char[]){ "cvd-light" }, t->target, NULL };
	char *culprits = ask(cmd_steal, steal_argv, err);
	char *gaps = culprits ? ask(cmd_gaps, gaps_argv, err) : NULL, *info = gaps ? ask(cmd_info, info_argv, err) : NULL;
	char *drawn = info ? ask(cmd_picture, picture_argv, err) : NULL;
	int rc = drawn ? query_context_open(&s, t->history, &whole, err) : -1;
	if (rc == 0) {
		if (t->target)
			rc = target_parse(&s, t->target, &target, err);
		if (rc == 0 && t->target)
			catalog_target_text(&s.catalog, &target, subject, sizeof subject);
		query_context_about(&s, t->target && rc == 0 ? &target : NULL, (struct report_how){ .format = FORMAT_JSON });
		warnings = warnings_text(&s.origin);
		if (rc == 0)
			rc = explain(&s, t->target ? &target : NULL, &first, &explanation, err);
		if (rc == 0 && first.moment.end >= first.moment.start)
			t->moment_start = first.moment.start;
		if (rc == 0)
			rc = show_moment(t, &s, &first, &moment, err);
		verdict = rc == 0 ? mem_printf("%s.", first.text) : NULL;
		if (rc == 0)
			rc = make_timeline(&s, t->target ? &target : NULL, &first.moment, moment.gaps ? moment.gaps : gaps, &timeline,
			                   err);
		rc = query_context_close(&s, rc, err);
	}
	if (rc == 0 && !(picture = read_file(t->picture, &picture_bytes, err)))
		rc = -1;
	if (rc == 0) {
		omit_directory(info, t->history);
		time_date(from, t->from, 6)[TIME_DATE + 16] = '\0';
		time_date(to, t->to, 6)[TIME_DATE + 16] = '\0';
		struct ticket_page p = {
			.subject = subject, .from = from, .to = to, .span = time_duration(span, t->to - t->from), .verdict = verdict,
			.explanation = explanation, .culprits = culprits, .gaps = moment.gaps ? moment.gaps : gaps,
			.moment = moment.picture, .moment_title = moment.title, .warnings = warnings, .recording = info,
			.picture = picture, .timeline = timeline, .start = t->from, .target = t->target ? t->target : "",
			.has_victims = !t->target || target.kind == TARGET_MACHINE, .history_name = HISTORY_FILE,
			.has_aliases = t->key != NULL,
		};
		if (t->is_page)
			rc = embed_history(t, &p, &history, part, err);
		if (rc == 0)
			rc = write_ticket(t, &p, err);
	}
	char *const all[] = { culprits, gaps, info, drawn, verdict, explanation, warnings, history, picture, timeline,
		moment.picture, moment.gaps };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	return rc;
}

/* ---- files */

static bool is_html(const char *path)
{
	return file_begins_with(path, "<!DOCTYPE html", 14);
}

/* Makes the directory for the files: the output directory, which must not exist, or a temporary one. */
static int make_dir(struct ticket *t, struct error *err)
{
	const char *base = getenv("TMPDIR");
	if (!t->is_page) {
		if (snprintf(t->dir, sizeof t->dir, "%s", t->output) < (int)sizeof t->dir && mkdir(t->dir, 0777) == 0)
			return 0;
		return errno == EEXIST ? error_set(err, STATUS_USAGE, "use a new name", "-o %s: it exists", t->output)
		                       : error_system(err, "use -o FILE.html, or the name of a new directory", "-o %s", t->output);
	}
	const int n = snprintf(t->dir, sizeof t->dir, "%s/stealscope-ticket-XXXXXX", base && *base ? base : "/tmp");
	if (n < (int)sizeof t->dir && mkdtemp(t->dir))
		return 0;
	return error_system(err, "set TMPDIR", "cannot make a temporary directory");
}

static void remove_files(const struct ticket *t, bool all)
{
	static const char *const name[] = { "key", HISTORY_FILE, "picture.svg", "ticket.html", "ticket.txt" };
	for (size_t i = 0; i < (all ? sizeof name / sizeof *name : 1); i++) {
		char *path = mem_printf("%s/%s", t->dir, name[i]);
		unlink(path);
		free(path);
	}
	if (all)
		rmdir(t->dir);
}

/* Returns true if the letters after a dot look like a file type, as opposed to a directory's version or date. */
static bool is_file_type(const char *letters)
{
	size_t n = 0;
	while (isalpha((unsigned char)letters[n]))
		n++;
	return n && n <= 4 && !letters[n];
}

int cmd_ticket(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct ticket t = { 0 };
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE.html|DIR", "page to write, or a new directory", &t.output, NULL },
		WINDOW_OPTIONS(&when),
		{ "names", 0, OPT_CHOICE, "HOW", "keep, or hash: remove all original names", &t.names, names_choice },
	};
	const struct opts opts = { "ticket RECORDING [TARGET] -o FILE.html|DIR",
		"Write a page for a ticket: verdict, culprits, picture, cut history.", opt, sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (!t.output)
		return error_set(err, STATUS_USAGE, "use -o FILE.html or -o DIR", "ticket: no output specified");
	const char *slash = strrchr(t.output, '/'), *dot = strrchr(slash ? slash : t.output, '.');
	t.is_page = dot && strcmp(dot, ".html") == 0;
	if (dot && !t.is_page && is_file_type(dot + 1))
		return error_set(err, STATUS_USAGE, "use -o FILE.html, or -o DIR without a dot", "-o %s: a ticket cannot be %s",
		                 t.output, dot);
	if ((t.is_page && refuse_overwrite(t.output, is_html, "an HTML page", err)) || make_dir(&t, err))
		return -1;
	t.history = mem_printf("%s/%s", t.dir, HISTORY_FILE);
	t.picture = mem_printf("%s/picture.svg", t.dir);
	int rc = cut_window(&t, argv[first], argc - first > 1 ? argv[first + 1] : NULL, &when, err);
	if (rc == 0) {
		setenv("TZ", "UTC", 1);  /* after the options' times, which are local */
		tzset();
		rc = make_page(&t, err);
	}
	remove_files(&t, t.is_page || rc != 0);
	if (rc == 0)
		printf("%s\n", t.output);
	free(t.history);
	free(t.picture);
	free(t.key);
	free(t.target);
	return rc;
}
