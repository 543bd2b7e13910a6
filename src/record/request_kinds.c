#include "record/request_kinds.h"

#include "base/yaml_file.h"
#include "record/request_texts.h"

#define HELP "see stealscope-requests(7)"
#define NAME_LEN 40  /* maximum length of a kind's name: events are named after it */
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

const char *const request_op_name[REQUEST_OPS] = { "start", "yield", "resume", "end", "drop", "receive" };

bool request_kind_has_program(const struct request_kind *k, const char *path)
{
	const char *slash = strrchr(path, '/');
	for (size_t i = 0; i < k->programs; i++)
		if (strcmp(k->program[i], slash ? slash + 1 : path) == 0)
			return true;
	return false;
}

bool request_probe_starts(const struct request_probe *p)
{
	return p->op == REQUEST_OP_START || p->op == REQUEST_OP_RECEIVE;
}

static void probe_release(struct request_probe *p)
{
	free(p->provider);
	free(p->name);
}

void request_kind_free(struct request_kind *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->probes; i++)
		probe_release(&k->probe[i]);
	for (size_t i = 0; i < k->programs; i++)
		free(k->program[i]);
	for (size_t i = 0; i < k->paths; i++)
		free(k->path[i]);
	free(k->probe);
	free(k->program);
	free(k->path);
	free(k->name);
	free(k->about);
	free(k);
}

const char *request_kind_shipped(size_t i)
{
	return i < sizeof shipped / sizeof *shipped ? shipped[i].name : NULL;
}

static bool is_kind_name(const char *name)
{
	const size_t n = strlen(name);
	return n && n <= NAME_LEN && strspn(name, WORD) == n;
}

/* Parses "arg1" to "arg16" or "retval". Returns false otherwise. */
static bool parse_key(const char *text, unsigned *key)
{
	char rest = 0;
	if (strcmp(text, "retval") == 0)
		*key = PROBE_KEY_RETVAL;
	else if (sscanf(text, "arg%2u%c", key, &rest) != 1 || *key < 1 || *key > 16)
		return false;
	return true;
}

static bool is_call(const struct request_probe *p)
{
	return !p->provider && !p->key;
}

bool request_kind_has_calls(const struct request_kind *k)
{
	if (k->nested)
		return true;
	for (size_t i = 0; i < k->probes; i++) {
		const struct request_probe *p = &k->probe[i];
		if (!request_probe_starts(p) && p->op != REQUEST_OP_END)
			continue;
		if (!is_call(p) || p->at_return != (p->op == REQUEST_OP_END))
			return false;
		bool has_other = false;
		for (size_t j = 0; j < k->probes && !has_other; j++)
			has_other = (p->op == REQUEST_OP_END ? request_probe_starts(&k->probe[j]) : k->probe[j].op == REQUEST_OP_END) &&
			            strcmp(k->probe[j].name, p->name) == 0;
		if (!has_other)
			return false;
	}
	return true;
}

/* ---- tables */

struct table_parser {
	struct yaml_file file;
	struct error *err;
};

static int get_word(struct table_parser *p, const yaml_node_t *n, const char **text)
{
	*text = yaml_scalar(n);
	return *text && **text ? 0 : yaml_refuse(&p->file, n, p->err, "expected a word");
}

static int parse_words(struct table_parser *p, const yaml_node_t *n, char ***word, size_t *len, size_t *cap)
{
	yaml_node_t *item;
	const char *text;
	for (size_t i = 0; yaml_item(&p->file, n, i, &item); i++) {
		if (get_word(p, item, &text))
			return -1;
		*ARRAY_PUSH(*word, *len, *cap) = mem_dup(text);
	}
	return *len ? 0 : yaml_refuse(&p->file, n, p->err, "expected a list");
}

static int parse_op(struct table_parser *p, const yaml_node_t *n, enum request_op *op)
{
	const char *text;
	if (get_word(p, n, &text))
		return -1;
	for (unsigned i = 0; i < REQUEST_OPS; i++) {
		if (strcmp(text, request_op_name[i]) == 0) {
			*op = (enum request_op)i;
			return 0;
		}
	}
	return yaml_refuse(&p->file, n, p->err, "not one of start, receive, yield, resume, end, drop");
}

/* Sets a probe's place: function: NAME, return: NAME, or usdt: PROVIDER:NAME. */
static int set_place(struct table_parser *p, const yaml_node_t *n, const char *key, const char *text,
                     struct request_probe *out)
{
	const char *colon = strchr(text, ':');
	if (out->name)
		return yaml_refuse(&p->file, n, p->err, "a probe has only one of function, return, usdt");
	if (*key == 'u' && (!colon || colon == text || !colon[1]))
		return yaml_refuse(&p->file, n, p->err, "usdt needs PROVIDER:NAME");
	out->provider = *key == 'u' ? mem_printf("%.*s", (int)(colon - text), text) : NULL;
	out->name = mem_dup(*key == 'u' ? colon + 1 : text);
	out->at_return = *key == 'r';
	return 0;
}

static int parse_probe_key(struct table_parser *p, const yaml_node_t *k, const yaml_node_t *v, struct request_probe *out,
                           bool *has_op)
{
	const char *key, *text;
	if (get_word(p, k, &key) || get_word(p, v, &text))
		return -1;
	if (strcmp(key, "op") == 0) {
		*has_op = true;
		return parse_op(p, v, &out->op);
	}
	if (strcmp(key, "function") == 0 || strcmp(key, "return") == 0 || strcmp(key, "usdt") == 0)
		return set_place(p, v, key, text, out);
	if (strcmp(key, "key") == 0)
		return parse_key(text, &out->key) ? 0 : yaml_refuse(&p->file, v, p->err, "a key is argN or retval");
	if (strcmp(key, "label") == 0)
		return parse_key(text, &out->label) && out->label != PROBE_KEY_RETVAL ? 0
		       : yaml_refuse(&p->file, v, p->err, "a label is argN");
	if (strcmp(key, "optional") != 0)
		return yaml_refuse(&p->file, k, p->err, "unknown key of a probe: %s", key);
	out->optional = strcmp(text, "yes") == 0;
	return out->optional ? 0 : yaml_refuse(&p->file, v, p->err, "optional can only be yes");
}

static int parse_probe(struct table_parser *p, const yaml_node_t *n, struct request_kind *out)
{
	yaml_node_t *key, *value;
	bool has_op = false;
	struct request_probe *probe = ARRAY_PUSH(out->probe, out->probes, out->probes_cap);
	*probe = (struct request_probe){ 0 };
	for (size_t i = 0; yaml_pair(&p->file, n, i, &key, &value); i++)
		if (parse_probe_key(p, key, value, probe, &has_op))
			return -1;
	if (!has_op || !probe->name)
		return yaml_refuse(&p->file, n, p->err, "a probe needs op, and function, return or usdt");
	if (probe->at_return ? probe->key && probe->key != PROBE_KEY_RETVAL : probe->key == PROBE_KEY_RETVAL)
		return yaml_refuse(&p->file, n, p->err, "the key of a return is retval, and only there");
	if (probe->label && (probe->at_return || !request_probe_starts(probe)))
		return yaml_refuse(&p->file, n, p->err, "only a start, and not at a return, has a label");
	return 0;
}

static int parse_table_key(struct table_parser *p, const yaml_node_t *k, const yaml_node_t *v, struct request_kind *out)
{
	const char *key, *text = NULL;
	yaml_node_t *item;
	if (get_word(p, k, &key))
		return -1;
	if (strcmp(key, "programs") == 0)
		return parse_words(p, v, &out->program, &out->programs, &out->programs_cap);
	if (strcmp(key, "paths") == 0)
		return parse_words(p, v, &out->path, &out->paths, &out->paths_cap);
	if (strcmp(key, "probes") == 0) {
		for (size_t i = 0; yaml_item(&p->file, v, i, &item); i++)
			if (parse_probe(p, item, out))
				return -1;
		return 0;
	}
	if (strcmp(key, "nested") == 0) {
		out->nested = (text = yaml_scalar(v)) != NULL && strcmp(text, "yes") == 0;
		return out->nested ? 0 : yaml_refuse(&p->file, v, p->err, "nested can only be yes");
	}
	char **to = strcmp(key, "requests") == 0 ? &out->name : strcmp(key, "about") == 0 ? &out->about : NULL;
	if (!to)
		return yaml_refuse(&p->file, k, p->err, "unknown key: %s", key);
	if (get_word(p, v, &text))
		return -1;
	free(*to);
	*to = mem_dup(text);
	return 0;
}

static int check_table(struct table_parser *p, const yaml_node_t *root, const struct request_kind *k)
{
	bool has_start = false, has_end = false;
	for (size_t i = 0; i < k->probes; i++) {
		has_start |= request_probe_starts(&k->probe[i]);
		has_end |= k->probe[i].op == REQUEST_OP_END;
	}
	if (!k->name || !is_kind_name(k->name))
		return yaml_refuse(&p->file, root, p->err, "requests: a name of at most %d letters, digits and _ is missing",
		                   NAME_LEN);
	if (!has_start || !has_end)
		return yaml_refuse(&p->file, root, p->err, "probes: one with op start or receive and one with op end are needed");
	return k->programs || k->paths ? 0 : yaml_refuse(&p->file, root, p->err, "programs or paths are missing");
}

static struct request_kind *parse_table(struct table_parser *p)
{
	struct request_kind *k = mem_new(1, sizeof *k);
	yaml_node_t *root = yaml_root(&p->file), *key, *value;
	int rc = root ? 0 : yaml_refuse(&p->file, NULL, p->err, "the table is empty");
	for (size_t i = 0; rc == 0 && yaml_pair(&p->file, root, i, &key, &value); i++)
		rc = parse_table_key(p, key, value, k);
	if (rc == 0)
		rc = check_table(p, root, k);
	yaml_file_release(&p->file);
	if (rc == 0)
		return k;
	request_kind_free(k);
	return NULL;
}

struct request_kind *request_kind_parse_yaml(const char *file, const char *text, size_t len, struct error *err)
{
	struct table_parser p = { .err = err };
	return yaml_file_parse(&p.file, text, len, file, HELP, err) ? NULL : parse_table(&p);
}

/* ---- specifications */

static int refuse_spec(const char *spec, const char *why, struct error *err)
{
	char escaped[300];
	return error_set(err, STATUS_USAGE, "PATH:FUNCTION, PATH:BEGIN/END, PATH:usdt:PROVIDER:BEGIN/END, or a table; " HELP,
	                 "--requests %s: %s", text_escape(escaped, sizeof escaped, spec), why);
}

/* Adds the probe "NAME[@argN]". default_key: key if the text has none. */
static const char *add_probe(struct request_kind *k, enum request_op op, const char *provider, const char *text,
                             unsigned default_key)
{
	const char *at = strrchr(text, '@');
	unsigned key = default_key;
	if (at && !parse_key(at + 1, &key))
		return "the key after @ is not argN";
	const size_t n = at ? (size_t)(at - text) : strlen(text);
	if (!n)
		return "the name of a function or probe is missing";
	if (key == PROBE_KEY_RETVAL)
		return "retval can only be used in a table";
	*ARRAY_PUSH(k->probe, k->probes, k->probes_cap) = (struct request_probe){
		.op = op, .provider = provider ? mem_dup(provider) : NULL, .name = mem_printf("%.*s", (int)n, text), .key = key };
	return NULL;
}

/* Parses "BEGIN/END", "FUNCTION" or "FUNCTION/return". A key after END applies to BEGIN, too. */
static const char *add_pair(struct request_kind *k, const char *provider, char *text)
{
	char *slash = strchr(text, '/'), *at = slash ? strchr(slash, '@') : NULL;
	unsigned key = PROBE_KEY_NONE;
	const char *why;
	if (slash)
		*slash = '\0';
	if (at && !parse_key(at + 1, &key))
		return "the key after @ is not argN";
	const bool returns = !provider && (!slash || strcmp(slash + 1, "return") == 0);
	if (provider && !slash)
		return "a static probe needs BEGIN/END";
	if ((why = add_probe(k, REQUEST_OP_START, provider, text, key)) != NULL)
		return why;
	if (!returns)
		return add_probe(k, REQUEST_OP_END, provider, slash + 1, k->probe[0].key);
	if (k->probe[0].key)
		return "entry and return of a function are matched by thread, without @";
	if ((why = add_probe(k, REQUEST_OP_END, NULL, text, key)) == NULL)
		k->probe[1].at_return = true;
	return why;
}

/* Names a kind without a name after its first probe: "query__start" -> "query". */
static void name_after_probe(struct request_kind *k)
{
	k->name = mem_printf("%.*s", NAME_LEN, k->probe[0].name);
	for (char *c = k->name; *c; c++)
		if (!strchr(WORD, *c))
			*c = '_';
	size_t n = strlen(k->name);
	if (n > 5 && strcmp(k->name + n - 5, "start") == 0)
		n -= 5;
	while (n > 1 && k->name[n - 1] == '_')
		n--;
	k->name[n] = '\0';
}

/* Parses a copy of the specification. Returns NULL, or a failure's reason. */
static const char *parse_place(struct request_kind *k, char *text)
{
	static const char usdt[] = ":usdt:";
	const size_t word = strspn(text, WORD);
	if (word && text[word] == '=' && word <= NAME_LEN) {
		k->name = mem_printf("%.*s", (int)word, text);
		text += word + 1;
	}
	char *probe = strstr(text, usdt), *provider = NULL;
	if (probe) {
		provider = probe + sizeof usdt - 1;
		*probe = '\0';
		probe = strchr(provider, ':');
		if (!probe || probe == provider)
			return "usdt needs PROVIDER:BEGIN/END";
		*probe++ = '\0';
	} else if ((probe = strrchr(text, ':')) != NULL) {
		*probe++ = '\0';
	}
	if (!probe || !*text)
		return "no such table, and no PATH:FUNCTION";
	*ARRAY_PUSH(k->path, k->paths, k->paths_cap) = mem_dup(text);
	const char *why = add_pair(k, provider, probe);
	if (!why && !k->name)
		name_after_probe(k);
	return why;
}

static struct request_kind *parse_spec(const char *spec, struct error *err)
{
	struct request_kind *k = mem_new(1, sizeof *k);
	char *copy = mem_dup(spec);
	k->by_user = true;
	const char *why = parse_place(k, copy);
	free(copy);
	if (!why)
		return k;
	refuse_spec(spec, why, err);
	request_kind_free(k);
	return NULL;
}

struct request_kind *request_kind_parse(const char *spec, struct error *err)
{
	const size_t n = strlen(spec);
	struct table_parser p = { .err = err };
	for (size_t i = 0; request_kind_shipped(i); i++)
		if (strcmp(request_kind_shipped(i), spec) == 0)
			return request_kind_parse_yaml(shipped[i].name, shipped[i].text, shipped[i].bytes, err);
	if (n > 5 && strcmp(spec + n - 5, ".yaml") == 0)
		return yaml_file_read(&p.file, spec, HELP, err) ? NULL : parse_table(&p);
	if (strchr(spec, ':'))
		return parse_spec(spec, err);
	char all[200] = "tables: ";
	for (size_t i = 0; request_kind_shipped(i); i++) {
		const size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", request_kind_shipped(i));
	}
	char escaped[300];
	error_set(err, STATUS_USAGE, all, "--requests %s: no such table", text_escape(escaped, sizeof escaped, spec));
	return NULL;
}
