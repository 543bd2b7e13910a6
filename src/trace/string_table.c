#include "trace/string_table.h"

#define STRING_OVERHEAD 64  /* approximate overhead of a stored string, bytes */

void string_table_init(struct string_table *n)
{
	memset(n, 0, sizeof *n);
	n->max_bytes = STRING_TABLE_MAX;
	pthread_mutex_init(&n->lock, NULL);
	strtab_init(&n->tab);
}

void string_table_init_child(struct string_table *n)
{
	string_table_init(n);
	n->max_bytes += STRING_OVERHEAD + STRTAB_MAX;
}

void string_table_release(struct string_table *n)
{
	pthread_mutex_destroy(&n->lock);
	strtab_release(&n->tab);
}

static uint32_t string_table_put(struct string_table *n, const char *s, size_t cost)
{
	pthread_mutex_lock(&n->lock);
	uint32_t id = 0;
	if (n->bytes + cost <= n->max_bytes) {
		size_t before = n->tab.len;
		id = strtab_put(&n->tab, s);
		if (n->tab.len > before)
			n->bytes += cost;
	} else {
		atomic_store(&n->full, true);
	}
	pthread_mutex_unlock(&n->lock);
	return id;
}

static void string_cache_clear(struct string_cache *c)
{
	strtab_init(&c->local);
	c->bytes = 0;
	c->global = array_grow(c->global, &c->cap, 0, sizeof *c->global);
	c->global[0] = 0;
}

void string_cache_init(struct string_cache *c, struct string_table *shared)
{
	*c = (struct string_cache){ .shared = shared };
	string_cache_clear(c);
}

void string_cache_release(struct string_cache *c)
{
	strtab_release(&c->local);
	free(c->global);
	*c = (struct string_cache){ 0 };
}

uint32_t string_cache_lookup(struct string_cache *c, const char *s, size_t max_len)
{
	char text[STRTAB_MAX + 1];
	const size_t len = strnlen(s, max_len < STRTAB_MAX ? max_len : STRTAB_MAX), known = c->local.len;
	memcpy(text, s, len);
	text[len] = '\0';
	const uint32_t id = strtab_put(&c->local, text);
	if (c->local.len == known)
		return c->global[id];
	const uint32_t global = string_table_put(c->shared, text, len + STRING_OVERHEAD);
	c->global = array_grow(c->global, &c->cap, id, sizeof *c->global);
	c->global[id] = global;
	c->bytes += len + STRING_OVERHEAD;
	if (c->bytes > STRING_TABLE_MAX / 8) {  /* the cache is too large: starts with an empty one */
		strtab_release(&c->local);
		string_cache_clear(c);
	}
	return global;
}
