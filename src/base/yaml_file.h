/* YAML files that people write: layouts, themes, sessions, configuration.  libyaml parses; these helpers walk the
 * document and tell a mistake with its place, "FILE:LINE:COLUMN: what".  Only the first document counts. */
#ifndef STEALSCOPE_BASE_YAML_FILE_H
#define STEALSCOPE_BASE_YAML_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/error.h"
#include "base/suggest.h"

#define YAML_FILE_LONGEST (1 << 20)  /* bytes of text that are accepted */

struct yaml_file {
	yaml_document_t doc;
	char *name;         /* for messages */
	const char *mend;   /* for messages: "see stealscope-theme(5)"; borrowed */
};

/* Reads a file / parses text.  On success call yaml_file_release(); on failure nothing is left to release. */
int yaml_file_read(struct yaml_file *f, const char *path, const char *mend, struct error *err);
int yaml_file_parse(struct yaml_file *f, const char *text, size_t size, const char *name, const char *mend,
                    struct error *err);
void yaml_file_release(struct yaml_file *f);

yaml_node_t *yaml_root(struct yaml_file *f);                                          /* NULL: an empty document */
yaml_node_t *yaml_member(struct yaml_file *f, const yaml_node_t *map, const char *key);  /* NULL: absent or no map */
/* The i-th item of a sequence / pair of a mapping; false past the end and for other nodes. */
bool yaml_item(struct yaml_file *f, const yaml_node_t *seq, size_t i, yaml_node_t **item);
bool yaml_pair(struct yaml_file *f, const yaml_node_t *map, size_t i, yaml_node_t **key, yaml_node_t **value);

const char *yaml_scalar(const yaml_node_t *node);  /* text of a scalar without NUL bytes, else NULL */

/* A whole number (decimal or 0x...) within [low, high]; otherwise refuses at the node. */
int yaml_integer(const struct yaml_file *f, const yaml_node_t *node, int64_t low, int64_t high, int64_t *out,
                 struct error *err);

/* Sets *err to "NAME:LINE:COLUMN: ..." (at == NULL: just "NAME: ...").  Returns -1. */
int yaml_refuse(const struct yaml_file *f, const yaml_node_t *at, struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same of a word that is none of those that `near` saw: "... no such setting: 'glyfs', did you mean glyphs?" */
int yaml_refuse_word(const struct yaml_file *f, const yaml_node_t *at, const char *what, const struct suggestion *near,
                     struct error *err);

#endif
