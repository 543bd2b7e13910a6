#include "cli/recording_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "base/json_field.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "cli/captured_command.h"

#define CLOCK_OF_BOOT (INT64_C(1000000000) * 1000000000)  /* times before 2001 count from the boot, ns */
#define ANSWER_MAX (4 << 20)  /* bytes of an answer that are read */

/* A recording and what its line shows. */
struct line {
	const struct recording_entry *recording;
	struct ui_recording shown;
	char *texts[3];           /* owned: name, who, verdict */
	bool from_cache;
};

struct recording_list {
	const char *dir;
	struct line *line;
	size_t lines;
	struct ui_recording *row;  /* one per line, in the same order */
	/* the recording that is being read: its line, -1: none; the child, the end of its pipe, and its answer so far */
	ptrdiff_t reading;
	pid_t child;
	int pipe;
	char *answer;
	size_t bytes, cap;
	size_t unread;
};

/* ---- lines */

static void set_text(struct line *l, size_t i, const char *text)
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

/* Fills the line from an answer of `summary --format json`. Returns true if it has a window. */
static bool fill_line(struct line *l, struct json_object *answer)
{
	struct json_object *window = json_object_object_get(answer, "window");
	struct json_object *verdict = json_object_object_get(answer, "verdict");
	char who[32];
	if (!window)
		return false;
	const int64_t start = json_member_int(window, "start", 0);
	set_text(l, 1, describe_machines(json_member_array(answer, "rows"), who, sizeof who));
	set_text(l, 2, json_member_text(verdict, "text"));
	l->shown.when = start < CLOCK_OF_BOOT ? l->recording->modified : start;
	l->shown.length = json_member_int(window, "end", start) - start + 1;
	l->shown.share = json_member_real(verdict, "share", -1);
	return true;
}

static void refresh_row(struct recording_list *r, size_t i)
{
	struct line *l = &r->line[i];
	r->row[i] = l->shown;
	r->row[i].name = l->texts[0];
	r->row[i].who = l->texts[1] ? l->texts[1] : "";
	r->row[i].verdict = l->texts[2] ? l->texts[2] : "";
}

/* ---- the cache: one file per directory, with the lines as a json array */

static char *cache_file(const struct recording_list *r)
{
	char name[40], *real = realpath(r->dir, NULL);
	snprintf(name, sizeof name, "list-%016" PRIx64 ".json", hash_text(HASH_BEGIN, real ? real : r->dir));
	free(real);
	return user_file_path("XDG_CACHE_HOME", ".cache", name);
}

static void take_cached(struct recording_list *r, struct json_object *cached)
{
	const char *name = json_member_text(cached, "name"), *key = json_member_text(cached, "fingerprint");
	char fingerprint[24];
	for (size_t i = 0; i < r->lines; i++) {
		struct line *l = &r->line[i];
		snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, l->recording->fingerprint);
		if (strcmp(l->recording->name, name) != 0 || strcmp(key, fingerprint) != 0)
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

static void load_cache(struct recording_list *r)
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

static struct json_object *line_as_json(const struct line *l)
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
static void save_cache(const struct recording_list *r)
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

/* ---- reading */

static void exec_summary(const char *path, int output)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		execl("/proc/self/exe", "stealscope", "summary", path, "--format", "json", "--top", "1", (char *)NULL);
	_exit(STATUS_SYSTEM);
}

static void start_reading(struct recording_list *r, size_t i)
{
	int end[2];
	if (pipe2(end, O_CLOEXEC))
		return;
	fflush(NULL);
	r->child = fork();
	if (r->child == 0)
		exec_summary(r->line[i].recording->path, end[1]);
	close(end[1]);
	if (r->child < 0) {
		close(end[0]);
		return;
	}
	fcntl(end[0], F_SETFL, O_NONBLOCK);
	r->pipe = end[0];
	r->reading = (ptrdiff_t)i;
	r->bytes = 0;
}

/* Takes the answer of a child that ended: notes on stderr may precede the json. */
static void finish_reading(struct recording_list *r)
{
	struct line *l = &r->line[r->reading];
	int status = 0;
	while (waitpid(r->child, &status, 0) < 0 && errno == EINTR)
		continue;
	close(r->pipe);
	char *begin = r->answer ? strstr(r->answer, "{\n  \"program\"") : NULL;
	struct json_object *answer = begin ? json_parse(begin, strlen(begin)) : NULL;
	l->shown.read = true;
	if (!answer || !fill_line(l, answer)) {
		char *text = r->answer ? r->answer : (char[]){ "" };
		text[strcspn(text, "\n")] = '\0';
		set_text(l, 1, "");
		set_text(l, 2, strncmp(text, "stealscope: ", 12) == 0 ? text + 12 : *text ? text : "unreadable");
		l->shown.failed = true;
	}
	json_object_put(answer);
	refresh_row(r, (size_t)r->reading);
	r->reading = -1;
	r->unread--;
}

/* Reads the bytes that are there. Returns true at the end of the answer. */
static bool read_answer(struct recording_list *r)
{
	for (;;) {
		if (r->bytes + 4097 > r->cap)
			r->answer = mem_resize(r->answer, r->cap = 2 * r->cap + 8192, 1);
		const ssize_t n = read(r->pipe, r->answer + r->bytes, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r->answer[r->bytes] = '\0';
			return n == 0 || errno != EAGAIN;
		}
		r->bytes = r->bytes + (size_t)n < ANSWER_MAX ? r->bytes + (size_t)n : r->bytes;
	}
}

/* Goes on with reading: the lines at `first` ... come first. Returns the pipe to wait for; -1: all is read. */
static int step(void *arg, const size_t *wanted, size_t n)
{
	struct recording_list *r = arg;
	if (r->reading >= 0 && read_answer(r))
		finish_reading(r);
	for (size_t k = 0; k < n && r->reading < 0; k++)
		if (!r->line[wanted[k]].shown.read)
			start_reading(r, wanted[k]);
	for (size_t i = 0; i < r->lines && r->reading < 0 && r->unread; i++)
		if (!r->line[i].shown.read)
			start_reading(r, i);
	return r->reading >= 0 ? r->pipe : -1;
}

/* ---- what keys do; the screen has left the terminal meanwhile */

static int run_program(char *const *argv, bool then_wait, struct error *err)
{
	int status = 0;
	const pid_t child = fork();
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv("/proc/self/exe", argv);
		_exit(STATUS_SYSTEM);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	const bool failed = child < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
	if (then_wait || failed) {
		char byte = ' ';
		fputs("\nEnter: back to the list ", stdout);
		fflush(stdout);
		while (byte != '\n' && byte != '\r' && read(STDIN_FILENO, &byte, 1) > 0)
			continue;
	}
	return failed ? error_set(err, STATUS_SYSTEM, NULL, "stealscope %s failed", argv[1]) : 0;
}

static int open_recording(void *arg, size_t i, struct error *err)
{
	const struct recording_list *r = arg;
	char *const argv[] = { "stealscope", "view", r->line[i].recording->path, NULL };
	return run_program(argv, false, err);
}

static int compare_recordings(void *arg, size_t i, size_t k, struct error *err)
{
	const struct recording_list *r = arg;
	char *const argv[] = { "stealscope", "diff", r->line[i].recording->path, r->line[k].recording->path, NULL };
	return run_program(argv, true, err);
}

static int write_ticket(void *arg, size_t i, char *message, size_t size, struct error *err)
{
	const struct recording_list *r = arg;
	const char *name = strrchr(r->line[i].recording->path, '/') + 1;
	char *file = mem_printf("%s.html", name);
	char *const argv[] = { "stealscope", "ticket", r->line[i].recording->path, "-o", file, NULL };
	const int rc = run_program(argv, false, err);
	text_escape(message, size, file);
	free(file);
	return rc;
}

/* ---- text */

/* Reads what is unread, then prints a line per recording, the newest first. */
static int print_lines(struct recording_list *r, struct error *err)
{
	char when[TIME_TEXT], length[TIME_TEXT], share[16];
	int width = 9;
	for (int fd; (fd = step(r, NULL, 0)) >= 0;)
		poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, -1);
	for (size_t i = 0; i < r->lines; i++)
		width = text_width(r->line[i].texts[0]) > width ? text_width(r->line[i].texts[0]) : width;
	printf("%-*s  %-16s  %7s  %-5s  %5s  verdict\n", width, "recording", "when", "long", "who", "share");
	for (size_t i = 0; i < r->lines; i++) {
		const struct ui_recording *l = &r->row[i];
		ui_recording_texts(l, when, length, share);
		printf("%s%*s  %-16s  %7s  %-5s  %5s  %s\n", l->name, width - text_width(l->name), "", when, length, l->who, share,
		       l->verdict);
	}
	return fflush(stdout) ? error_system(err, NULL, "cannot write to standard output") : 0;
}

static int compare_ages(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	return (x->recording->modified < y->recording->modified) - (x->recording->modified > y->recording->modified);
}

int recording_list_run(const char *dir, const struct recordings *found, const struct ui_options *options,
                       struct error *err)
{
	struct recording_list r = { .dir = dir, .lines = found->len, .reading = -1, .unread = found->len };
	r.line = mem_new(r.lines, sizeof *r.line);
	r.row = mem_new(r.lines, sizeof *r.row);
	for (size_t i = 0; i < r.lines; i++) {
		r.line[i] = (struct line){ .recording = &found->item[i] };
		r.line[i].shown = (struct ui_recording){ .when = found->item[i].modified, .share = -1 };
		set_text(&r.line[i], 0, found->item[i].name);
	}
	qsort(r.line, r.lines, sizeof *r.line, compare_ages);
	for (size_t i = 0; i < r.lines; i++)
		refresh_row(&r, i);
	load_cache(&r);
	for (size_t i = 0; i < r.lines; i++)
		r.unread -= r.line[i].shown.read;
	const struct ui_recordings list = { &r, dir, r.row, r.lines, step, open_recording, compare_recordings, write_ticket };
	const int rc = isatty(STDOUT_FILENO) && !options->script ? ui_recordings(&list, options, err) : print_lines(&r, err);
	if (r.reading >= 0) {
		kill(r.child, SIGTERM);
		close(r.pipe);
	}
	save_cache(&r);
	for (size_t i = 0; i < r.lines; i++)
		for (size_t k = 0; k < sizeof r.line->texts / sizeof *r.line->texts; k++)
			free(r.line[i].texts[k]);
	free(r.answer);
	free(r.line);
	free(r.row);
	return rc;
}
