#include "trace/ctf/types.h"

#define CHUNK_SIZE ((size_t)32 << 10)  /* bytes */
#define MAX_NODES 200000               /* most types and members; a kernel trace with all system calls has
                                        * 30,000 */
#define MAX_MEMBERS 4096               /* most members of one structure */

struct ctf_chunk {
	struct ctf_chunk *next;
	size_t size;
	_Alignas(16) unsigned char bytes[];
};

void ctf_metadata_release(struct ctf_metadata *m)
{
	for (struct ctf_chunk *c = m->arena.chunk, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	*m = (struct ctf_metadata){ 0 };
}

void *ctf_alloc(struct ctf_arena *a, size_t size)
{
	size = (size + 15) & ~(size_t)15;
	a->bytes += size;
	if (!a->chunk || size > a->chunk->size - a->used) {
		const size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;
		struct ctf_chunk *c = mem_new(1, sizeof *c + capacity);
		c->size = capacity;
		c->next = a->chunk;
		a->chunk = c;
		a->used = 0;
	}
	void *p = a->chunk->bytes + a->used;
	a->used += size;
	return p;
}

char *ctf_copy_text(struct ctf_arena *a, const char *s, size_t len)
{
	char *copy = ctf_alloc(a, len + 1);
	memcpy(copy, s, len);
	return copy;
}

struct ctf_type *ctf_type_new(struct ctf_arena *a, enum ctf_kind kind, uint32_t align)
{
	if (++a->nodes > MAX_NODES)
		return NULL;
	struct ctf_type *t = ctf_alloc(a, sizeof *t);
	t->kind = kind;
	t->align = align;
	t->slot = CTF_NO_SLOT;
	return t;
}

struct ctf_member *ctf_member_add(struct ctf_arena *a, struct ctf_type *t, const char *name, struct ctf_type *type)
{
	struct ctf_member **at = &t->member;
	if (!type || ++a->nodes > MAX_NODES)
		return NULL;
	for (unsigned n = 0; *at; at = &(*at)->next)
		if (++n >= MAX_MEMBERS)
			return NULL;
	*at = ctf_alloc(a, sizeof **at);
	**at = (struct ctf_member){ .name = name, .type = type };
	if (t->kind == CTF_STRUCT && type->align > t->align)
		t->align = type->align;
	return *at;
}

struct ctf_type *ctf_type_copy(struct ctf_arena *a, const struct ctf_type *t)
{
	struct ctf_type *copy = ctf_type_new(a, t->kind, t->align);
	if (!copy)
		return NULL;
	struct ctf_member **at = &copy->member;
	*copy = *t;
	copy->member = NULL;
	for (const struct ctf_member *m = t->member; m; m = m->next) {
		struct ctf_type *type = ctf_type_copy(a, m->type);
		if (!type || ++a->nodes > MAX_NODES)
			return NULL;
		*at = ctf_alloc(a, sizeof **at);
		**at = (struct ctf_member){ .name = m->name, .type = type };
		at = &(*at)->next;
	}
	copy->element = t->element ? ctf_type_copy(a, t->element) : NULL;
	return t->element && !copy->element ? NULL : copy;
}

struct ctf_type *ctf_member_find(const struct ctf_type *t, const char *name, size_t len)
{
	for (const struct ctf_member *m = t->member; m; m = m->next)
		if (ctf_name_equals(m->name, name, len))
			return m->type;
	return NULL;
}
