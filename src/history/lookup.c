/* Tree, state names, strings and key = value pairs of an open history.
 *
 * A node's children have consecutive ids in byte order of their names, so a child is found by binary search.
 * Functions without *err treat damaged parts as absent; history_damage() reports them. */
#include "base/base.h"
#include "history/file.h"
#include "history/tree.h"

#include <stdarg.h>

const char *file_string(const struct history *h, uint64_t id, struct error *err)
{
	uint64_t low = h->section[SECTION_STRINGS].offset, size = h->section[SECTION_STRINGS].size;
	if (id >= size) {
		file_fail_damaged(h, low, "a string lies outside of its section", err);
		return NULL;
	}
	uint64_t offset = low + id, limit = low + size;
	if (file_check(h, SECTION_STRINGS, offset, 1, err))
		return NULL;
	for (uint64_t at = offset; at < limit;) {
		uint64_t next = ((at >> h->block_shift) + 1) << h->block_shift;
		if (next > limit)
			next = limit;
		if (file_check(h, SECTION_STRINGS, at, next - at, err))
			return NULL;
		if (memchr(h->map + at, 0, next - at))
			return (const char *)h->map + offset;
		at = next;
	}
	file_fail_damaged(h, offset, "a string does not end", err);
	return NULL;
}

uint32_t history_attribute_count(const struct history *h)
{
	return h->attributes;
}

int history_type(const struct history *h, uint32_t attr)
{
	struct attr a;
	return attr_open(&a, h, attr, NULL) ? -1 : a.type;
}

const char *history_name(const struct history *h, uint32_t attr)
{
	struct attr a;
	const char *name = attr_open(&a, h, attr, NULL) ? NULL : file_string(h, a.name, NULL);
	return name ? name : "";
}

uint32_t history_parent(const struct history *h, uint32_t attr)
{
	struct attr a;
	return attr_open(&a, h, attr, NULL) ? HISTORY_NONE : a.parent;
}

/* Opens a child and checks its parent, so that an iteration over all children visits every attribute at most once.
 * Returns -1 on damage. */
static int open_child(struct attr *c, const struct history *h, uint32_t parent, uint32_t id)
{
	if (attr_open(c, h, id, NULL))
		return -1;
	uint64_t at = h->section[SECTION_ATTRIBUTES].offset + (uint64_t)id * ATTR_BYTES;
	return c->parent == parent ? 0 : file_fail_damaged(h, at, "an attribute has two parents", NULL);
}

uint32_t history_child(const struct history *h, uint32_t parent, uint32_t previous)
{
	struct attr a, c;
	if (attr_open(&a, h, parent, NULL) || !a.children)
		return HISTORY_NONE;
	uint32_t id = a.child;
	if (previous != HISTORY_NONE) {
		if (previous < a.child || previous - a.child >= a.children - 1)
			return HISTORY_NONE;
		id = previous + 1;
	}
	return open_child(&c, h, parent, id) ? HISTORY_NONE : id;
}

uint32_t history_child_named(const struct history *h, uint32_t parent, const char *name)
{
	struct attr a, c;
	if (attr_open(&a, h, parent, NULL))
		return HISTORY_NONE;
	uint32_t low = 0, high = a.children;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const char *at = open_child(&c, h, parent, a.child + middle) ? NULL : file_string(h, c.name, NULL);
		if (!at)
			return HISTORY_NONE;
		int order = strcmp(name, at);
		if (!order)
			return a.child + middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return HISTORY_NONE;
}

uint32_t history_find(const struct history *h, const char *path)
{
	char *name = *path == '/' ? malloc(strlen(path) + 1) : NULL;
	uint32_t attr = name ? 0 : HISTORY_NONE;
	for (const char *p = path; *p == '/' && (p[1] || p != path) && attr != HISTORY_NONE;) {
		p++;
		attr = path_component(&p, name) ? history_child_named(h, attr, name) : HISTORY_NONE;
	}
	free(name);
	return attr;
}

static int match_pattern(const struct history *h, uint32_t attr, const char *p, int (*fn)(void *arg, uint32_t attr),
                         void *arg)
{
	/* Names in the pattern are looked up; only "*" recurses. The depth of the recursion is limited by the pattern. */
	while (*p == '/' && p[1] && attr != HISTORY_NONE) {
		if (p[1] == '*' && (p[2] == '/' || !p[2])) {
			int result = 0;
			for (uint32_t c = history_child(h, attr, HISTORY_NONE); c != HISTORY_NONE && !result;
			     c = history_child(h, attr, c))
				result = match_pattern(h, c, p + 2, fn, arg);
			return result;
		}
		p++;
		char *name = malloc(strlen(p) + 1);
		attr = name && path_component(&p, name) ? history_child_named(h, attr, name) : HISTORY_NONE;
		free(name);
	}
	return attr == HISTORY_NONE || *p ? 0 : fn(arg, attr);
}

int history_match(const struct history *h, const char *pattern, int (*fn)(void *arg, uint32_t attr), void *arg)
{
	if (!strcmp(pattern, "/"))
		return fn(arg, 0);
	return *pattern == '/' ? match_pattern(h, 0, pattern, fn, arg) : 0;
}

/* Returns the record of the attribute's state set; NULL: none, or damaged. */
static const uint8_t *state_set(const struct history *h, uint32_t attr)
{
	struct attr a;
	if (attr_open(&a, h, attr, NULL) || a.type != HISTORY_STATE)
		return NULL;
	uint64_t at = h->section[SECTION_SETS].offset + (uint64_t)a.set * SET_BYTES;
	if (file_check(h, SECTION_SETS, at, SET_BYTES, NULL))
		return NULL;
	if (get32(h->map + at + SET_STATES) >= HISTORY_STATES) {
		file_fail_damaged(h, at, "a state set is too large", NULL);
		return NULL;
	}
	return h->map + at;
}

unsigned history_state_count(const struct history *h, uint32_t attr)
{
	const uint8_t *set = state_set(h, attr);
	return set ? get32(set + SET_STATES) : 0;
}

const char *history_state_name(const struct history *h, uint32_t attr, unsigned state)
{
	const uint8_t *set = state_set(h, attr);
	if (!set || state >= get32(set + SET_STATES))
		return "";
	const char *name = file_string(h, get32(set + SET_STATE + 4 * state), NULL);
	return name ? name : "";
}

const char *history_string(const struct history *h, int64_t value)
{
	if (value < 0 || (uint64_t)value >= h->section[SECTION_STRINGS].size)
		return "";
	const char *s = file_string(h, (uint64_t)value, NULL);
	return s ? s : "";
}

/* Reads the pair at *at of the meta section, and advances *at. *key, *value: lengths. Returns -1 on damage. */
static int next_meta(const struct history *h, uint64_t *at, uint64_t *key, uint64_t *value)
{
	if (file_check(h, SECTION_META, *at, META_BYTES, NULL))
		return -1;
	*key = get32(h->map + *at + META_KEY);
	*value = get32(h->map + *at + META_VALUE);
	*at += META_BYTES;
	if (file_check(h, SECTION_META, *at, *key + *value, NULL))
		return -1;
	*at += *key + *value;
	return 0;
}

const void *history_meta(const struct history *h, const char *key, size_t *size)
{
	uint64_t at = h->section[SECTION_META].offset, key_len, value_len;
	for (uint32_t i = 0; i < h->metas; i++) {
		if (next_meta(h, &at, &key_len, &value_len))
			return NULL;
		const uint8_t *value = h->map + at - value_len;
		if (key_len == strlen(key) && !memcmp(value - key_len, key, key_len)) {
			if (size)
				*size = value_len;
			return value;
		}
	}
	return NULL;
}

char *history_path(char *buf, size_t size, ...)
{
	va_list ap;
	size_t n = 0;
	va_start(ap, size);
	for (const char *c; (c = va_arg(ap, const char *));) {
		char bytes[4] = "/";
		for (;; c++) {
			size_t len = strlen(bytes);
			if (n + len < size)
				memcpy(buf + n, bytes, len);
			n = n + len < size ? n + len : size;
			if (!*c)
				break;
			snprintf(bytes, sizeof bytes, *c == '/' ? "%%2f" : *c == '%' ? "%%25" : "%c", *c);
		}
	}
	va_end(ap);
	if (size)
		buf[n < size ? n : size - 1] = '\0';
	return buf;
}
