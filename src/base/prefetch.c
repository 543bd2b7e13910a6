#include "base/prefetch.h"

#include <stdlib.h>

#include "base/mem.h"

struct ahead {
	struct chores *chores;
	struct chore chore;
	int (*make)(void *arg, void *batch, struct error *err);
	void *arg;
	unsigned char *batch;     /* `slots` of them, taken in turn */
	size_t slots, bytes;      /* bytes of one */
	size_t used;              /* batches ever; the caller looks at number used - 1 */
};

static void *slot(const struct ahead *a, size_t number)
{
	return a->batch + number % a->slots * a->bytes;
}

static int make_one(void *arg, size_t number, struct error *err)
{
	const struct ahead *a = arg;
	return a->make(a->arg, slot(a, number), err);
}

struct ahead *ahead_begin(struct chores *chores, size_t bytes, int (*make)(void *arg, void *batch, struct error *err),
                          void *arg)
{
	struct ahead *a = mem_new(1, sizeof *a);
	const size_t slots = chores_have_threads(chores) ? AHEAD_BATCHES : 1;
	*a = (struct ahead){
		.chores = chores, .make = make, .arg = arg, .slots = slots, .bytes = bytes, .batch = mem_new(slots, bytes),
		.chore = { .step = make_one, .arg = a, .allowed = slots, .plenty = slots / 2, .err = ERROR_INIT },
	};
	chores_add(chores, &a->chore);
	return a;
}

int ahead_next(struct ahead *a, const void **batch, struct error *err)
{
	const int got = chores_until(a->chores, &a->chore, a->used + a->slots, a->used + 1, err);
	if (got > 0)
		*batch = slot(a, a->used++);
	return got;
}

void ahead_end(struct ahead *a)
{
	if (!a)
		return;
	chores_remove(a->chores, &a->chore);
	free(a->batch);
	free(a);
}
