#include "ui/input/command.h"

#include "base/base.h"
#include "base/suggest.h"
#include "ui/core/bookmarks.h"
#include "ui/core/row_search.h"
#include "ui/core/gap_search.h"
#include "ui/core/longest_gap.h"
#include "ui/core/clock_offset.h"
#include "ui/terminal/screen_file.h"
#include "ui/panes/pane.h"
#include "ui/core/viewer.h"
#include "ui/core/file_watch.h"
#include "ui/widgets/window_sums.h"

/* Table of commands: X(name, arguments, help, function). */
#define COMMANDS(X) \
	X("goto", "TIME|ROW", "to +3ms, 50%, 12:03:04.5, Debian@12:03:04 or Debian/3525", cmd_goto) \
	X("longest", "[ROW]", "longest gap of this row, or of ROW: a name or a TID", cmd_longest) \
	X("zoom", "DURATION", "make the window DURATION long", cmd_zoom) \
	X("export", "[FILE]", "write the pane to FILE: .txt, .csv or .json", cmd_export) \
	X("theme", "[NAME]", "use another theme (a name or file); no NAME: list them", cmd_theme) \
	X("set", "OPTION", "change a setting, see below", cmd_set) \
	X("filter", "[TEXT]", "names that contain TEXT or match ~REGEX; process:NAME", cmd_filter) \
	X("search", "TEXT", "go to the next row that contains TEXT", cmd_search) \
	X("key", "KEYS", "press keys: :key 3><Enter>", cmd_key) \
	X("reload", "", "reopen the history file after it changed", cmd_reload) \
	X("offset", "[VM TIME]", "shift a guest's clock (Debian +3us); save [FILE]; or list", cmd_offset) \
	X("mark", "[NOTE]", "bookmark this row and time, with a note", cmd_mark) \
	X("diff", "[HISTORY]", "changes since HISTORY, or compared with the rest", cmd_diff) \
	X("screen", "FILE", "write the screen to FILE: text, .svg or .html", cmd_screen) \
	X("help", "", "open the help", cmd_help) \
	X("quit", "", "quit the viewer", cmd_quit)

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
	struct error err = ERROR_INIT;
	const int guest = guest_time_parse(&app->catalog, text, &t, &err);
	if (guest < 0) {
		app_fail(app, &err);
		return true;
	}
	if (guest == 0 && !time_parse(text, app->bounds.begin, app->bounds.end, &t))
		return false;
	if (t < app->bounds.begin || t > app->bounds.end)
		app_message(app, "outside the trace: moved to its %s", t < app->bounds.begin ? "start" : "end");
	view_goto(&app->view, &app->bounds, t);
	undo_push(&app->undo, &before);
	return true;
}

/* Selects the row. If it is a thread that is not alive in the window, moves the window to its first moment. */
static void select_alive(struct app *app, struct row_id row)
{
	int64_t start, end;
	const int64_t thread = row_thread(&app->catalog, row);
	const struct target s = { TARGET_THREAD, (uint32_t)(thread < 0 ? 0 : thread) };
	app_show_row(app, row);
	if (thread < 0 || catalog_lifetime(&app->catalog, &s, &start, &end, NULL) <= 0)
		return;
	if (start > view_last(&app->view, &app->bounds) || end < app->view.t0) {
		view_goto(&app->view, &app->bounds, start);
		app_message(app, "not alive in that window: moved to its start");
	}
}

static void goto_row(struct app *app, const char *text)
{
	static const enum row_kind kind[] = { [TARGET_MACHINE] = ROW_MACHINE, [TARGET_CPU] = ROW_CPU,
		[TARGET_THREAD] = ROW_THREAD };
	struct error err = ERROR_INIT;
	const int process = catalog_find_process(&app->catalog, text);
	struct target s = { TARGET_THREAD, (uint32_t)process };
	struct view before = app->view;
	if (process < 0 && catalog_parse_target(&app->catalog, text, &s, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	select_alive(app, (struct row_id){ (uint8_t)kind[s.kind], s.index });
	undo_push(&app->undo, &before);
}

/* Goes to the thread with this TID, unless the number is a time of the trace. If several threads have it, shows an error
 * that lists them. Returns false if no thread has it. */
static bool goto_tid(struct app *app, const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	const int32_t tid = digits > 0 && digits < 10 && !text[digits] ? atoi(text) : -1;
	size_t found = 0;
	int thread = -1;
	for (uint32_t m = 0; m < app->catalog.machines && tid > 0 && tid < app->bounds.begin; m++) {
		const int one = catalog_find_thread(&app->catalog, m, tid);
		found += one >= 0;
		thread = one >= 0 ? one : thread;
	}
	if (found > 1) {
		goto_row(app, text);
	} else if (found == 1) {
		struct view before = app->view;
		select_alive(app, (struct row_id){ ROW_THREAD, (uint32_t)thread });
		undo_push(&app->undo, &before);
	}
	return found > 0;
}

/* Returns true if a machine, CPU, thread or process has that name. */
static bool names_target(const struct app *app, const char *text)
{
	struct target *found;
	size_t n;
	const bool any = catalog_find_targets(&app->catalog, text, &found, &n, NULL) == 0 && n > 0;
	free(found);
	return any || catalog_find_process(&app->catalog, text) >= 0;
}

static bool looks_like_time(const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	return *text == '+' || *text == '-' || (digits && text[digits]);
}

static void cmd_goto(struct app *app, const char *arg)
{
	if (!*arg)
		app_refuse(app, "goto: missing time (+3ms 50%% 12:03:04) or row (VM/TID)");
	else if (goto_tid(app, arg) || goto_time(app, arg))
		return;
	else if (looks_like_time(arg) && !names_target(app, arg))
		app_refuse(app, "%.60s: not a time (+3ms -3ms 50%% 12:03:04)", arg);
	else
		goto_row(app, arg);
}

static void cmd_longest(struct app *app, const char *arg)
{
	longest_gap_show(app, arg);
}

static void cmd_zoom(struct app *app, const char *arg)
{
	int64_t ns;
	struct view before = app->view;
	if (!time_parse_duration(arg, &ns) || ns <= 0) {
		app_refuse(app, "zoom: missing or invalid duration (such as 20ms)");
		return;
	}
	int64_t half = ns / 2, cursor = app->view.cursor;
	view_fit(&app->view, &app->bounds, cursor - half, cursor - half + ns - 1, 1, 1);
	view_goto(&app->view, &app->bounds, cursor);
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
		appearance_set_theme(app, &theme);
}

static bool set_tier(struct app *app, const char *value)
{
	for (int t = 0; t < TIERS; t++) {
		if (strcmp(value, tier_name[t]) == 0) {
			app->appearance.tier = (enum tier)t;
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
			appearance_set_depth(app, depths[i].depth);
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

static bool set_min_gap(struct app *app, const char *value)
{
	if (!gap_search_set_min(app, value))
		return false;
	app_message(app, "> and < stop at gaps of %s or more", value);
	return true;
}

static bool set_flag(struct app *app, const char *name)
{
	bool on = strncmp(name, "no", 2) != 0;
	name += on ? 0 : 2;
	if (strcmp(name, "mouse") == 0) {
		app->mouse = on;
		app_message(app, on ? "mouse on (hold Shift to select text)" : "mouse off");
		return true;
	}
	if (strcmp(name, "hostthread") == 0) {
		app->rows.show_executors = on;
		return rows_build(&app->rows), true;
	}
	if (strcmp(name, "below") == 0)
		return window_sums_show(app, on), true;
	if (strcmp(name, "idle") == 0)
		return action_hide_idle(app, !on), true;
	return false;
}

static const struct { const char *name, *help; } settings[] = {
	{ "glyphs=", "blocks, cells or ascii" }, { "color=", "never, 8, 16 or 256" },
	{ "time=", "wall, relative (to marker A) or trace" },
	{ "mingap=", "> and < skip gaps shorter than this: 100us; 0 = none" },
	{ "[no]below", "show the sums of the window below the rows" },
	{ "[no]idle", "show idle rows" }, { "[no]mouse", "use the mouse: wheel, drag" },
	{ "[no]hostthread", "show the host thread of each vCPU below it" },
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
	app_refuse(app, "set: unknown option; choose from%s (? for help)", all);
}

static void cmd_set(struct app *app, const char *arg)
{
	char name[32], flag[40];
	const char *value = strchr(arg, '=');
	snprintf(name, sizeof name, "%.*s", value ? (int)(value - arg) : (int)strlen(arg), arg);
	value = value ? value + 1 : "";
	snprintf(flag, sizeof flag, "%s%s", strcmp(value, "no") == 0 ? "no" : "", name);  /* below=no is nobelow */
	bool known = (strcmp(name, "glyphs") == 0 && set_tier(app, value)) ||
	             (strcmp(name, "color") == 0 && set_depth(app, value)) ||
	             (strcmp(name, "time") == 0 && set_time(app, value)) ||
	             (strcmp(name, "mingap") == 0 && set_min_gap(app, value)) ||
	             ((!*value || strcmp(value, "yes") == 0 || strcmp(value, "no") == 0) && set_flag(app, flag));
	if (!known)
		refuse_setting(app, name);
	app->redraw = true;
}

static void cmd_filter(struct app *app, const char *arg)
{
	row_filter_set(app, arg);
}

static void cmd_search(struct app *app, const char *arg)
{
	if (*arg)
		row_search_set(app, arg);
	action_do(app, ACT_SEARCH_NEXT);
}

static void cmd_key(struct app *app, const char *arg)
{
	uint32_t key;
	if (!*arg)
		app_refuse(app, "key: missing keys (such as 3><Enter>)");
	while (*arg && (key = key_parse(&arg)) != 0)
		viewer_key(app, key);
}

static void cmd_screen(struct app *app, const char *arg)
{
	char shown[PROMPT_MAX_BYTES];
	struct screen s = { 0 };
	struct save save;
	struct error err = ERROR_INIT;
	if (!*arg) {
		app_refuse(app, "screen: missing file name");
		return;
	}
	if (export_begin(app, arg, &save, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	screen_resize(&s, app->w, app->h_cells);
	viewer_draw(app, &s);
	paint_screen(&s, paint_format_of(arg), app->appearance.theme.light, "stealscope", save.f);
	screen_release(&s);
	if (atomic_file_end(&save, 0, &err) < 0)
		app_fail(app, &err);
	else if (!app->waits_for_answers)  /* scripts compare screens: the message would appear on the next screen */
		app_message(app, "wrote %.300s", text_escape(shown, sizeof shown, arg));
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
	int m = catalog_find_machine(&app->catalog, name);
	return m >= 0 && app->catalog.machine[m].kind == MACHINE_VM ? m : -1;
}

static void offset_save(struct app *app, const char *file)
{
	struct error err = ERROR_INIT;
	char result[sizeof app->message];
	if (manual_offset_save(app, file, result, sizeof result, &err) < 0)
		app_fail(app, &err);
	else
		app_message(app, "%s", result);
}

/* Returns the name of a guest for the examples in messages; "GUEST" if there is none. */
static const char *example_guest(const struct app *app, char *buf, size_t size)
{
	uint32_t m = 0;
	while (m < app->catalog.machines && app->catalog.machine[m].kind != MACHINE_VM)
		m++;
	return text_escape(buf, size, m < app->catalog.machines ? app->catalog.machine[m].name : "GUEST");
}

/* Splits "my guest +3 us" into the name of a guest and an offset. Returns false if there is no such guest or no
 * duration. */
static bool split_offset(const struct app *app, const char *arg, char *guest, size_t size, int64_t *ns)
{
	for (const char *at = strchr(arg, ' '); at; at = strchr(at + 1, ' ')) {
		snprintf(guest, size, "%.*s", (int)(at - arg), arg);
		if (find_guest(app, guest) >= 0)
			return time_parse_duration(at + strspn(at, " "), ns);
	}
	return false;
}

/* Sets, lists or saves clock offsets. See clock_offset.c. */
static void cmd_offset(struct app *app, const char *arg)
{
	char name[256], shown[256], example[128];
	int64_t ns;
	example_guest(app, example, sizeof example);
	if (!manual_offset_supported(app)) {
		app_refuse(app, "clocks can be shifted only in the history opened first: quit and open this one");
	} else if (!*arg && manual_offset_list(app)[0]) {
		app_message(app, "shifted: %s; :offset save keeps it, :offset %s 0 reverts it", manual_offset_list(app), example);
	} else if (!*arg) {
		app_message(app, "no clock is shifted; :offset %s +3us makes the events of %s 3 us later", example, example);
	} else if (split_offset(app, arg, name, sizeof name, &ns)) {
		manual_offset_start(app, name, ns);
	} else if (strncmp(arg, "save", 4) == 0 && (arg[4] == ' ' || !arg[4])) {
		offset_save(app, arg + 4 + strspn(arg + 4, " "));
	} else {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, " "), arg);
		bool known = find_guest(app, name) >= 0 || find_guest(app, arg) >= 0;
		app_refuse(app, "offset: %s \"%.80s\" (example: :offset %s +3us)", known ? "no duration in" : "no guest named",
		           text_escape(shown, sizeof shown, arg), example);
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
	puts(".Ss Commands\nNames can be abbreviated:\n.Ql :th ssh .\nThe first command of the list that begins so is run.");
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

/* Counts a candidate that begins with `head`, and shortens `rest` to the text after `head` that all such candidates
 * share. */
static void shorten_to_common(const char *candidate, const char *head, char *completion, size_t size, unsigned *found)
{
	size_t n = strlen(head);
	if (strncmp(candidate, head, n) != 0)
		return;
	if ((*found)++ == 0) {
		snprintf(completion, size, "%s", candidate + n);
	} else {
		size_t same = 0;
		while (completion[same] && completion[same] == candidate[n + same])
			same++;
		completion[same] = '\0';
	}
}

/* Returns the i-th word that can complete the line; NULL: no more. Sets *head to the start of the word in the line. */
static const char *completion_candidate(const char *line, unsigned i, const char **head)
{
	static const char *const words[] = { "color=", "glyphs=", "hostthread", "idle", "mingap=", "mouse", "nohostthread",
		"noidle", "nomouse", "time=", NULL };
	bool theme = strncmp(line, "theme ", 6) == 0, set = strncmp(line, "set ", 4) == 0;
	*head = line + (theme ? 6 : set ? 4 : 0);
	return theme ? theme_shipped_name(i) : set ? words[i] : i < COMMAND_COUNT ? commands[i].name : NULL;
}

void command_complete(struct app *app)
{
	char completion[128] = "", all[256] = "";
	const char *line = app->prompt.text, *head, *word;
	unsigned found = 0;
	if (app->prompt.at != strlen(line))
		return;
	for (unsigned i = 0; (word = completion_candidate(line, i, &head)); i++) {
		unsigned before = found;
		shorten_to_common(word, head, completion, sizeof completion, &found);
		size_t used = strlen(all);
		if (found > before)
			snprintf(all + used, sizeof all - used, "%s%s", used ? " " : "", word);
	}
	if (found > 1 && !completion[0])
		app_message(app, "%s", all);
	bool command = head == line;
	prompt_insert(&app->prompt, completion);
	if (found == 1 && command)
		prompt_insert(&app->prompt, " ");
}

static void refuse_unknown(struct app *app, const char *line, size_t n)
{
	char word[32], remedy[48] = "";
	snprintf(word, sizeof word, "%.*s", (int)n, line);
	struct suggestion suggestion = SUGGESTION(word);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		suggest(&suggestion, commands[i].name);
	if (suggestion.nearest)
		snprintf(remedy, sizeof remedy, "; did you mean :%s?", suggestion.nearest);
	app_refuse(app, "unknown command, time or row: %.60s%s", line, remedy);
}

/* Runs a command line. Command names may be abbreviated (":th ssh") and end in '!' as in vi (":q!"). If the line is not
 * a command, goes to the time or row with this name. */
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
		if (strncmp(commands[i].name, line, n) == 0 && !(reads && file_watch_is_changed(app))) {
			commands[i].run(app, arg);
			return;
		}
	}
	if (file_watch_is_changed(app)) {
		app_refuse(app, "the history file changed and is no longer read: :reload opens it again, :quit quits");
		return;
	}
	if (goto_tid(app, line) || goto_time(app, line))
		return;
	if (strchr(line, '/') || names_target(app, line))
		goto_row(app, line);
	else
		refuse_unknown(app, line, n);
}
