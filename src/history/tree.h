/* Tree of the builder's attributes, and its strings.
 *
 * A node costs 20 bytes, plus 11 to 22 for a slot in a hash table if it has many siblings; a string costs its bytes,
 * once, and a slot. All are in paged tables (paged_table.h). Node 0 is the root; string 0 is empty. */
#pragma once

#include "base/base.h"
#include "history/paged_table.h"

#define NONE UINT32_MAX
#define STRING_MAX 65535u        /* maximum bytes of a string; longer ones are cut */
#define STRINGS_MAX (1u << 30)       /* maximum bytes of all strings */

struct node {
	uint32_t parent, name;
	uint32_t child, sibling;  /* the last declared child; the child of the same parent declared before this node; NONE:
	                           * none */
	uint32_t leaf;           /* the leaf's index; NONE: inner node */
};

struct hash {
	struct paged slot;       /* table of struct hash_slot */
	size_t cap, len;         /* slot count, a power of two; used slot count */
};

struct tree {
	struct paged node;       /* table of struct node */
	size_t nodes;
	struct paged bytes;      /* table of bytes: all strings, NUL-terminated */
	size_t bytes_len;
	struct hash by_name, by_string;
	char *dir;               /* part of the latest path before the last '/', and its node; NULL: none */
	uint32_t dir_node;
};

void tree_init(struct tree *t, struct page_pool *p);
void tree_release(struct tree *t);
void tree_forget_hashes(struct tree *t);   /* after it no look-ups are possible */
static inline struct node tree_node(struct tree *t, uint32_t id)
{
	return *PAGED_READ(&t->node, struct node, id);
}

/* Returns the string's id, its offset; NONE with *err if the table is full. */
uint32_t tree_string(struct tree *t, const char *s, struct error *err);
/* Returns the node at an escaped path, and creates it if needed; NONE with *err if the path is malformed. */
uint32_t tree_path(struct tree *t, const char *path, struct error *err);

/* Copies n bytes of a string, starting at an offset, padded with zeros after its end. */
void tree_text(struct tree *t, uint32_t string, char *to, size_t n);
int tree_compare(struct tree *t, uint32_t a, uint32_t b);  /* compares two strings; returns a number as strcmp() does */

/* Reads one component of an escaped path at *path (after its '/'), unescaped, into buf (as long as the path, or
 * STRING_MAX + 1 bytes), and advances *path to its end. Returns false if it is empty, too long or wrongly escaped. */
bool path_component(const char **path, char *buf);
