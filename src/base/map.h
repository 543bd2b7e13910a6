/* Hash map from 64-bit keys to 64-bit values: open addressing, linear probing, at most 3/4 full. Insert, find and remove
 * cost O(1) on average; 17 bytes of memory per slot. Changes invalidate iterators. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	struct map_slot { uint64_t key, value; } *slot;
	unsigned char *full;
	size_t cap;              /* slot count: a power of two, or 0 */
	size_t len;              /* key count */
};

#define MAP_INIT { NULL, NULL, 0, 0 }

void map_release(struct map *m);
uint64_t *map_find(const struct map *m, uint64_t key);             /* the key's value; NULL: absent */
uint64_t *map_put(struct map *m, uint64_t key, bool *is_new);      /* the key's value, new ones are 0; is_new: may be
                                                                    * NULL */
bool map_remove(struct map *m, uint64_t key);
/* Iterates over all keys: start with *at = 0. Returns false at the end. */
bool map_each(const struct map *m, size_t *at, uint64_t *key, uint64_t *value);
