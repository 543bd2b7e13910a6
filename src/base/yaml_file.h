/* YAML files written by users: layouts, themes, sessions, configuration. libyaml parses the text; these helpers access
 * the document and report mistakes as "FILE:LINE:COLUMN: reason". Only a file's first document is read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/error.h"
#include "base/suggest.h"

#define YAML_FILE_MAX (1 << 20)  /* the text's maximum size, bytes */

struct yaml_file {
	yaml_document_t doc;
	char *name;              /* the file's name, for messages */
	const char *remedy;      /* advice for messages: "see stealscope-theme(5)"; borrowed */
};

/* Read a file, or parse a text. After success call yaml_file_release(); after a failure do not. */
int yaml_file_read(struct yaml_file *f, const char *path, const char *remedy, struct error *err);
int yaml_file_parse(struct yaml_file *f, const char *text, size_t size, const char *name, const char *remedy,
                    struct error *err);
void yaml_file_release(struct yaml_file *f);

yaml_node_t *yaml_root(struct yaml_file *f);                                          /* NULL: the document is empty */
yaml_node_t *yaml_member(struct yaml_file *f, const yaml_node_t *map, const char *key);  /* NULL: absent, or no mapping */
/* Return item i of a sequence, pair i of a mapping. Return false after the end, and for other types of nodes. */
bool yaml_item(struct yaml_file *f, const yaml_node_t *seq, size_t i, yaml_node_t **item);
bool yaml_pair(struct yaml_file *f, const yaml_node_t *map, size_t i, yaml_node_t **key, yaml_node_t **value);

const char *yaml_scalar(const yaml_node_t *node);  /* a scalar's text; NULL: not a scalar, or it contains NUL bytes */

/* Parses a whole number (decimal or 0x...) within [low, high]; otherwise reports an error at the node. */
int yaml_integer(const struct yaml_file *f, const yaml_node_t *node, int64_t low, int64_t high, int64_t *out,
                 struct error *err);

/* Sets *err to "NAME:LINE:COLUMN: ..."; without a position if at is NULL. Returns -1. */
int yaml_refuse(const struct yaml_file *f, const yaml_node_t *at, struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Sets *err for an unknown word, with the closest known one: "... no such setting: 'glyfs', did you mean glyphs?".
 * Returns -1. */
int yaml_refuse_word(const struct yaml_file *f, const yaml_node_t *at, const char *kind,
                     const struct suggestion *suggestion, struct error *err);
