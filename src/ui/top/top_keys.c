/* Keys of `stealscope top`. */
#include <math.h>

#include "base/base.h"
#include "ui/input/keys.h"
#include "ui/top/top.h"

static const struct { const char *key, *text; } help[] = {
	{ "1 2 3 4 g", "groups and VMs, processes and vCPUs, CPUs, culprits; g: the next of 1, 2, 4" },
	{ "j k arrows", "down, up; PgDn PgUp Home End. The cursor follows its row" },
	{ "*", "follow the row at the cursor, or stay on the line" },
	{ "Enter", "who took it; again: the culprit's row; on a saved recording: opens it" },
	{ "Esc", "closes, clears the filter, goes back" },
	{ "< > F6  I", "sort by the previous or next column; invert the order" },
	{ "/ F3  n", "search a name; next match" },
	{ "\\ F4", "show only names that contain a text" },
	{ "H", "show or hide idle rows" },
	{ "d", "length of a period" },
	{ "Space", "freeze; Left and Right then walk through the last 10 minutes" },
	{ "r", "record 10 s, and view the longest wait of the selected row" },
	{ "T", "keep the last 10 s whenever the row waits long (a flight recording)" },
	{ "y", "copy the line to the clipboard (OSC 52)" },
	{ "S", "write the screen to an svg file" },
	{ "q F10", "quit" },
};

bool top_help_line(size_t i, const char **key, const char **text)
{
	if (i >= sizeof help / sizeof *help)
		return false;
	*key = help[i].key;
	*text = help[i].text;
	return true;
}

size_t top_listed(const struct top *t)
{
	return t->snapshots < TOP_LISTED ? t->snapshots : TOP_LISTED;
}

const struct top_row *top_selected(const struct top *t)
{
	return t->cursor < t->rows ? &t->row[t->cursor] : NULL;
}

int32_t top_selected_tid(const struct top *t)
{
	const struct top_row *r = top_selected(t);
	return r && r->vcpu >= 0 ? top_shown(t)->vcpu[r->vcpu].tid : -1;
}

static void move_cursor(struct top *t, int64_t by)
{
	const int64_t to = (int64_t)t->cursor + by, last = (int64_t)(t->rows + top_listed(t)) - 1;
	t->cursor = (size_t)clamp64(to, 0, last > 0 ? last : 0);
	top_follow(t);
}

static void search(struct top *t, size_t from)
{
	for (size_t i = 0; t->search[0] && i < t->rows; i++) {
		const size_t at = (from + i) % t->rows;
		if (strstr(t->row[at].name, t->search)) {
			t->cursor = at;
			top_follow(t);
			return;
		}
	}
	snprintf(t->message, sizeof t->message, "no row contains '%s'", t->search);
}

static void walk_back(struct top *t, int by)
{
	if (!t->frozen || (by > 0 && t->back + 1 >= t->samples) || (by < 0 && !t->back)) {
		snprintf(t->message, sizeof t->message, t->frozen ? "no more samples in this direction" :
		         "Space freezes the screen first");
		return;
	}
	t->back = by > 0 ? t->back + 1 : t->back - 1;
}

/* ---- input lines */

/* Writes a trigger for the selected row's machine. The threshold is the largest of 1, 2, 5, 10 ... ms that is not
 * above the longest wait. */
static void propose_trigger(const struct top *t, char *buf, size_t size)
{
	const struct top_row *r = top_selected(t);
	const bool has_vcpu = r && r->vcpu >= 0;
	const int64_t longest = has_vcpu ? top_shown(t)->vcpu[r->vcpu].longest / NS_PER_MS : 0;
	int64_t limit = longest > 0 ? 1 : 10;
	for (int64_t scale = 1; scale <= 1000; scale *= 10)
		for (int64_t step = 1; step <= 5; step += step == 1 ? 1 : 3)
			limit = longest >= step * scale ? step * scale : limit;
	const struct live_vcpu *v = has_vcpu ? &top_shown(t)->vcpu[r->vcpu] : NULL;
	if (v && v->ns.throttled > v->ns.stolen && r->group >= 0)
		snprintf(buf, size, "throttled(%s)>%.0f%%", r->name, fmax(1, floor(50 * r->throttled)));
	else if (v && v->number < 0)
		snprintf(buf, size, "gap(thread:%s)>%lldms", v->machine, (long long)limit);
	else
		snprintf(buf, size, "gap(%s)>%lldms", v ? v->machine : "any", (long long)limit);
}

static void ask(struct top *t, enum top_ask what)
{
	char initial[PROMPT_MAX_BYTES] = "";
	t->ask = what;
	if (what == TOP_ASK_TRIGGER)
		propose_trigger(t, initial, sizeof initial);
	if (what == TOP_ASK_DELAY)
		snprintf(initial, sizeof initial, "%.3g", (double)t->period / 1e9);
	prompt_open(&t->prompt, what == TOP_ASK_SEARCH ? PROMPT_SEARCH : PROMPT_FILTER, initial);
}

static void finish_delay(struct top *t)
{
	char *end;
	const double seconds = strtod(t->prompt.text, &end);
	if (end == t->prompt.text || *end || !(seconds >= 0.1 && seconds <= 3600))
		snprintf(t->message, sizeof t->message, "not between 0.1 and 3600 seconds: '%.40s'", t->prompt.text);
	else
		t->period = (int64_t)(seconds * 1e9);
}

static void edit(struct top *t, uint32_t key)
{
	const enum prompt_result result = prompt_key(&t->prompt, key);
	const enum top_ask what = t->ask;
	if (result == PROMPT_CANCELLED)
		t->prompt.text[0] = '\0';
	if (what == TOP_ASK_FILTER)
		snprintf(t->filter, sizeof t->filter, "%.*s", (int)sizeof t->filter - 1, t->prompt.text);
	if (what == TOP_ASK_SEARCH && result != PROMPT_CANCELLED) {
		snprintf(t->search, sizeof t->search, "%.*s", (int)sizeof t->search - 1, t->prompt.text);
		if (t->search[0])
			search(t, t->cursor);
	}
	if (result == PROMPT_DONE && what == TOP_ASK_DELAY)
		finish_delay(t);
	if (result == PROMPT_DONE && what == TOP_ASK_TRIGGER)
		t->request = TOP_ARM;
	if (result == PROMPT_DONE || result == PROMPT_CANCELLED)
		t->ask = TOP_ASK_NOTHING;
}

/* ---- keys */

static void show_view(struct top *t, enum top_view view)
{
	t->view = view;
	t->cursor = t->scroll = 0;
	t->selected[0] = '\0';
}

static void enter(struct top *t)
{
	const struct top_row *r = top_selected(t);
	if (!r) {
		t->request = t->cursor < t->rows + top_listed(t) ? TOP_OPEN : TOP_NOTHING;
		return;
	}
	if (t->detail && r->vcpu >= 0) {
		const int32_t top = top_shown(t)->vcpu[r->vcpu].top;
		snprintf(t->wanted, sizeof t->wanted, "%s", top >= 0 ? top_shown(t)->culprit[top].name : "");
		show_view(t, TOP_CULPRITS);
		t->detail = true;
	}
	t->detail = !t->detail && t->view != TOP_CULPRITS;
	if (t->view != TOP_CULPRITS)
		top_follow(t);
}

static void escape(struct top *t)
{
	t->filter[0] = '\0';
	if (!t->detail && t->view == TOP_CULPRITS)
		show_view(t, TOP_VMS);
	t->detail = false;
}

static void sort_by(struct top *t, unsigned next)
{
	static const char *const name[] = { "%STEAL", "%RUN", "%THROTL", "max wait", "name" };
	t->sort = next % SORTS;
	snprintf(t->message, sizeof t->message, "sorted by %s", name[t->sort]);
}

static void move_key(struct top *t, uint32_t key)
{
	switch (key) {
	case 'j': case KEY_CODE_DOWN: case KEY_CODE_WHEEL_DOWN: move_cursor(t, 1); break;
	case 'k': case KEY_CODE_UP: case KEY_CODE_WHEEL_UP: move_cursor(t, -1); break;
	case KEY_CODE_PGDN: move_cursor(t, t->lines); break;
	case KEY_CODE_PGUP: move_cursor(t, -t->lines); break;
	case KEY_CODE_HOME:
		t->cursor = 0;
		top_follow(t);
		break;
	case KEY_CODE_END: move_cursor(t, (int64_t)t->rows); break;
	case KEY_CODE_LEFT: walk_back(t, 1); break;
	case KEY_CODE_RIGHT: walk_back(t, -1); break;
	}
}

void top_key(struct top *t, uint32_t key)
{
	t->message[0] = '\0';
	if (t->ask != TOP_ASK_NOTHING) {
		edit(t, key);
		return;
	}
	if (t->help) {
		t->help = false;
		return;
	}
	switch (key) {
	case 'q': case KEY_CODE_F1 + 9: case 'c' & 31: t->quit = true; break;
	case '1': case '2': case '3': case '4':
		show_view(t, (enum top_view)(key - '0'));
		break;
	case 'g': show_view(t, t->view == TOP_VMS ? TOP_VCPUS : t->view == TOP_VCPUS ? TOP_CULPRITS : TOP_VMS); break;
	case '*':
		if (t->selected[0])
			t->selected[0] = '\0';
		else
			top_follow(t);
		snprintf(t->message, sizeof t->message, "the cursor %s", t->selected[0] ? "follows its row" : "stays on its line");
		break;
	case KEY_CODE_ENTER: case '\n': enter(t); break;
	case KEY_CODE_ESC: case KEY_CODE_BACKSPACE: escape(t); break;
	case '>': case KEY_CODE_F1 + 5: sort_by(t, t->sort + 1); break;
	case '<': sort_by(t, t->sort + SORTS - 1); break;
	case 'I': t->inverted = !t->inverted; break;
	case '/': case KEY_CODE_F1 + 2: ask(t, TOP_ASK_SEARCH); break;
	case 'n': search(t, t->cursor + 1); break;
	case '\\': case KEY_CODE_F1 + 3: ask(t, TOP_ASK_FILTER); break;
	case 'd': ask(t, TOP_ASK_DELAY); break;
	case 'T': ask(t, TOP_ASK_TRIGGER); break;
	case 'H': t->show_idle = !t->show_idle; break;
	case '?': case KEY_CODE_F1: t->help = true; break;
	case 'r': t->request = TOP_RECORD; break;
	case 'y': t->request = TOP_COPY; break;
	case 'S': t->request = TOP_PICTURE; break;
	case ' ':
		t->frozen = !t->frozen;
		t->back = 0;
		break;
	default: move_key(t, key);
	}
}
