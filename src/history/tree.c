#include "history/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define FEW 16  /* children that are looked at one by one: a hash table has them where there are more */

#define NEAR 16u

struct hash_slot {
	uint32_t hash, id;  /* id 0 = empty */
};

static uint32_t mix(uint64_t x)
{
	return (uint32_t)hash_end(hash_number(0, x));
}

static uint32_t hash_string(const char *s)
{
	return mix(hash_text(HASH_BEGIN, s));
}

/* New names come with new strings, one behind the other: so stand some of their slots, in the same page. */
static uint32_t hash_name(uint32_t parent, uint32_t name)
{
	return mix((uint64_t)parent << 32 | name / (4 * NEAR)) * NEAR + name / 4 % NEAR;
}

/* What is there from `hash` on: the slots of one run, and at its end 0. */
static uint32_t hash_next(struct hash *h, uint32_t hash, size_t *at)
{
	for (;;) {
		const struct hash_slot s = *PAGED_READ(&h->slot, struct hash_slot, *at & (h->cap - 1));
		++*at;
		if (!s.id || s.hash == hash)
			return s.id;
	}
}

static void hash_fill(struct hash *h, struct hash_slot s)
{
	size_t at = s.hash;
	while (PAGED_READ(&h->slot, struct hash_slot, at & (h->cap - 1))->id)
		at++;
	*PAGED_EDIT(&h->slot, struct hash_slot, at & (h->cap - 1)) = s;
}

static void hash_insert(struct hash *h, uint32_t hash, uint32_t id)
{
	if (4 * (h->len + 1) > 3 * h->cap) {
		struct hash old = *h;
		paged_move(&old.slot, &h->slot);
		h->cap *= 2;
		PAGED_ROOM(&h->slot, struct hash_slot, h->cap);
		for (size_t i = 0; i < old.cap; i++) {
			const struct hash_slot s = *PAGED_READ(&old.slot, struct hash_slot, i);
			if (s.id)
				hash_fill(h, s);
		}
		paged_release(&old.slot);
	}
	hash_fill(h, (struct hash_slot){ hash, id });
	h->len++;
}

static void hash_init(struct hash *h, struct page_pool *p)
{
	*h = (struct hash){ .cap = 64 };
	paged_init(&h->slot, p);
	PAGED_ROOM(&h->slot, struct hash_slot, h->cap);
}

static uint32_t node_add(struct tree *t, struct node n)
{
	PAGED_ROOM(&t->node, struct node, t->nodes + 1);
	*PAGED_EDIT(&t->node, struct node, t->nodes) = n;
	return (uint32_t)t->nodes++;
}

void tree_init(struct tree *t, struct page_pool *p)
{
	*t = (struct tree){ .bytes_len = 1 };
	paged_init(&t->node, p);
	paged_init(&t->bytes, p);
	paged_room(&t->bytes, 1);
	hash_init(&t->by_name, p);
	hash_init(&t->by_string, p);
	(void)node_add(t, (struct node){ NONE, 0, NONE, NONE, NONE });
}

void tree_release(struct tree *t)
{
	paged_release(&t->node);
	paged_release(&t->bytes);
	tree_forget_hashes(t);
	free(t->folder);
	t->folder = NULL;
}

void tree_forget_hashes(struct tree *t)
{
	paged_release(&t->by_name.slot);
	paged_release(&t->by_string.slot);
}

void tree_text(struct tree *t, uint32_t string, char *to, size_t n)
{
	size_t have = t->bytes_len - string, len;
	have = have < n ? have : n;
	paged_get(&t->bytes, string, to, have);
	len = strnlen(to, have);
	memset(to + len, 0, n - len);
}

int tree_compare(struct tree *t, uint32_t a, uint32_t b)
{
	char x[64], y[64];
	int result = 0;
	for (bool more = a != b; more && !result; a += sizeof x, b += sizeof y) {
		tree_text(t, a, x, sizeof x);
		tree_text(t, b, y, sizeof y);
		result = memcmp(x, y, sizeof x);
		more = x[sizeof x - 1];
	}
	return result;
}

/* n: its length. */
static bool is_string(struct tree *t, uint32_t at, const char *s, size_t n)
{
	for (n++; n > 0;) {
		const size_t from = at % PAGE_BYTES, m = PAGE_BYTES - from < n ? PAGE_BYTES - from : n;
		if (m > t->bytes_len - at || memcmp((const char *)paged_read(&t->bytes, at / PAGE_BYTES) + from, s, m))
			return false;
		at += (uint32_t)m;
		s += m;
		n -= m;
	}
	return true;
}

static uint32_t string_of(struct tree *t, const char *s, size_t n, struct error *err)
{
	if (!n)
		return 0;
	const uint32_t hash = hash_string(s);
	uint32_t id;
	for (size_t at = hash; (id = hash_next(&t->by_string, hash, &at));)
		if (is_string(t, id, s, n))
			return id;
	if (t->bytes_len + n + 1 > STRINGS_MAX) {
		error_set(err, STATUS_INPUT, NULL, "the history holds too many different strings: more than %u bytes",
		          STRINGS_MAX);
		return NONE;
	}
	id = (uint32_t)t->bytes_len;
	t->bytes_len += n + 1;
	paged_room(&t->bytes, t->bytes_len / PAGE_BYTES + 1);
	paged_put(&t->bytes, id, s, n + 1);
	hash_insert(&t->by_string, hash, id);
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
static unsigned young_child(struct tree *t, uint32_t parent, uint32_t name, uint32_t *id)
{
	unsigned n = 0;
	*id = tree_node(t, parent).child;
	for (; n <= FEW && *id != NONE; n++) {
		const struct node child = tree_node(t, *id);
		if (child.name == name)
			return n;
		*id = child.sibling;
	}
	*id = NONE;
	return n;
}

static uint32_t hashed_child(struct tree *t, uint32_t parent, uint32_t name)
{
	const uint32_t hash = hash_name(parent, name);
	uint32_t id;
	for (size_t at = hash; (id = hash_next(&t->by_name, hash, &at));) {
		const struct node n = tree_node(t, id);
		if (n.parent == parent && n.name == name)
			return id;
	}
	return NONE;
}

static uint32_t child_of(struct tree *t, uint32_t parent, uint32_t name)
{
	uint32_t id;
	const unsigned n = young_child(t, parent, name, &id);
	if (id == NONE && n > FEW)
		id = hashed_child(t, parent, name);
	if (id != NONE || t->nodes >= NONE - 1)
		return id;
	id = node_add(t, (struct node){ parent, name, NONE, tree_node(t, parent).child, NONE });
	PAGED_EDIT(&t->node, struct node, parent)->child = id;
	if (n > FEW)
		hash_insert(&t->by_name, hash_name(parent, name), id);
	else if (n == FEW)  /* no longer few */
		for (uint32_t i = id; i != NONE; i = tree_node(t, i).sibling)
			hash_insert(&t->by_name, hash_name(parent, tree_node(t, i).name), i);
	return id;
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
	const size_t n = (size_t)(strrchr(path, '/') - path);
	t->folder = mem_resize(t->folder, n + 1, 1);
	memcpy(t->folder, path, n);
	t->folder[n] = '\0';
	t->folder_node = tree_node(t, node).parent;
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
