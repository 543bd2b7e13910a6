#include "history/tree.h"

#include "base/hash.h"

#define LINEAR_MAX 16  /* maximum number of children for linear search; beyond it a hash table is used */

#define SLOT_RUN_LEN 16u

struct hash_slot {
	uint32_t hash, id;       /* id 0: empty slot */
};

static uint32_t mix_bits(uint64_t x)
{
	return (uint32_t)hash_end(hash_number(0, x));
}

static uint32_t hash_string(const char *s)
{
	return mix_bits(hash_text(HASH_BEGIN, s));
}

/* Hash of a child's name. Names declared in sequence have string ids in sequence: SLOT_RUN of them have neighbouring
 * slots, mostly in one page. */
static uint32_t hash_name(uint32_t parent, uint32_t name)
{
	return mix_bits((uint64_t)parent << 32 | name / (4 * SLOT_RUN_LEN)) * SLOT_RUN_LEN + name / 4 % SLOT_RUN_LEN;
}

/* Returns the next id with this hash in the probe sequence, and advances *at; 0: no more. */
static uint32_t hash_next_match(struct hash *h, uint32_t hash, size_t *at)
{
	for (;;) {
		const struct hash_slot s = *PAGED_READ(&h->slot, struct hash_slot, *at & (h->cap - 1));
		++*at;
		if (!s.id || s.hash == hash)
			return s.id;
	}
}

static void hash_store(struct hash *h, struct hash_slot s)
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
		PAGED_GROW(&h->slot, struct hash_slot, h->cap);
		for (size_t i = 0; i < old.cap; i++) {
			const struct hash_slot s = *PAGED_READ(&old.slot, struct hash_slot, i);
			if (s.id)
				hash_store(h, s);
		}
		paged_release(&old.slot);
	}
	hash_store(h, (struct hash_slot){ hash, id });
	h->len++;
}

static void hash_init(struct hash *h, struct page_pool *p)
{
	*h = (struct hash){ .cap = 64 };
	paged_init(&h->slot, p);
	PAGED_GROW(&h->slot, struct hash_slot, h->cap);
}

static uint32_t node_add(struct tree *t, struct node n)
{
	PAGED_GROW(&t->node, struct node, t->nodes + 1);
	*PAGED_EDIT(&t->node, struct node, t->nodes) = n;
	return (uint32_t)t->nodes++;
}

void tree_init(struct tree *t, struct page_pool *p)
{
	*t = (struct tree){ .bytes_len = 1 };
	paged_init(&t->node, p);
	paged_init(&t->bytes, p);
	paged_grow(&t->bytes, 1);
	hash_init(&t->by_name, p);
	hash_init(&t->by_string, p);
	(void)node_add(t, (struct node){ NONE, 0, NONE, NONE, NONE });
}

void tree_release(struct tree *t)
{
	paged_release(&t->node);
	paged_release(&t->bytes);
	tree_forget_hashes(t);
	free(t->dir);
	t->dir = NULL;
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

/* Compares the string at offset `at` with s, of n bytes. */
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

static uint32_t intern_string(struct tree *t, const char *s, size_t n, struct error *err)
{
	if (!n)
		return 0;
	const uint32_t hash = hash_string(s);
	uint32_t id;
	for (size_t at = hash; (id = hash_next_match(&t->by_string, hash, &at));)
		if (is_string(t, id, s, n))
			return id;
	if (t->bytes_len + n + 1 > STRINGS_MAX) {
		error_set(err, STATUS_INPUT, NULL, "too many different strings: more than %u bytes",
		          STRINGS_MAX);
		return NONE;
	}
	id = (uint32_t)t->bytes_len;
	t->bytes_len += n + 1;
	paged_grow(&t->bytes, t->bytes_len / PAGE_BYTES + 1);
	paged_put(&t->bytes, id, s, n + 1);
	hash_insert(&t->by_string, hash, id);
	return id;
}

uint32_t tree_string(struct tree *t, const char *s, struct error *err)
{
	size_t n = strnlen(s, STRING_MAX + 1);
	if (n <= STRING_MAX)
		return intern_string(t, s, n, err);
	char *cut = mem_printf("%.*s", (int)STRING_MAX, s);
	uint32_t id = intern_string(t, cut, STRING_MAX, err);
	free(cut);
	return id;
}

/* Searches the last declared children, which are close in memory. Returns the number of other children compared; *id:
 * NONE if not found. */
static unsigned recent_child(struct tree *t, uint32_t parent, uint32_t name, uint32_t *id)
{
	unsigned n = 0;
	*id = tree_node(t, parent).child;
	for (; n <= LINEAR_MAX && *id != NONE; n++) {
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
	for (size_t at = hash; (id = hash_next_match(&t->by_name, hash, &at));) {
		const struct node n = tree_node(t, id);
		if (n.parent == parent && n.name == name)
			return id;
	}
	return NONE;
}

static uint32_t find_child(struct tree *t, uint32_t parent, uint32_t name)
{
	uint32_t id;
	const unsigned n = recent_child(t, parent, name, &id);
	if (id == NONE && n > LINEAR_MAX)
		id = hashed_child(t, parent, name);
	if (id != NONE || t->nodes >= NONE - 1)
		return id;
	id = node_add(t, (struct node){ parent, name, NONE, tree_node(t, parent).child, NONE });
	PAGED_EDIT(&t->node, struct node, parent)->child = id;
	if (n > LINEAR_MAX)
		hash_insert(&t->by_name, hash_name(parent, name), id);
	else if (n == LINEAR_MAX)  /* too many for linear search: put all children into the hash table */
		for (uint32_t i = id; i != NONE; i = tree_node(t, i).sibling)
			hash_insert(&t->by_name, hash_name(parent, tree_node(t, i).name), i);
	return id;
}

static int hex_digit(char c)
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
			int high = hex_digit(p[1]), low = high < 0 ? -1 : hex_digit(p[2]);
			if (low < 0 || !(high | low))
				return false;
			c = (char)(high << 4 | low);
			p += 2;
		}
		if (n == STRING_MAX)
			return false;
		buf[n++] = c;
	}
	buf[n] = '\0';
	*path = p;
	return n > 0;
}

/* Checks a whole path before it is parsed, because an invalid path must not create nodes. */
static bool path_is_valid(const char *path, char *name)
{
	const char *p = path;
	while (*p == '/') {
		p++;
		if (!path_component(&p, name))
			return false;
	}
	return p != path && !*p;
}

/* Returns the part of the path after a directory that the previous path has, too; *node: this directory. Attributes are
 * declared node by node, so this is the usual case. */
static const char *skip_dir(const struct tree *t, const char *path, uint32_t *node)
{
	size_t n = t->dir ? strlen(t->dir) : 0;
	if (n == 0 || strncmp(path, t->dir, n) != 0 || path[n] != '/' || strchr(path + n + 1, '/'))
		return path;
	*node = t->dir_node;
	return path + n;
}

static void remember_dir(struct tree *t, const char *path, uint32_t node)
{
	const size_t n = (size_t)(strrchr(path, '/') - path);
	t->dir = mem_resize(t->dir, n + 1, 1);
	memcpy(t->dir, path, n);
	t->dir[n] = '\0';
	t->dir_node = tree_node(t, node).parent;
}

uint32_t tree_path(struct tree *t, const char *path, struct error *err)
{
	uint32_t node = 0;
	const char *rest = skip_dir(t, path, &node);
	char *name = mem_resize(NULL, strlen(rest) + 1, 1);
	if (!path_is_valid(rest, name)) {
		error_set(err, STATUS_INPUT, NULL, "attribute path '%.200s': a component is missing, empty or wrongly escaped",
		          path);
		node = NONE;
	}
	for (const char *p = rest; node != NONE && *p;) {
		p++;
		path_component(&p, name);
		const uint32_t s = tree_string(t, name, err);
		node = s == NONE ? NONE : find_child(t, node, s);
		if (node == NONE && s != NONE)
			error_set(err, STATUS_INPUT, NULL, "the history has too many attributes");
	}
	free(name);
	if (node != NONE && rest == path)
		remember_dir(t, path, node);
	return node;
}
