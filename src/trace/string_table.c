#include "trace/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NAME_COST 64  /* bytes that a string costs beside its own, about */

void names_init(struct names *n)
{
	memset(n, 0, sizeof *n);
	n->most = NAMES_LARGEST;
	pthread_mutex_init(&n->lock, NULL);
	strtab_init(&n->tab);
}

void names_init_child(struct names *n)
{
	names_init(n);
	n->most += NAME_COST + STRTAB_LONGEST;
}

void names_release(struct names *n)
{
	pthread_mutex_destroy(&n->lock);
	strtab_release(&n->tab);
}

static uint32_t names_put(struct names *n, const char *s, size_t cost)
{
	pthread_mutex_lock(&n->lock);
	uint32_t id = 0;
	if (n->bytes + cost <= n->most) {
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

static void start(struct name_cache *c)
{
	strtab_init(&c->local);
	c->bytes = 0;
	c->global = mem_room(c->global, &c->cap, 0, sizeof *c->global);
	c->global[0] = 0;
}

void name_cache_init(struct name_cache *c, struct names *shared)
{
	*c = (struct name_cache){ .shared = shared };
	start(c);
}

void name_cache_release(struct name_cache *c)
{
	strtab_release(&c->local);
	free(c->global);
	*c = (struct name_cache){ 0 };
}

uint32_t name_cache_look(struct name_cache *c, const char *s, size_t most)
{
	char text[STRTAB_LONGEST + 1];
	const size_t len = strnlen(s, most < STRTAB_LONGEST ? most : STRTAB_LONGEST), known = c->local.len;
	memcpy(text, s, len);
	text[len] = '\0';
	const uint32_t id = strtab_put(&c->local, text);
	if (c->local.len == known)
		return c->global[id];
	const uint32_t global = names_put(c->shared, text, len + NAME_COST);
	c->global = mem_room(c->global, &c->cap, id, sizeof *c->global);
	c->global[id] = global;
	c->bytes += len + NAME_COST;
	if (c->bytes > NAMES_LARGEST / 8) {  /* a cache may forget */
		strtab_release(&c->local);
		start(c);
	}
	return global;
}
