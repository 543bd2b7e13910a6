
#include "base/base.h"
#include "base/hash.h"

static size_t home_slot(const struct map *m, uint64_t key)
{
	return (size_t)(hash_end(hash_number(0, key)) & (m->cap - 1));
}

void map_release(struct map *m)
{
	free(m->slot);
	free(m->full);
	*m = (struct map)MAP_INIT;
}

uint64_t *map_find(const struct map *m, uint64_t key)
{
	if (!m->cap)
		return NULL;
	for (size_t i = home_slot(m, key); m->full[i]; i = (i + 1) & (m->cap - 1))
		if (m->slot[i].key == key)
			return &m->slot[i].value;
	return NULL;
}

static void grow_map(struct map *m)
{
	struct map old = *m;
	m->cap = old.cap ? 2 * old.cap : 16;
	m->slot = mem_new(m->cap, sizeof *m->slot);
	m->full = mem_new(m->cap, 1);
	for (size_t i = 0; i < old.cap; i++) {
		if (!old.full[i])
			continue;
		size_t j = home_slot(m, old.slot[i].key);
		while (m->full[j])
			j = (j + 1) & (m->cap - 1);
		m->slot[j] = old.slot[i];
		m->full[j] = 1;
	}
	free(old.slot);
	free(old.full);
}

static __attribute__((noinline)) uint64_t *insert_key(struct map *m, uint64_t key)
{
	if (4 * (m->len + 1) > 3 * m->cap)
		grow_map(m);
	size_t i = home_slot(m, key);
	while (m->full[i])
		i = (i + 1) & (m->cap - 1);
	m->full[i] = 1;
	m->slot[i] = (struct map_slot){ key, 0 };
	m->len++;
	return &m->slot[i].value;
}

uint64_t *map_put(struct map *m, uint64_t key, bool *is_new)
{
	uint64_t *found = map_find(m, key);
	if (is_new)
		*is_new = !found;
	return found ? found : insert_key(m, key);
}

bool map_remove(struct map *m, uint64_t key)
{
	uint64_t *found = map_find(m, key);
	if (!found)
		return false;
	size_t hole = (size_t)((struct map_slot *)(void *)((char *)found - offsetof(struct map_slot, value)) - m->slot);
	m->full[hole] = 0;
	m->len--;
	/* Close the gap: move later keys of the probe sequence to the free slot if their own slot is not after it. */
	for (size_t i = (hole + 1) & (m->cap - 1); m->full[i]; i = (i + 1) & (m->cap - 1)) {
		size_t home = home_slot(m, m->slot[i].key);
		if (((i - home) & (m->cap - 1)) < ((i - hole) & (m->cap - 1)))
			continue;
		m->slot[hole] = m->slot[i];
		m->full[hole] = 1;
		m->full[i] = 0;
		hole = i;
	}
	return true;
}

bool map_each(const struct map *m, size_t *at, uint64_t *key, uint64_t *value)
{
	for (; *at < m->cap; ++*at) {
		if (!m->full[*at])
			continue;
		*key = m->slot[*at].key;
		*value = m->slot[*at].value;
		++*at;
		return true;
	}
	return false;
}
