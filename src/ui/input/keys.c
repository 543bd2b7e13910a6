/* Names of keys, the keymap, and the key table as mdoc(7). See keys.h. */
#include "ui/input/keys.h"

#include "ui/input/command.h"
#include "ui/ui.h"

#define ACTION_INFO(code, name, keys, section, help) [code] = { name, keys, section, help },
const struct action_info action_info[ACT_COUNT] = { [ACT_NONE] = { "", "", "", "" }, ACTIONS(ACTION_INFO) };

static const struct { const char *name; uint32_t key; } names[] = {
	{ "Up", KEY_CODE_UP }, { "Down", KEY_CODE_DOWN }, { "Left", KEY_CODE_LEFT }, { "Right", KEY_CODE_RIGHT },
	{ "PgUp", KEY_CODE_PGUP }, { "PgDn", KEY_CODE_PGDN }, { "Home", KEY_CODE_HOME }, { "End", KEY_CODE_END },
	{ "Insert", KEY_CODE_INSERT }, { "Delete", KEY_CODE_DELETE }, { "BS", KEY_CODE_BACKSPACE },
	{ "S-Tab", KEY_CODE_BACKTAB }, { "Tab", KEY_CODE_TAB }, { "Enter", KEY_CODE_ENTER }, { "Esc", KEY_CODE_ESC },
	{ "Space", KEY_CODE_SPACE }, { "lt", '<' }, { "WheelUp", KEY_CODE_WHEEL_UP }, { "WheelDown", KEY_CODE_WHEEL_DOWN },
	{ "WheelLeft", KEY_CODE_WHEEL_LEFT }, { "WheelRight", KEY_CODE_WHEEL_RIGHT }, { "ZoomIn", KEY_CODE_ZOOM_IN },
	{ "ZoomOut", KEY_CODE_ZOOM_OUT },
};

/* Returns the key whose name is the n bytes at s; 0: none. */
static uint32_t named_key(const char *s, size_t n)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i].name) == n && strncasecmp(names[i].name, s, n) == 0)
			return names[i].key;
	if (n == 3 && (s[0] == 'C' || s[0] == 'c') && s[1] == '-' && s[2] >= '@' && s[2] <= '~')
		return (uint32_t)s[2] & 31;
	if (n >= 2 && n <= 3 && s[0] == 'F' && s[1] >= '1' && s[1] <= '9') {
		unsigned f = (unsigned)(s[1] - '0');
		if (n == 3 && (s[2] < '0' || s[2] > '9'))
			return 0;
		f = n == 3 ? 10 * f + (unsigned)(s[2] - '0') : f;
		return f <= 24 ? KEY_CODE_F1 + f - 1 : 0;
	}
	return 0;
}

uint32_t key_parse(const char **at)
{
	const char *s = *at, *end = *s == '<' ? strchr(s, '>') : NULL;
	if (end && end > s + 1) {
		uint32_t key = named_key(s + 1, (size_t)(end - s - 1));
		if (key) {
			*at = end + 1;
			return key;
		}
	}
	uint32_t c = 0;
	size_t n = *s ? text_decode(s, &c) : 0;
	*at += n;
	return n ? c : 0;
}

char *key_text(uint32_t key, char *buf, size_t size)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (names[i].key == key && key != '<') {
			snprintf(buf, size, "<%s>", names[i].name);
			return buf;
		}
	}
	if (key >= KEY_CODE_F1 && key < KEY_CODE_F1 + 24)
		snprintf(buf, size, "<F%u>", (unsigned)(key - KEY_CODE_F1 + 1));
	else if (key < 32)
		snprintf(buf, size, "<C-%c>", (int)key + (key >= 1 && key <= 26 ? 96 : 64));
	else if (key < 127)
		snprintf(buf, size, "%c", (int)key);
	else
		snprintf(buf, size, "U+%04X", (unsigned)key);
	return buf;
}

enum action action_of_name(const char *name)
{
	for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
		if (strcmp(action_info[a].name, name) == 0)
			return (enum action)a;
	return ACT_NONE;
}

static bool in_pane(enum action action)
{
	return action >= ACT_IN_PANE_GO;
}

void keymap_bind(struct keymap *m, uint32_t key, enum action action)
{
	for (size_t i = 0; i < m->len; i++) {
		if (m->binding[i].key == key && in_pane(m->binding[i].action) == in_pane(action)) {
			m->binding[i].action = action;
			return;
		}
	}
	*ARRAY_PUSH(m->binding, m->len, m->cap) = (struct binding){ key, action };
}

void keymap_init(struct keymap *m)
{
	*m = (struct keymap){ 0 };
	for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
		const char *at = action_info[a].keys;
		while (*at) {
			uint32_t key = key_parse(&at);
			if (!key)
				break;
			keymap_bind(m, key, (enum action)a);
			at += *at == ' ';
		}
	}
}

void keymap_release(struct keymap *m)
{
	free(m->binding);
	*m = (struct keymap){ 0 };
}

static enum action find_action(const struct keymap *m, uint32_t key, bool pane)
{
	for (size_t i = 0; i < m->len; i++)
		if (m->binding[i].key == key && in_pane(m->binding[i].action) == pane)
			return m->binding[i].action;
	return ACT_NONE;
}

enum action keymap_find(const struct keymap *m, uint32_t key)
{
	return find_action(m, key, false);
}

enum action keymap_find_in_pane(const struct keymap *m, uint32_t key)
{
	return find_action(m, key, true);
}

uint32_t keymap_key(const struct keymap *m, enum action action)
{
	for (size_t i = 0; i < m->len; i++) {
		const uint32_t key = m->binding[i].key;
		if (m->binding[i].action == action && (key < KEY_CODE_WHEEL_UP || key > KEY_CODE_ZOOM_OUT))
			return key;
	}
	return 0;
}

char *keymap_text(const struct keymap *m, enum action action, char *buf, size_t size)
{
	size_t used = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < m->len; i++) {
		char key[32];
		uint32_t k = m->binding[i].key;
		if (m->binding[i].action != action || (k >= KEY_CODE_WHEEL_UP && k <= KEY_CODE_ZOOM_OUT))
			continue;
		int n = snprintf(buf + used, size - used, "%s%s", used ? ", " : "", key_text(k, key, sizeof key));
		if (n < 0 || used + (size_t)n >= size)
			break;
		used += (size_t)n;
	}
	return buf;
}

void key_print_mdoc(const char *macro, const char *s)
{
	const char *quote = strchr(s, ' ') ? "\"" : "";
	printf("%s %s\\&", macro, quote);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", stdout);
		else if (*s == '"')
			fputs("\\(dq", stdout);
		else if (*s == '\'')
			fputs("\\(aq", stdout);
		else if (*s == '^')
			fputs("\\(ha", stdout);
		else if (*s == '~')
			fputs("\\(ti", stdout);
		else if (*s == '-')
			fputs("\\-", stdout);
		else
			putchar(*s);
	}
	fputs(quote, stdout);
}

void ui_print_keys_mdoc(void)
{
	struct keymap m;
	keymap_init(&m);
	const char *section = "";
	for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
		char keys[128];
		if (strcmp(section, action_info[a].section) != 0) {
			if (*section)
				puts(".El");
			section = action_info[a].section;
			printf(".Ss %s\n.Bl -tag -width \"<PgDn>, <PgUp>\" -compact\n", section);
		}
		keymap_text(&m, (enum action)a, keys, sizeof keys);
		fputs(".It ", stdout);
		for (char *key = keys; *key;) {
			size_t n = strcspn(key, " ");
			char word[32];
			snprintf(word, sizeof word, "%.*s", (int)n, key);
			size_t len = strlen(word);
			bool more = len > 1 && word[len - 1] == ',' && key[n] != '\0';
			if (more)
				word[len - 1] = '\0';
			key_print_mdoc("Ic", word);
			fputs(more ? " , " : "", stdout);
			key += n + (key[n] != '\0');
		}
		printf("\n%s\n.Pq Cm %s\n", action_info[a].help, action_info[a].name);
	}
	puts(".El");
	keymap_release(&m);
	command_print_mdoc();
}
