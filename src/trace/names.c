#include "trace/names.h"

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
	for (size_t i = 0; i < NAMES_NEAR; i++)
		c->near[i] = (struct near_name){ "", 0 };
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

/* Cheap, and different for names that differ in a number, as those of CPUs' threads do. */
static size_t near_place(const char *s)
{
	const size_t n = strlen(s);
	const unsigned char first = (unsigned char)s[0], middle = (unsigned char)s[n / 2];
	const unsigned char late = (unsigned char)s[n - (n > 1)], last = (unsigned char)s[n - (n > 0)];
	return (n + first + 3U * middle + 7U * late + 31U * last) % NAMES_NEAR;
}

uint32_t name_cache_put(struct name_cache *c, const char *s)
{
	struct near_name *near = &c->near[near_place(s)];
	if (strcmp(s, near->text) == 0)
		return near->id;
	size_t known = c->local.len;
	uint32_t id = strtab_put(&c->local, s);
	if (c->local.len > known) {
		size_t cost = strlen(strtab_get(&c->local, id)) + NAME_COST;
		c->global = mem_room(c->global, &c->cap, id, sizeof *c->global);
		c->global[id] = names_put(c->shared, s, cost);
		c->bytes += cost;
		if (c->bytes > NAMES_LARGEST / 8) {  /* a cache may forget */
			uint32_t global = c->global[id];
			strtab_release(&c->local);
			start(c);
			return global;
		}
	}
	*near = (struct near_name){ strtab_get(&c->local, id), c->global[id] };
	return near->id;
}
