#include "base/yaml_out.h"

#include <yaml.h>

#include "base/base.h"

struct yaml_out {
	yaml_document_t doc;
	bool bad;  /* a text is not UTF-8 */
	char *bytes;
	size_t size, cap;
};

struct yaml_out *yaml_out_new(void)
{
	struct yaml_out *o = mem_new(1, sizeof *o);
	yaml_document_initialize(&o->doc, NULL, NULL, NULL, 1, 1);
	yaml_document_add_mapping(&o->doc, NULL, YAML_BLOCK_MAPPING_STYLE);
	return o;
}

static int add_scalar(struct yaml_out *o, const char *text)
{
	const yaml_char_t *bytes = (const yaml_char_t *)text;
	const int node = yaml_document_add_scalar(&o->doc, NULL, bytes, (int)strlen(text), YAML_ANY_SCALAR_STYLE);
	o->bad |= node == 0;
	return node ? node : yaml_document_add_scalar(&o->doc, NULL, (const yaml_char_t *)"", 0, YAML_ANY_SCALAR_STYLE);
}

static int append_node(struct yaml_out *o, int parent, const char *key, int node)
{
	if (key)
		yaml_document_append_mapping_pair(&o->doc, parent, add_scalar(o, key), node);
	else
		yaml_document_append_sequence_item(&o->doc, parent, node);
	return node;
}

int yaml_out_map(struct yaml_out *o, int parent, const char *key)
{
	return append_node(o, parent, key, yaml_document_add_mapping(&o->doc, NULL, YAML_BLOCK_MAPPING_STYLE));
}

int yaml_out_braces(struct yaml_out *o, int parent, const char *key)
{
	return append_node(o, parent, key, yaml_document_add_mapping(&o->doc, NULL, YAML_FLOW_MAPPING_STYLE));
}

int yaml_out_list(struct yaml_out *o, int parent, const char *key)
{
	return append_node(o, parent, key, yaml_document_add_sequence(&o->doc, NULL, YAML_BLOCK_SEQUENCE_STYLE));
}

void yaml_out_text(struct yaml_out *o, int parent, const char *key, const char *text)
{
	if (text)
		append_node(o, parent, key, add_scalar(o, text));
}

void yaml_out_escaped(struct yaml_out *o, int parent, const char *key, const char *text)
{
	char escaped[1024];
	if (text)
		yaml_out_text(o, parent, key, text_escape(escaped, sizeof escaped, text));
}

void yaml_out_number(struct yaml_out *o, int parent, const char *key, int64_t n)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, n);
	yaml_out_text(o, parent, key, text);
}

void yaml_out_count(struct yaml_out *o, int parent, const char *key, uint64_t n)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, n);
	yaml_out_text(o, parent, key, text);
}

static int take_bytes(void *arg, unsigned char *bytes, size_t n)
{
	struct yaml_out *o = arg;
	if (o->size + n + 1 > o->cap) {
		o->cap = 2 * (o->size + n + 1);
		o->bytes = mem_resize(o->bytes, o->cap, 1);
	}
	memcpy(o->bytes + o->size, bytes, n);
	o->size += n;
	o->bytes[o->size] = '\0';
	return 1;
}

char *yaml_out_end(struct yaml_out *o)
{
	yaml_emitter_t emitter;
	yaml_emitter_initialize(&emitter);
	yaml_emitter_set_output(&emitter, take_bytes, o);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, -1);
	const bool complete = yaml_emitter_open(&emitter) && yaml_emitter_dump(&emitter, &o->doc) &&
	                   yaml_emitter_close(&emitter) && !o->bad;
	char *text = o->bytes;
	yaml_emitter_delete(&emitter);
	free(o);
	if (complete)
		return text;
	free(text);
	return NULL;
}
