#include "base/yaml_file.h"

#include <errno.h>
#include <stdarg.h>

#include "base/base.h"
#include "base/file_open.h"

#define DEPTH_MAX 32   /* of collections in collections; session files need 5 */

/* Returns the problem of a text that nests deeper than DEPTH_MAX, and its place; NULL: none, or it is not YAML. libyaml's
 * time for a text grows with its depth's square: 16 s for 100 KB of brackets. */
static const char *find_depth(const char *text, size_t size, yaml_mark_t *at)
{
	yaml_parser_t parser;
	yaml_event_t event;
	int depth = 0;
	bool more = yaml_parser_initialize(&parser) != 0;
	if (!more)
		return NULL;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	while (more && depth <= DEPTH_MAX && yaml_parser_parse(&parser, &event)) {
		depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
		depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
		more = event.type != YAML_STREAM_END_EVENT;
		*at = event.start_mark;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return depth > DEPTH_MAX ? "nested too deep" : NULL;
}

int yaml_file_parse(struct yaml_file *f, const char *text, size_t size, const char *name, const char *remedy,
                    struct error *err)
{
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return error_set(err, STATUS_SYSTEM, NULL, "%s: out of memory", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	int rc = 0;
	yaml_mark_t at;
	const char *problem = find_depth(text, size, &at);
	if (problem)
		rc = error_set(err, STATUS_INPUT, remedy, "%s:%zu:%zu: %s", name, at.line + 1, at.column + 1, problem);
	else if (!yaml_parser_load(&parser, &f->doc))
		rc = error_set(err, STATUS_INPUT, remedy, "%s:%zu:%zu: not YAML: %s", name, parser.problem_mark.line + 1,
		               parser.problem_mark.column + 1, parser.problem ? parser.problem : "unreadable");
	yaml_parser_delete(&parser);
	if (rc)
		return -1;
	f->name = mem_dup(name);
	f->remedy = remedy;
	return 0;
}

int yaml_file_read(struct yaml_file *f, const char *path, const char *remedy, struct error *err)
{
	FILE *file = file_open(path);
	if (!file)
		return error_read(err, "check the path, or make it readable for you", "%s", path);
	char *text = mem_new(YAML_FILE_MAX + 1, 1);
	size_t n = fread(text, 1, YAML_FILE_MAX + 1, file);
	int rc = 0;
	if (ferror(file))
		rc = error_read(err, remedy, "%s", path);
	else if (n > YAML_FILE_MAX)
		rc = error_set(err, STATUS_INPUT, remedy, "%s: longer than %d bytes", path, YAML_FILE_MAX);
	fclose(file);
	if (rc == 0)
		rc = yaml_file_parse(f, text, n, path, remedy, err);
	free(text);
	return rc;
}

void yaml_file_release(struct yaml_file *f)
{
	yaml_document_delete(&f->doc);
	free(f->name);
	f->name = NULL;
}

yaml_node_t *yaml_root(struct yaml_file *f)
{
	return yaml_document_get_root_node(&f->doc);
}

const char *yaml_scalar(const yaml_node_t *node)
{
	if (!node || node->type != YAML_SCALAR_NODE)
		return NULL;
	const char *text = (const char *)node->data.scalar.value;
	return strlen(text) == node->data.scalar.length ? text : NULL;
}

bool yaml_item(struct yaml_file *f, const yaml_node_t *seq, size_t i, yaml_node_t **item)
{
	if (!seq || seq->type != YAML_SEQUENCE_NODE)
		return false;
	if (i >= (size_t)(seq->data.sequence.items.top - seq->data.sequence.items.start))
		return false;
	*item = yaml_document_get_node(&f->doc, seq->data.sequence.items.start[i]);
	return *item != NULL;
}

bool yaml_pair(struct yaml_file *f, const yaml_node_t *map, size_t i, yaml_node_t **key, yaml_node_t **value)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return false;
	if (i >= (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start))
		return false;
	*key = yaml_document_get_node(&f->doc, map->data.mapping.pairs.start[i].key);
	*value = yaml_document_get_node(&f->doc, map->data.mapping.pairs.start[i].value);
	return *key && *value;
}

yaml_node_t *yaml_member(struct yaml_file *f, const yaml_node_t *map, const char *key)
{
	yaml_node_t *k, *v;
	for (size_t i = 0; yaml_pair(f, map, i, &k, &v); i++) {
		const char *name = yaml_scalar(k);
		if (name && strcmp(name, key) == 0)
			return v;
	}
	return NULL;
}

int yaml_integer(const struct yaml_file *f, const yaml_node_t *node, int64_t low, int64_t high, int64_t *out,
                 struct error *err)
{
	const char *text = yaml_scalar(node);
	char *rest = NULL;
	errno = 0;
	long long v = text ? strtoll(text, &rest, 0) : 0;
	if (!text || rest == text || *rest || errno || v < low || v > high)
		return yaml_refuse(f, node, err, "a whole number from %lld to %lld is wanted here", (long long)low,
		                   (long long)high);
	*out = v;
	return 0;
}

int yaml_refuse(const struct yaml_file *f, const yaml_node_t *at, struct error *err, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!at)
		return error_set(err, STATUS_INPUT, f->remedy, "%s: %s", f->name, text);
	return error_set(err, STATUS_INPUT, f->remedy, "%s:%zu:%zu: %s", f->name, at->start_mark.line + 1,
	                 at->start_mark.column + 1, text);
}

int yaml_refuse_word(const struct yaml_file *f, const yaml_node_t *at, const char *kind,
                     const struct suggestion *suggestion, struct error *err)
{
	const bool meant = suggestion->nearest != NULL;
	return yaml_refuse(f, at, err, "%s: '%s'%s%s%s", kind, suggestion->typed, meant ? ", did you mean " : "",
	                   meant ? suggestion->nearest : "", meant ? "?" : "");
}
