/* The builder's attribute tree and its strings.
 *
 * A node costs 20 bytes, and 11 to 22 for a slot in a hash table where it has many siblings; a string its bytes, once,
 * and a slot.  All of it is in pages, which leave memory when they are many (paged_table.h).
 * Node 0 is the root; string 0 is empty. */
#ifndef STEALSCOPE_HISTORY_TREE_H
#define STEALSCOPE_HISTORY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "history/paged_table.h"

#define NONE UINT32_MAX
#define STRING_LONGEST 65535u        /* bytes; longer ones are cut */
#define STRINGS_MAX (1u << 30)       /* bytes of all strings together */

struct node {
	uint32_t parent, name;
	uint32_t child, sibling;     /* the last declared child; the one declared before this */
	uint32_t leaf;               /* index of the typed attribute, or NONE */
};

struct hash {
	struct paged slot;           /* of struct hash_slot */
	size_t cap, len;             /* cap: a power of two */
};

struct tree {
	struct paged node;           /* of struct node */
	size_t nodes;
	struct paged bytes;          /* of all strings, NUL-terminated */
	size_t bytes_len;
	struct hash by_name, by_string;
	char *folder;                /* what stood before the last '/' of the latest path, and its node; or NULL */
	uint32_t folder_node;
};

void tree_init(struct tree *t, struct page_pool *p);
void tree_release(struct tree *t);
void tree_forget_hashes(struct tree *t);   /* nothing can be looked up any more */
static inline struct node tree_node(struct tree *t, uint32_t id)
{
	return *PAGED_READ(&t->node, struct node, id);
}

/* Id (offset) of the string; NONE and *err when there is no room for it. */
uint32_t tree_string(struct tree *t, const char *s, struct error *err);
/* The node at an escaped path, made if need be; NONE and *err when the path is malformed. */
uint32_t tree_path(struct tree *t, const char *path, struct error *err);

/* The first n bytes from that place of the string on, zeroes behind its end. */
void tree_text(struct tree *t, uint32_t string, char *to, size_t n);
int tree_compare(struct tree *t, uint32_t a, uint32_t b);  /* two strings, as strcmp() */

/* Reads one component of an escaped path at *path (after its '/'), unescaped, into buf (as long as the path, or
 * STRING_LONGEST + 1 bytes) and moves *path behind it.  False: it is empty, too long or wrongly escaped. */
bool path_component(const char **path, char *buf);

#endif
