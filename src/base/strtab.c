#include "base/strtab.h"

#include "base/base.h"
#include "base/hash.h"

void strtab_init(struct strtab *t)
{
	*t = (struct strtab){ 0 };
	strtab_put(t, "");
}

void strtab_release(struct strtab *t)
{
	for (size_t i = 0; i < t->len; i++)
		free(t->str[i]);
	free(t->str);
	map_release(&t->by_hash);
	*t = (struct strtab){ 0 };
}

uint32_t strtab_put(struct strtab *t, const char *s)
{
	size_t n = s ? strnlen(s, STRTAB_MAX) : 0;
	uint64_t hash = hash_bytes(HASH_BEGIN, s, n);
	for (;; hash++) {
		bool is_new;
		uint64_t *id = map_put(&t->by_hash, hash, &is_new);
		if (is_new) {
			*id = t->len;
			char *copy = mem_new(n + 1, 1);
			if (n)
				memcpy(copy, s, n);
			*ARRAY_PUSH(t->str, t->len, t->cap) = copy;
			return (uint32_t)*id;
		}
		const char *existing = t->str[*id];
		if (strlen(existing) == n && (n == 0 || memcmp(existing, s, n) == 0))
			return (uint32_t)*id;
	}
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return id < t->len ? t->str[id] : "";
}
