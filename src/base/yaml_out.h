/* YAML writer: builds a document node by node, then its text. libyaml quotes where needed. */
#pragma once

#include <stdint.h>

struct yaml_out;

struct yaml_out *yaml_out_new(void);
#define YAML_OUT_ROOT 1  /* the top-level mapping */

/* Append a mapping in block style, a mapping in braces, or a list. parent: a mapping, with the key, or a list, with key
 * NULL. Return the number of the new node. */
int yaml_out_map(struct yaml_out *o, int parent, const char *key);
int yaml_out_braces(struct yaml_out *o, int parent, const char *key);
int yaml_out_list(struct yaml_out *o, int parent, const char *key);
/* Append a text (NULL: nothing is appended), or a number. */
void yaml_out_text(struct yaml_out *o, int parent, const char *key, const char *text);
/* Appends an untrusted name, escaped. */
void yaml_out_escaped(struct yaml_out *o, int parent, const char *key, const char *text);
void yaml_out_number(struct yaml_out *o, int parent, const char *key, int64_t n);
void yaml_out_count(struct yaml_out *o, int parent, const char *key, uint64_t n);

/* Returns the text, which the caller frees; NULL: a text was not UTF-8. Frees *o. */
char *yaml_out_end(struct yaml_out *o);
