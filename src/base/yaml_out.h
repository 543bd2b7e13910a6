/* YAML that is written: a document grown node by node, then its text.  libyaml quotes what must be. */
#ifndef STEALSCOPE_BASE_YAML_OUT_H
#define STEALSCOPE_BASE_YAML_OUT_H

#include <stdint.h>

struct yaml_out;

struct yaml_out *yaml_out_new(void);
#define YAML_OUT_ROOT 1  /* the mapping that holds all */

/* A mapping on lines of its own, one within braces, and a list, under `key` of a mapping; or, without key, as the next item
 * of a list.  Their numbers. */
int yaml_out_map(struct yaml_out *o, int parent, const char *key);
int yaml_out_braces(struct yaml_out *o, int parent, const char *key);
int yaml_out_list(struct yaml_out *o, int parent, const char *key);
/* A text, nothing for NULL, and a number, in the same places. */
void yaml_out_text(struct yaml_out *o, int parent, const char *key, const char *text);
/* A name that somebody else chose. */
void yaml_out_escaped(struct yaml_out *o, int parent, const char *key, const char *text);
void yaml_out_number(struct yaml_out *o, int parent, const char *key, int64_t n);
void yaml_out_count(struct yaml_out *o, int parent, const char *key, uint64_t n);

/* Frees it.  The text, which the caller frees; NULL when something in it is not UTF-8. */
char *yaml_out_end(struct yaml_out *o);

#endif
