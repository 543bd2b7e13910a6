#include "history/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define FEW 16  /* children that are looked at one by one: a hash table has them where there are more */

static uint64_t mix(uint64_t x)
{
	return hash_end(hash_number(0, x));
}

static uint64_t hash_string(const char *s)
{
	return mix(hash_text(HASH_BEGIN, s));
}

static uint64_t hash_name(uint32_t parent, uint32_t name)
{
	return mix((uint64_t)parent << 32 | name);
}

static void hash_insert(struct hash *h, uint64_t at, uint32_t id)
{
	size_t i = (size_t)at & (h->cap - 1);
	while (h->slot[i])
		i = (i + 1) & (h->cap - 1);
	h->slot[i] = id;
}

/* Room for one more; true when the table is new and empty and the caller must insert everything again. */
static bool hash_room(struct hash *h)
{
	if (4 * (h->len + 1) <= 3 * h->cap)
		return false;
	h->cap = h->cap ? 2 * h->cap : 64;
	free(h->slot);
	h->slot = mem_new(h->cap, sizeof *h->slot);
	return true;
}

void tree_init(struct tree *t)
{
	*t = (struct tree){ 0 };
	t->bytes_cap = 64;
	t->bytes = mem_new(t->bytes_cap, 1);
	t->bytes_len = 1;
	*ARRAY_PUSH(t->node, t->nodes, t->nodes_cap) = (struct node){ NONE, 0, NONE, NONE, NONE };
}

void tree_release(struct tree *t)
{
	free(t->node);
	free(t->bytes);
	free(t->folder);
	free(t->by_name.slot);
	free(t->by_string.slot);
	*t = (struct tree){ 0 };
}

void tree_forget_hashes(struct tree *t)
{
	free(t->by_name.slot);
	free(t->by_string.slot);
	t->by_name = t->by_string = (struct hash){ 0 };
}

size_t tree_memory(const struct tree *t)
{
	return t->nodes * sizeof *t->node + t->bytes_len + (t->by_name.cap + t->by_string.cap) * sizeof(uint32_t);
}

static uint32_t string_of(struct tree *t, const char *s, size_t n, struct error *err)
{
	if (!n)
		return 0;
	struct hash *h = &t->by_string;
	if (hash_room(h))
		for (size_t at = 1; at < t->bytes_len; at += strlen(t->bytes + at) + 1)
			hash_insert(h, hash_string(t->bytes + at), (uint32_t)at);
	uint64_t hash = hash_string(s);
	for (size_t i = (size_t)hash & (h->cap - 1); h->slot[i]; i = (i + 1) & (h->cap - 1))
		if (!strcmp(t->bytes + h->slot[i], s))
			return h->slot[i];
	if (t->bytes_len + n + 1 > STRINGS_MAX) {
		error_set(err, STATUS_INPUT, NULL, "the history holds too many different strings: more than %u bytes",
		          STRINGS_MAX);
		return NONE;
	}
	while (t->bytes_cap < t->bytes_len + n + 1) {
		t->bytes_cap *= 2;
		t->bytes = mem_resize(t->bytes, t->bytes_cap, 1);
	}
	uint32_t id = (uint32_t)t->bytes_len;
	memcpy(t->bytes + id, s, n + 1);
	t->bytes_len += n + 1;
	hash_insert(h, hash, id);
	h->len++;
	return id;
}

uint32_t tree_string(struct tree *t, const char *s, struct error *err)
{
	size_t n = strnlen(s, STRING_LONGEST + 1);
	if (n <= STRING_LONGEST)
		return string_of(t, s, n, err);
	char *cut = mem_printf("%.*s", (int)STRING_LONGEST, s);
	uint32_t id = string_of(t, cut, STRING_LONGEST, err);
	free(cut);
	return id;
}

/* Among the last declared children, which are near in memory: how many were looked at before it was found, *id, or NONE. */
static unsigned young_child(const struct tree *t, uint32_t parent, uint32_t name, uint32_t *id)
{
	unsigned n = 0;
	*id = t->node[parent].child;
	for (; n <= FEW && *id != NONE && t->node[*id].name != name; n++)
		*id = t->node[*id].sibling;
	if (n > FEW)
		*id = NONE;
	return n;
}

static uint32_t hashed_child(const struct tree *t, uint32_t parent, uint32_t name)
{
	const struct hash *h = &t->by_name;
	size_t i = (size_t)hash_name(parent, name) & (h->cap - 1);
	while (h->slot[i] && (t->node[h->slot[i]].parent != parent || t->node[h->slot[i]].name != name))
		i = (i + 1) & (h->cap - 1);
	return h->slot[i] ? h->slot[i] : NONE;
}

static void hash_child(struct tree *t, uint32_t id)
{
	struct hash *h = &t->by_name;
	const struct hash old = *h;
	if (4 * (h->len + 1) > 3 * h->cap) {
		h->cap = h->cap ? 2 * h->cap : 64;
		h->slot = mem_new(h->cap, sizeof *h->slot);
		for (size_t i = 0; i < old.cap; i++)
			if (old.slot[i])
				hash_insert(h, hash_name(t->node[old.slot[i]].parent, t->node[old.slot[i]].name), old.slot[i]);
		free(old.slot);
	}
	hash_insert(h, hash_name(t->node[id].parent, t->node[id].name), id);
	h->len++;
}

static uint32_t child_of(struct tree *t, uint32_t parent, uint32_t name)
{
	uint32_t id;
	const unsigned n = young_child(t, parent, name, &id);
	if (id == NONE && n > FEW)
		id = hashed_child(t, parent, name);
	if (id != NONE || t->nodes >= NONE - 1)
		return id;
	id = (uint32_t)t->nodes;
	*ARRAY_PUSH(t->node, t->nodes, t->nodes_cap) = (struct node){ parent, name, NONE, t->node[parent].child, NONE };
	t->node[parent].child = id;
	if (n > FEW)
		hash_child(t, id);
	else if (n == FEW)  /* no longer few */
		for (; id != NONE; id = t->node[id].sibling)
			hash_child(t, id);
	return (uint32_t)t->nodes - 1;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool path_component(const char **path, char *buf)
{
	const char *p = *path;
	size_t n = 0;
	for (; *p && *p != '/'; p++) {
		char c = *p;
		if (c == '%') {
			int high = hex(p[1]), low = high < 0 ? -1 : hex(p[2]);
			if (low < 0 || !(high | low))
				return false;
			c = (char)(high << 4 | low);
			p += 2;
		}
		if (n == STRING_LONGEST)
			return false;
		buf[n++] = c;
	}
	buf[n] = '\0';
	*path = p;
	return n > 0;
}

/* A path that is refused must leave no node behind, so it is read twice. */
static bool path_is_sound(const char *path, char *name)
{
	const char *p = path;
	while (*p == '/') {
		p++;
		if (!path_component(&p, name))
			return false;
	}
	return p != path && !*p;
}

/* Attributes are declared node by node: what stands before the last '/' is what it was the last time. */
static const char *skip_folder(const struct tree *t, const char *path, uint32_t *node)
{
	size_t n = t->folder ? strlen(t->folder) : 0;
	if (n == 0 || strncmp(path, t->folder, n) != 0 || path[n] != '/' || strchr(path + n + 1, '/'))
		return path;
	*node = t->folder_node;
	return path + n;
}

static void keep_folder(struct tree *t, const char *path, uint32_t node)
{
	const char *end = strrchr(path, '/');
	free(t->folder);
	t->folder = mem_printf("%.*s", (int)(end - path), path);
	t->folder_node = t->node[node].parent;
}

uint32_t tree_path(struct tree *t, const char *path, struct error *err)
{
	uint32_t node = 0;
	const char *rest = skip_folder(t, path, &node);
	char *name = mem_resize(NULL, strlen(rest) + 1, 1);
	if (!path_is_sound(rest, name)) {
		error_set(err, STATUS_INPUT, NULL, "attribute path '%.200s': a component is missing, empty or wrongly escaped",
		          path);
		node = NONE;
	}
	for (const char *p = rest; node != NONE && *p;) {
		p++;
		path_component(&p, name);
		const uint32_t s = tree_string(t, name, err);
		node = s == NONE ? NONE : child_of(t, node, s);
		if (node == NONE && s != NONE)
			error_set(err, STATUS_INPUT, NULL, "the history has too many attributes");
	}
	free(name);
	if (node != NONE && rest == path)
		keep_folder(t, path, node);
	return node;
}
