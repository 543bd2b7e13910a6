/* Parses themes and converts them to styles. See theme.h. */
#include "ui/widgets/theme.h"

#include <unistd.h>
#include <wchar.h>

#include "base/atomic_file.h"
#include "base/suggest.h"
#include "base/yaml_file.h"
#include "ui/theme_texts.h"

#define VIS_KEY(code, key, name, description) [code] = key,
const char *const vis_key[VIS_COUNT] = { VIS_STATES(VIS_KEY) };
#define VIS_NAME(code, key, name, description) [code] = name,
const char *const vis_history_name[VIS_COUNT] = { VIS_STATES(VIS_NAME) };
#define VIS_DESCRIPTION(code, key, name, description) [code] = description,
const char *const vis_description[VIS_COUNT] = { VIS_STATES(VIS_DESCRIPTION) };
#define PART_KEY(code, key) [code] = key,
static const char *const part_key[PART_COUNT] = { PARTS(PART_KEY) };

static const char theme_remedy[] = "see stealscope-theme(5)";

/* Keys of the colour depths in YAML, and the largest palette index of each depth. */
static const struct { const char *key; long max_index; } depths[DEPTH_COUNT] = {
	[DEPTH_MONO] = { "mono", -1 }, [DEPTH_8] = { "8", 7 }, [DEPTH_16] = { "16", 15 }, [DEPTH_256] = { "256", 255 },
};

enum vis vis_of_name(const char *state_name)
{
	for (int v = VIS_UNKNOWN; v <= VIS_PREEMPTED; v++)
		if (state_name && strcmp(vis_history_name[v], state_name) == 0)
			return (enum vis)v;
	return VIS_UNKNOWN;
}

const char *theme_shipped_name(unsigned i)
{
	return i < sizeof shipped / sizeof *shipped ? shipped[i].name : NULL;
}

static int parse_colours(struct yaml_file *f, yaml_node_t *map, struct colours colour[DEPTH_COUNT], struct error *err)
{
	for (int d = DEPTH_8; d < DEPTH_COUNT; d++) {
		yaml_node_t *node = yaml_member(f, map, depths[d].key), *fg, *bg, *more;
		int64_t v[2];
		if (!node)
			continue;
		if (!yaml_item(f, node, 0, &fg) || !yaml_item(f, node, 1, &bg) || yaml_item(f, node, 2, &more))
			return yaml_refuse(f, node, err, "expected [foreground, background]");
		if (yaml_integer(f, fg, -1, depths[d].max_index, &v[0], err) < 0 ||
		    yaml_integer(f, bg, -1, depths[d].max_index, &v[1], err) < 0)
			return -1;
		colour[d] = (struct colours){ (int16_t)v[0], (int16_t)v[1] };
	}
	return 0;
}

static int parse_attr(struct yaml_file *f, yaml_node_t *map, const char *key, uint16_t *attr, struct error *err)
{
	static const struct { const char *name; uint16_t bit; } names[] = {
		{ "bold", ATTR_BOLD }, { "reverse", ATTR_REVERSE }, { "underline", ATTR_UNDERLINE }, { "dim", ATTR_DIM },
	};
	yaml_node_t *node = yaml_member(f, map, key);
	const char *text = yaml_scalar(node);
	if (!node)
		return 0;
	if (!text)
		return yaml_refuse(f, node, err, "expected attributes: plain, bold, reverse, underline, dim");
	*attr = 0;
	while (*text) {
		size_t n = strcspn(text, " ");
		bool known = n == 5 && memcmp(text, "plain", 5) == 0;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			if (strlen(names[i].name) == n && memcmp(text, names[i].name, n) == 0) {
				*attr |= names[i].bit;
				known = true;
			}
		}
		if (!known)
			return yaml_refuse(f, node, err, "unknown attribute (plain, bold, reverse, underline, dim)");
		text += n + strspn(text + n, " ");
	}
	return 0;
}

static int parse_glyphs(struct yaml_file *f, yaml_node_t *map, struct theme_state *s, struct error *err)
{
	yaml_node_t *letter = yaml_member(f, map, "letter"), *glyph = yaml_member(f, map, "glyph");
	if (letter) {
		const char *text = yaml_scalar(letter);
		if (!text || text[0] < ' ' || text[0] > '~' || text[1])
			return yaml_refuse(f, letter, err, "expected one printable ASCII character");
		s->letter = text[0];
	}
	if (glyph) {
		const char *text = yaml_scalar(glyph);
		uint32_t c = 0;
		size_t n = text && *text ? text_decode(text, &c) : 0;
		if (n == 0 || text[n] || text_width(text) != 1 || c < ' ' || c == 0x7f)
			return yaml_refuse(f, glyph, err, "expected one character of one column");
		s->glyph = c;
	}
	return 0;
}

static int parse_state(struct yaml_file *f, yaml_node_t *map, struct theme_state *s, struct error *err)
{
	if (map->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, map, err, "expected a mapping (state)");
	yaml_node_t *severity = yaml_member(f, map, "severity");
	int64_t v = s->severity;
	if (severity && yaml_integer(f, severity, 0, 15, &v, err) < 0)
		return -1;
	s->severity = (uint8_t)v;
	const char *label = yaml_scalar(yaml_member(f, map, "label"));
	if (label)
		text_escape(s->label, sizeof s->label, label);
	if (parse_glyphs(f, map, s, err) < 0 || parse_attr(f, map, "mono", &s->mono, err) < 0)
		return -1;
	return parse_colours(f, map, s->colour, err);
}

static int parse_part(struct yaml_file *f, yaml_node_t *map, struct theme_part *part, struct error *err)
{
	if (map->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, map, err, "expected a mapping (part)");
	if (parse_attr(f, map, "attr", &part->attr, err) < 0 || parse_attr(f, map, "mono", &part->mono, err) < 0)
		return -1;
	return parse_colours(f, map, part->colour, err);
}

static int parse_owners(struct yaml_file *f, yaml_node_t *map, struct theme *t, struct error *err)
{
	for (int d = DEPTH_8; d < DEPTH_COUNT; d++) {
		yaml_node_t *list = yaml_member(f, map, depths[d].key), *item;
		size_t n = 0;
		if (!list)
			continue;
		while (yaml_item(f, list, n, &item))
			n++;
		if (n < 1 || n > OWNERS)
			return yaml_refuse(f, list, err, "expected a list of 1 to %d background colours", OWNERS);
		for (size_t i = 0; i < OWNERS; i++) {
			int64_t v = 0;
			if (!yaml_item(f, list, i % n, &item) || yaml_integer(f, item, -1, depths[d].max_index, &v, err) < 0)
				return -1;
			t->owner[d][i] = (int16_t)v;
		}
	}
	return 0;
}

typedef int parse_one(struct yaml_file *f, yaml_node_t *node, struct theme *t, int i, struct error *err);

/* Calls a function for each entry of a mapping. Each entry's name must be one of `keys`. */
static int parse_section(struct yaml_file *f, yaml_node_t *map, const char *const *keys, int n, struct theme *t,
                         parse_one *one, struct error *err)
{
	if (!map)
		return 0;
	if (map->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, map, err, "not a mapping");
	yaml_node_t *key, *value;
	for (size_t k = 0; yaml_pair(f, map, k, &key, &value); k++) {
		const char *name = yaml_scalar(key);
		struct suggestion suggestion = SUGGESTION(name ? name : "");
		int i = 0;
		while (i < n && strcmp(suggestion.typed, keys[i]) != 0)
			suggest(&suggestion, keys[i++]);
		if (i == n)
			return yaml_refuse_word(f, key, "unknown name", &suggestion, err);
		if (one(f, value, t, i, err) < 0)
			return -1;
	}
	return 0;
}

static int one_state(struct yaml_file *f, yaml_node_t *node, struct theme *t, int i, struct error *err)
{
	return parse_state(f, node, &t->state[i], err);
}

static int one_part(struct yaml_file *f, yaml_node_t *node, struct theme *t, int i, struct error *err)
{
	return parse_part(f, node, &t->part[i], err);
}

static int parse_nested(struct theme *t, const char *yaml, const char *name, int nesting, struct error *err);

static int parse_base(struct yaml_file *f, yaml_node_t *root, struct theme *t, int nesting, struct error *err)
{
	yaml_node_t *node = yaml_member(f, root, "base");
	const char *base = yaml_scalar(node);
	if (!node)
		return 0;
	for (unsigned i = 0; base && theme_shipped_name(i); i++)
		if (strcmp(shipped[i].name, base) == 0 && nesting < 4)
			return parse_nested(t, shipped[i].text, shipped[i].name, nesting + 1, err);
	return yaml_refuse(f, node, err, "base: not a shipped theme");
}

static int parse_root(struct yaml_file *f, struct theme *t, int nesting, struct error *err)
{
	yaml_node_t *root = yaml_root(f);
	if (!root || root->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, root, err, "expected a mapping (theme)");
	if (parse_base(f, root, t, nesting, err) < 0)
		return -1;
	const char *name = yaml_scalar(yaml_member(f, root, "name"));
	const char *about = yaml_scalar(yaml_member(f, root, "about"));
	const char *colours = yaml_scalar(yaml_member(f, root, "colours"));
	if (name)
		text_escape(t->name, sizeof t->name, name);
	if (about)
		text_escape(t->about, sizeof t->about, about);
	if (colours)
		t->mono = strcmp(colours, "never") == 0;
	const char *ground = yaml_scalar(yaml_member(f, root, "ground"));
	if (ground)
		t->light = strcmp(ground, "light") == 0;
	if (parse_section(f, yaml_member(f, root, "states"), vis_key, VIS_COUNT, t, one_state, err) < 0 ||
	    parse_section(f, yaml_member(f, root, "parts"), part_key, PART_COUNT, t, one_part, err) < 0)
		return -1;
	return parse_owners(f, yaml_member(f, root, "owners"), t, err);
}

static int parse_file(struct yaml_file *f, struct theme *t, int nesting, struct error *err)
{
	int status = parse_root(f, t, nesting, err);
	yaml_file_release(f);
	return status;
}

static int parse_nested(struct theme *t, const char *yaml, const char *name, int nesting, struct error *err)
{
	struct yaml_file f;
	if (yaml_file_parse(&f, yaml, strlen(yaml), name, theme_remedy, err) < 0)
		return -1;
	return parse_file(&f, t, nesting, err);
}

int theme_parse(struct theme *t, const char *yaml, const char *file, struct error *err)
{
	return parse_nested(t, yaml, file, 0, err);
}

static char *theme_file(const char *name)
{
	if (strchr(name, '/') || strstr(name, ".yaml"))
		return mem_dup(name);
	char *file = mem_printf("themes/%s.yaml", name);
	char *path = user_file_path("XDG_CONFIG_HOME", ".config", file);
	if (!path)
		return file;
	free(file);
	return path;
}

/* Reports an unknown theme name, with a list of the shipped themes. */
static int refuse_name(const char *name, const char *file, struct error *err)
{
	char remedy[256] = "", shown[64];
	struct suggestion suggestion = SUGGESTION(name);
	for (unsigned i = 0; theme_shipped_name(i); i++)
		suggest(&suggestion, theme_shipped_name(i));
	if (suggestion.nearest)
		snprintf(remedy, sizeof remedy, "did you mean %s? ", suggestion.nearest);
	size_t used = strlen(remedy);
	used += (size_t)snprintf(remedy + used, sizeof remedy - used, "shipped themes:");
	for (unsigned i = 0; theme_shipped_name(i) && used < sizeof remedy; i++)
		used += (size_t)snprintf(remedy + used, sizeof remedy - used, "%s %s", i ? "," : "", theme_shipped_name(i));
	text_escape(shown, sizeof shown, name);
	return error_set(err, STATUS_INPUT, remedy, "theme %s: not a shipped theme, and %s does not exist", shown, file);
}

int theme_load(struct theme *t, const char *name, struct error *err)
{
	struct theme fresh = { 0 };
	if (theme_parse(&fresh, shipped[0].text, shipped[0].name, err) < 0)
		return -1;
	for (unsigned i = 0; name && theme_shipped_name(i); i++) {
		if (strcmp(shipped[i].name, name) == 0) {
			if (theme_parse(&fresh, shipped[i].text, shipped[i].name, err) < 0)
				return -1;
			name = NULL;
		}
	}
	if (name) {
		struct yaml_file f;
		char *file = theme_file(name);
		const bool missing = !strchr(name, '/') && access(file, F_OK) != 0;
		int status = missing ? refuse_name(name, file, err) : yaml_file_read(&f, file, theme_remedy, err);
		free(file);
		if (missing)
			return -1;
		if (status < 0 || parse_file(&f, &fresh, 0, err) < 0)
			return error_wrap(err, "theme %s", name);
	}
	*t = fresh;
	return 0;
}

static struct style style_of(const struct colours *c, enum depth depth, uint16_t attr, uint16_t mono)
{
	return depth == DEPTH_MONO ? (struct style){ -1, -1, mono } : (struct style){ c[depth].fg, c[depth].bg, attr };
}

/* Returns the colour of a letter that is readable on this background. */
static int16_t ink_on(int16_t bg)
{
	static const int16_t of_few[16] = { 7, 7, 7, 0, 7, 7, 0, 0, 15, 15, 0, 0, 15, 0, 0, 0 };
	return bg < 0 ? -1 : bg < 16 ? of_few[bg] : 0;
}

void theme_palette(const struct theme *t, enum depth depth, struct palette *p)
{
	if (t->mono)
		depth = DEPTH_MONO;
	p->depth = depth;
	for (int v = 0; v < VIS_COUNT; v++)
		p->state[v] = style_of(t->state[v].colour, depth, 0, t->state[v].mono);
	for (int i = 0; i < PART_COUNT; i++)
		p->part[i] = style_of(t->part[i].colour, depth, t->part[i].attr, t->part[i].mono);
	for (int i = 0; i < OWNERS; i++) {
		struct colours owner[DEPTH_COUNT] = { 0 };
		owner[depth] = (struct colours){ ink_on(t->owner[depth][i]), t->owner[depth][i] };
		p->owner[i] = style_of(owner, depth, 0, 0);
	}
}
