/* Reads the user's config.yaml.
 *
 *   theme: cvd-light          glyphs: cells          color: 256          time: trace          mouse: true
 *   keys:
 *     zoom-in: "w + i"        an action and all its keys
 *
 * The terminal uses <C-z>, <C-s>, <C-q> and <C-\>; they cannot be bound. */
#include "base/base.h"
#include "ui/input/keys.h"

#include <unistd.h>

#include "base/atomic_file.h"
#include "base/yaml_file.h"

static bool is_reserved(uint32_t key)
{
	return key == ('z' & 31) || key == ('s' & 31) || key == ('q' & 31) || key == ('\\' & 31);
}

static int bind_all(struct yaml_file *f, const yaml_node_t *node, enum action action, struct keymap *m,
                    struct error *err)
{
	const char *at = yaml_scalar(node);
	if (!at)
		return yaml_refuse(f, node, err, "expected keys such as \"j <Down>\"");
	for (size_t i = 0; i < m->len; i++)
		if (m->binding[i].action == action)
			m->binding[i].action = ACT_NONE;
	while (*at) {
		uint32_t key = key_parse(&at);
		if (!key)
			return yaml_refuse(f, node, err, "not a key");
		if (is_reserved(key))
			return yaml_refuse(f, node, err, "this key is reserved for the terminal");
		keymap_bind(m, key, action);
		at += strspn(at, " ");
	}
	return 0;
}

static int read_keys(struct yaml_file *f, struct keymap *m, struct error *err)
{
	yaml_node_t *name, *value, *keys = yaml_member(f, yaml_root(f), "keys");
	if (keys && keys->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, keys, err, "expected a mapping of actions to keys: {zoom-in: \"w +\"}");
	for (size_t i = 0; yaml_pair(f, keys, i, &name, &value); i++) {
		const char *word = yaml_scalar(name);
		enum action action = word ? action_of_name(word) : ACT_NONE;
		struct suggestion suggestion = SUGGESTION(word ? word : "");
		for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
			suggest(&suggestion, action_info[a].name);
		if (action == ACT_NONE)
			return yaml_refuse_word(f, name, "unknown action", &suggestion, err);
		if (bind_all(f, value, action, m, err) < 0)
			return -1;
	}
	return 0;
}

/* Settings that the file may contain, and their valid values; first value NULL: any value. */
static const struct setting { const char *name, *words[8]; } settings[] = {
	{ "theme", { NULL } },
	{ "glyphs", { "ascii", "cells", "blocks", NULL } },
	{ "color", { "auto", "never", "8", "16", "256", NULL } },
	{ "time", { "wall", "relative", "trace", NULL } },
	{ "mouse", { "true", "false", NULL } },
	{ "keys", { NULL } },
};

static int check_setting(struct yaml_file *f, const yaml_node_t *name, const yaml_node_t *value, struct error *err)
{
	const struct setting *s = settings, *end = settings + sizeof settings / sizeof *settings;
	const char *key = yaml_scalar(name), *word = yaml_scalar(value);
	struct suggestion suggestion = SUGGESTION(key ? key : "");
	char choices[100] = "";
	while (s < end && strcmp(s->name, suggestion.typed) != 0)
		suggest(&suggestion, s++->name);
	if (s == end)
		return yaml_refuse_word(f, name, "unknown setting", &suggestion, err);
	for (size_t i = 0; s->words[i]; i++) {
		if (word && strcmp(word, s->words[i]) == 0)
			return 0;
		const size_t n = strlen(choices);
		snprintf(choices + n, sizeof choices - n, "%s%s", i ? ", " : "", s->words[i]);
	}
	return s->words[0] ? yaml_refuse(f, value, err, "%s: choose from %s", s->name, choices) : 0;
}

static char *copy_setting(struct yaml_file *f, const char *key)
{
	return mem_dup(yaml_scalar(yaml_member(f, yaml_root(f), key)));
}

static int read_config(struct config *c, struct keymap *m, const char *file, struct error *err)
{
	struct yaml_file f;
	yaml_node_t *name, *value;
	int status = 0;
	if (yaml_file_read(&f, file, "see stealscope-view(1), CONFIGURATION", err) < 0)
		return -1;
	const yaml_node_t *root = yaml_root(&f);
	if (root && root->type != YAML_MAPPING_NODE)
		status = yaml_refuse(&f, root, err, "expected a mapping (name: value)");
	for (size_t i = 0; status == 0 && yaml_pair(&f, yaml_root(&f), i, &name, &value); i++)
		status = check_setting(&f, name, value, err);
	c->theme = copy_setting(&f, "theme");
	c->glyphs = copy_setting(&f, "glyphs");
	c->color = copy_setting(&f, "color");
	c->time = copy_setting(&f, "time");
	const char *mouse = yaml_scalar(yaml_member(&f, yaml_root(&f), "mouse"));
	c->mouse = !mouse || strcmp(mouse, "true") == 0;
	if (status == 0)
		status = read_keys(&f, m, err);
	yaml_file_release(&f);
	return status;
}

int config_load(struct config *c, struct keymap *m, const char *file, struct error *err)
{
	*c = (struct config){ .mouse = true };
	if (file)
		return read_config(c, m, file, err);
	char *path = user_file_path("XDG_CONFIG_HOME", ".config", "config.yaml");
	int status = path && access(path, F_OK) == 0 ? read_config(c, m, path, err) : 0;
	free(path);
	return status;
}

void config_release(struct config *c)
{
	free(c->theme);
	free(c->glyphs);
	free(c->color);
	free(c->time);
	*c = (struct config){ 0 };
}
