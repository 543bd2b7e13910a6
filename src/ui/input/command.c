#include "ui/input/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/bookmarks.h"
#include "ui/core/row_search.h"
#include "ui/core/gap_search.h"
#include "ui/core/clock_offset.h"
#include "ui/terminal/screen_file.h"
#include "ui/panes/pane.h"
#include "ui/core/viewer.h"
#include "ui/core/file_watch.h"

/* X(name, arguments, help, function) */
#define COMMANDS(X) \
	X("goto", "TIME|ROW", "+3ms, -3ms, 50%, 12:03:04.5 or Debian/3525; :50% does, too", cmd_goto) \
	X("zoom", "DURATION", "make the window that long", cmd_zoom) \
	X("export", "[FILE]", "write the pane to FILE: .txt, .csv or .json", cmd_export) \
	X("theme", "[NAME]", "take another theme: a name or a file; none: list", cmd_theme) \
	X("set", "OPTION", "see below", cmd_set) \
	X("filter", "[TEXT]", "show only threads whose name contains TEXT", cmd_filter) \
	X("search", "TEXT", "go to the next row that contains TEXT", cmd_search) \
	X("key", "KEYS", "press keys: :key 3><Enter>", cmd_key) \
	X("reload", "", "open the history's file again, after it changed", cmd_reload) \
	X("offset", "[VM TIME]", "move a guest's clock: Debian +3us; save [FILE]; none: list", cmd_offset) \
	X("mark", "[NOTE]", "bookmark this row and time, with a note", cmd_mark) \
	X("diff", "[HISTORY]", "what changed since HISTORY, or against the rest", cmd_diff) \
	X("screen", "FILE", "write the screen to FILE: text, or a picture: .svg .html", cmd_screen) \
	X("help", "", "open the help", cmd_help) \
	X("quit", "", "leave", cmd_quit)

#define COMMAND_DECLARE(name, args, help, fn) static void fn(struct app *app, const char *arg);
COMMANDS(COMMAND_DECLARE)
#define COMMAND_ENTRY(name, args, help, fn) { name, args, help, fn },
static const struct {
	const char *name, *args, *help;
	void (*run)(struct app *app, const char *arg);
} commands[] = { COMMANDS(COMMAND_ENTRY) };

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static bool goto_time(struct app *app, const char *text)
{
	int64_t t;
	struct view before = app->view;
	if (!time_parse(text, app->ground.begin, app->ground.end, &t))
		return false;
	if (t < app->ground.begin || t > app->ground.end)
		app_say(app, "that is outside the trace: its %s is taken", t < app->ground.begin ? "start" : "end");
	view_goto(&app->view, &app->ground, t);
	undo_push(&app->undo, &before);
	return true;
}

static void goto_row(struct app *app, const char *text)
{
	static const enum row_kind kind[] = { [SUBJECT_MACHINE] = ROW_MACHINE, [SUBJECT_CPU] = ROW_CPU,
		[SUBJECT_THREAD] = ROW_THREAD };
	struct error err = ERROR_INIT;
	struct subject s;
	struct view before = app->view;
	if (topo_parse_subject(&app->topo, text, &s, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	app_show_row(app, (struct row_id){ (uint8_t)kind[s.kind], s.index });
	undo_push(&app->undo, &before);
}

/* A number that is no moment of the trace, but the TID of a thread: of several, who they are is told. */
static bool goto_tid(struct app *app, const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	const int32_t tid = digits > 0 && digits < 10 && !text[digits] ? atoi(text) : -1;
	size_t found = 0;
	int thread = -1;
	for (uint32_t m = 0; m < app->topo.machines && tid > 0 && tid < app->ground.begin; m++) {
		const int one = topo_find_thread(&app->topo, m, tid);
		found += one >= 0;
		thread = one >= 0 ? one : thread;
	}
	if (found > 1) {
		goto_row(app, text);
	} else if (found == 1) {
		struct view before = app->view;
		app_show_row(app, (struct row_id){ ROW_THREAD, (uint32_t)thread });
		undo_push(&app->undo, &before);
	}
	return found > 0;
}

/* Somebody is called so, or several are. */
static bool is_name(const struct app *app, const char *text)
{
	struct subject *found;
	size_t n;
	bool is = topo_find_subjects(&app->topo, text, &found, &n, NULL) == 0 && n > 0;
	free(found);
	return is;
}

static bool looks_like_time(const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	return *text == '+' || *text == '-' || (digits && text[digits]);
}

static void cmd_goto(struct app *app, const char *arg)
{
	if (!*arg)
		app_refuse(app, "goto wants a time (+3ms 50%% 12:03:04) or a row (VM/TID)");
	else if (goto_tid(app, arg) || goto_time(app, arg))
		return;
	else if (looks_like_time(arg) && !is_name(app, arg))
		app_refuse(app, "%.60s: not a time (+3ms -3ms 50%% 12:03:04)", arg);
	else
		goto_row(app, arg);
}

static void cmd_zoom(struct app *app, const char *arg)
{
	int64_t ns;
	struct view before = app->view;
	if (!time_parse_duration(arg, &ns) || ns <= 0) {
		app_refuse(app, "zoom wants a duration, such as 20ms");
		return;
	}
	int64_t half = ns / 2, cursor = app->view.cursor;
	view_fit(&app->view, &app->ground, cursor - half, cursor - half + ns - 1, 1, 1);
	view_goto(&app->view, &app->ground, cursor);
	undo_push(&app->undo, &before);
}

static void cmd_export(struct app *app, const char *arg)
{
	export_pane(app, arg);
}

static void cmd_theme(struct app *app, const char *arg)
{
	struct error err = ERROR_INIT;
	struct theme theme;
	if (!*arg)
		pane_open(app, LIST_THEMES);
	else if (theme_load(&theme, arg, &err) < 0)
		app_fail(app, &err);
	else
		look_set_theme(app, &theme);
}

static bool set_tier(struct app *app, const char *value)
{
	for (int t = 0; t < TIERS; t++) {
		if (strcmp(value, tier_name[t]) == 0) {
			app->look.tier = (enum tier)t;
			return true;
		}
	}
	return false;
}

static bool set_depth(struct app *app, const char *value)
{
	static const struct { const char *name; enum depth depth; } depths[] = {
		{ "never", DEPTH_MONO }, { "mono", DEPTH_MONO }, { "8", DEPTH_8 }, { "16", DEPTH_16 }, { "256", DEPTH_256 },
	};
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		if (strcmp(value, depths[i].name) == 0) {
			look_set_depth(app, depths[i].depth);
			return true;
		}
	}
	return false;
}

static bool set_time(struct app *app, const char *value)
{
	static const char *const names[TIME_FORMATS] = { "wall", "relative", "trace" };
	for (int f = 0; f < TIME_FORMATS; f++) {
		if (strcmp(value, names[f]) == 0) {
			if (f == TIME_RELATIVE && app->view.a == VIEW_NONE)
				app_refuse(app, "set marker A with ( first");
			else
				action_time_format(app, (enum time_format)f);
			return true;
		}
	}
	return false;
}

static bool set_least_gap(struct app *app, const char *value)
{
	if (!hunt_set_least(app, value))
		return false;
	app_say(app, "> and < stop at gaps of %s or more", value);
	return true;
}

static bool set_flag(struct app *app, const char *name)
{
	bool on = strncmp(name, "no", 2) != 0;
	name += on ? 0 : 2;
	if (strcmp(name, "mouse") == 0) {
		app->mouse = on;
		app_say(app, on ? "the mouse is the viewer's; with Shift, the terminal's" : "the mouse is the terminal's");
		return true;
	}
	if (strcmp(name, "hostthread") == 0) {
		app->rows.show_executors = on;
		rows_build(&app->rows);
		return true;
	}
	if (strcmp(name, "idle") == 0) {
		action_hide_idle(app, !on);
		return true;
	}
	return false;
}

static const struct { const char *name, *help; } settings[] = {
	{ "glyphs=", "blocks, cells or ascii" }, { "color=", "never, 8, 16 or 256" },
	{ "time=", "wall, relative (to marker A) or trace" },
	{ "mingap=", "> and < pass over gaps shorter than that: 100us; 0 = none" },
	{ "[no]idle", "show idle rows" }, { "[no]mouse", "take the mouse: wheel, drag" },
	{ "[no]hostthread", "beneath each vCPU, show the thread that executes it" },
};

#define SETTING_COUNT (sizeof settings / sizeof *settings)

static void refuse_setting(struct app *app, const char *name)
{
	char all[200] = "";
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const size_t used = strlen(all), n = strcspn(settings[i].name, "=");
		if (settings[i].name[n] && strncmp(settings[i].name, name, n) == 0 && !name[n]) {
			app_refuse(app, "set %s  %s", settings[i].name, settings[i].help);
			return;
		}
		snprintf(all + used, sizeof all - used, " %s", settings[i].name);
	}
	app_refuse(app, "set wants one of%s; ? tells more", all);
}

static void cmd_set(struct app *app, const char *arg)
{
	char name[32];
	const char *value = strchr(arg, '=');
	snprintf(name, sizeof name, "%.*s", value ? (int)(value - arg) : (int)strlen(arg), arg);
	value = value ? value + 1 : "";
	bool known = (strcmp(name, "glyphs") == 0 && set_tier(app, value)) ||
	             (strcmp(name, "color") == 0 && set_depth(app, value)) ||
	             (strcmp(name, "time") == 0 && set_time(app, value)) ||
	             (strcmp(name, "mingap") == 0 && set_least_gap(app, value)) || set_flag(app, arg);
	if (!known)
		refuse_setting(app, name);
	app->redraw = true;
}

static void cmd_filter(struct app *app, const char *arg)
{
	find_filter(app, arg);
}

static void cmd_search(struct app *app, const char *arg)
{
	if (*arg)
		find_set(app, arg);
	action_do(app, ACT_SEARCH_NEXT);
}

static void cmd_key(struct app *app, const char *arg)
{
	uint32_t key;
	if (!*arg)
		app_refuse(app, "key wants keys, such as 3><Enter>");
	while (*arg && (key = key_parse(&arg)) != 0)
		viewer_key(app, key);
}

static void cmd_screen(struct app *app, const char *arg)
{
	char shown[PROMPT_LONGEST];
	struct screen s = { 0 };
	struct save save;
	struct error err = ERROR_INIT;
	if (!*arg) {
		app_refuse(app, "screen wants the name of a file");
		return;
	}
	if (export_begin(app, arg, &save, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	screen_resize(&s, app->w, app->h_cells);
	viewer_draw(app, &s);
	paint_screen(&s, paint_of(arg), app->look.theme.light, "stealscope", save.f);
	screen_release(&s);
	if (save_end(&save, 0, &err) < 0)
		app_fail(app, &err);
	else if (!app->patient)  /* a script's screens would have it */
		app_say(app, "wrote %.300s", text_escape(shown, sizeof shown, arg));
}

static void cmd_reload(struct app *app, const char *arg)
{
	(void)arg;
	viewer_reload(app);
}

static void cmd_mark(struct app *app, const char *arg)
{
	bookmarks_add(app, arg);
}

static void cmd_help(struct app *app, const char *arg)
{
	(void)arg;
	pane_open(app, LIST_HELP);
}

static void cmd_diff(struct app *app, const char *arg)
{
	pane_diff(app, arg);
}

static void cmd_quit(struct app *app, const char *arg)
{
	(void)arg;
	app->quit = true;
}

static int find_guest(const struct app *app, const char *name)
{
	int m = topo_find_machine(&app->topo, name);
	return m >= 0 && app->topo.machine[m].kind == MACHINE_VM ? m : -1;
}

static void offset_save(struct app *app, const char *file)
{
	struct error err = ERROR_INIT;
	char said[sizeof app->message];
	if (nudge_save(app, file, said, sizeof said, &err) < 0)
		app_fail(app, &err);
	else
		app_say(app, "%s", said);
}

/* For examples: a guest that there is. */
static const char *some_guest(const struct app *app, char *buf, size_t size)
{
	uint32_t m = 0;
	while (m < app->topo.machines && app->topo.machine[m].kind != MACHINE_VM)
		m++;
	return text_escape(buf, size, m < app->topo.machines ? app->topo.machine[m].name : "GUEST");
}

/* "my guest +3 us": the guest that the words begin with, and the time behind it. */
static bool split_offset(const struct app *app, const char *arg, char *guest, size_t size, int64_t *ns)
{
	for (const char *at = strchr(arg, ' '); at; at = strchr(at + 1, ' ')) {
		snprintf(guest, size, "%.*s", (int)(at - arg), arg);
		if (find_guest(app, guest) >= 0)
			return time_parse_duration(at + strspn(at, " "), ns);
	}
	return false;
}

/* Another history is made, by who opened this one: see clock_offset.c. */
static void cmd_offset(struct app *app, const char *arg)
{
	char name[256], shown[256], some[128];
	int64_t ns;
	some_guest(app, some, sizeof some);
	if (!nudge_able(app)) {
		app_refuse(app, "clocks are moved in the history that was opened first: leave, and open this one");
	} else if (!*arg && nudge_list(app)[0]) {
		app_say(app, "nudged: %s; :offset save keeps that, :offset %s 0 takes it back", nudge_list(app), some);
	} else if (!*arg) {
		app_say(app, "no clock is nudged; :offset %s +3us makes the events of %s 3 us later", some, some);
	} else if (split_offset(app, arg, name, sizeof name, &ns)) {
		nudge_start(app, name, ns);
	} else if (strncmp(arg, "save", 4) == 0 && (arg[4] == ' ' || !arg[4])) {
		offset_save(app, arg + 4 + strspn(arg + 4, " "));
	} else {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, " "), arg);
		bool known = find_guest(app, name) >= 0 || find_guest(app, arg) >= 0;
		app_refuse(app, "offset: %s \"%.80s\"; as in :offset %s +3us", known ? "no duration in" : "no guest of that name:",
		           text_escape(shown, sizeof shown, arg), some);
	}
}

void command_help(struct pager *pager)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		pager_add(pager, -1, "  :%-6s %-9s %s", commands[i].name, commands[i].args, commands[i].help);
	pager_add(pager, -1, "Settings, after :set")->heading = true;
	for (size_t i = 0; i < SETTING_COUNT; i++)
		pager_add(pager, -1, "  %-16s %s", settings[i].name, settings[i].help);
}

void command_print_mdoc(void)
{
	char name[32];
	puts(".Ss Commands\nA name may be cut as long as none before it begins so\n.Pq Ql :th ssh .");
	puts(".Bl -tag -width \":set [no]hostthread\" -compact");
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		snprintf(name, sizeof name, ":%s", commands[i].name);
		key_print_mdoc(".It Ic", name);
		if (*commands[i].args)
			key_print_mdoc(" Ar", commands[i].args);
		printf("\n%s\n", commands[i].help);
	}
	puts(".El\n.Ss Settings\n.Bl -tag -width \":set [no]hostthread\" -compact");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		key_print_mdoc(".It Ic :set", settings[i].name);
		printf("\n%s\n", settings[i].help);
	}
	puts(".El");
}

/* The text behind `head` that all candidates share; "" when none begins with it. */
static void common_rest(const char *candidate, const char *head, char *rest, size_t size, unsigned *found)
{
	size_t n = strlen(head);
	if (strncmp(candidate, head, n) != 0)
		return;
	if ((*found)++ == 0) {
		snprintf(rest, size, "%s", candidate + n);
	} else {
		size_t same = 0;
		while (rest[same] && rest[same] == candidate[n + same])
			same++;
		rest[same] = '\0';
	}
}

/* The i-th word that may stand there; NULL: there are no more.  *head moves to where the word begins. */
static const char *candidate(const char *line, unsigned i, const char **head)
{
	static const char *const words[] = { "color=", "glyphs=", "hostthread", "idle", "mingap=", "mouse", "nohostthread",
		"noidle", "nomouse", "time=", NULL };
	bool theme = strncmp(line, "theme ", 6) == 0, set = strncmp(line, "set ", 4) == 0;
	*head = line + (theme ? 6 : set ? 4 : 0);
	return theme ? theme_shipped_name(i) : set ? words[i] : i < COMMAND_COUNT ? commands[i].name : NULL;
}

void command_complete(struct app *app)
{
	char rest[128] = "", all[256] = "";
	const char *line = app->prompt.text, *head, *word;
	unsigned found = 0;
	if (app->prompt.at != strlen(line))
		return;
	for (unsigned i = 0; (word = candidate(line, i, &head)); i++) {
		unsigned before = found;
		common_rest(word, head, rest, sizeof rest, &found);
		size_t used = strlen(all);
		if (found > before)
			snprintf(all + used, sizeof all - used, "%s%s", used ? " " : "", word);
	}
	if (found > 1 && !rest[0])
		app_say(app, "%s", all);
	bool command = head == line;
	prompt_insert(&app->prompt, rest);
	if (found == 1 && command)
		prompt_insert(&app->prompt, " ");
}

static void refuse_line(struct app *app, const char *line, size_t n)
{
	char word[32], mend[48] = "";
	snprintf(word, sizeof word, "%.*s", (int)n, line);
	struct suggestion near = SUGGESTION(word);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		suggest(&near, commands[i].name);
	if (near.nearest)
		snprintf(mend, sizeof mend, "; did you mean :%s?", near.nearest);
	app_refuse(app, "%.60s: neither a command, a time (+3ms 50%% 12:03:04) nor a row (VM/TID)%s", line, mend);
}

/* Names may be cut: ":th ssh", and end as in vi: ":q!".  What is no command is where to go. */
void command_run(struct app *app, const char *line)
{
	line += strspn(line, " :");
	size_t n = strcspn(line, " ");
	const char *arg = line + n + strspn(line + n, " ");
	n -= n > 1 && line[n - 1] == '!';
	if (n == 0)
		return;
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		bool reads = commands[i].run != cmd_reload && commands[i].run != cmd_quit;
		if (strncmp(commands[i].name, line, n) == 0 && !(reads && watch_torn(app))) {
			commands[i].run(app, arg);
			return;
		}
	}
	if (watch_torn(app)) {
		app_refuse(app, "nothing more is read from a history that changed: :reload opens it again, :quit leaves");
		return;
	}
	if (goto_tid(app, line) || goto_time(app, line))
		return;
	if (strchr(line, '/') || is_name(app, line))
		goto_row(app, line);
	else
		refuse_line(app, line, n);
}
