#include "model/sink_async.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/streaming_store.h"
#include "base/strtab.h"

enum { CHANGES = 2048, BATCHES = 32, LINE = 64 };

/* Changes go from one processor's cache to another's: the smaller the better. */
struct change_batch {
	size_t len;
	uint64_t since;                   /* times are after this one */
	struct waiting_change { uint64_t value, what; } change[CHANGES];  /* what: attribute | ns after `since` << 32 */
};

#define MIDDLE (UINT64_C(1) << 31)    /* some are before the first one's */

struct sink_beside {
	struct history_builder *builder;  /* whoever sets a batch uses it, or the model when all are set */
	struct change_batch *batch;       /* BATCHES of them, taken in turn; the model fills number `made` */
	size_t made;
	size_t settled;                   /* of those it is known that they are set */
	struct strtab text;               /* that the builder knows, and by which ids */
	int64_t *id;
	size_t ids, ids_cap;
	struct chores *chores;
	struct chore chore;
	/* What the model writes for each change is in no line that others look at. */
	_Alignas(LINE) struct change_batch *to;  /* number `made` */
	size_t len;                       /* changes in that one */
	uint64_t since;
	char apart[LINE];
};

/* Looks at what the model writes for each change no more than once. */
static int set_batch(void *arg, size_t number, struct error *err)
{
	const struct sink_beside *s = arg;
	struct history_builder *const b = s->builder;
	const struct change_batch *batch = &s->batch[number % BATCHES];
	const uint64_t since = batch->since;
	const struct waiting_change *c = batch->change, *const end = c + batch->len;
	for (; c < end; c++)
		if (history_set(b, (int64_t)(since + (c->what >> 32)), (uint32_t)c->what, (int64_t)c->value, err))
			return -1;
	return 1;
}

static void close_batch(struct sink_beside *s)
{
	s->to->len = s->len;
	s->to->since = s->since;
	s->len = 0;
	pass_on_all();
}

/* The batch is full, or has to be set for another reason: returns when no more than so many are yet to be. */
static int hand_over(struct sink_beside *s, size_t left, struct error *err)
{
	close_batch(s);
	s->made++;
	s->to = &s->batch[s->made % BATCHES];
	const size_t settled = s->made > left ? s->made - left : 0;
	const int status = chores_until(s->chores, &s->chore, s->made, settled, err);
	if (status < 0)
		return -1;
	s->settled = settled;
	return 0;
}

/* What waits is set; where that is the last batch alone, here. */
static int catch_up(struct sink_beside *s, struct error *err)
{
	if (s->settled < s->made)
		return hand_over(s, 0, err);
	close_batch(s);
	return set_batch(s, s->made, err) < 0 ? -1 : 0;
}

static unsigned beside_state_set(void *to, const char *name, const char *const *state, unsigned n)
{
	struct sink_beside *s = to;
	(void)catch_up(s, NULL);
	return history_state_set(s->builder, name, state, n);
}

static uint32_t beside_attribute(void *to, const char *path, enum history_type type, unsigned set, struct error *err)
{
	struct sink_beside *s = to;
	return catch_up(s, err) ? HISTORY_NONE : history_attribute(s->builder, path, type, set, err);
}

static int beside_set(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	struct sink_beside *s = to;
	if (s->len > 0 && (uint64_t)t - s->since > UINT32_MAX && hand_over(s, BATCHES - 1, err))
		return -1;
	if (s->len == 0)
		s->since = (uint64_t)t - MIDDLE;
	struct waiting_change *c = &s->to->change[s->len++];
	pass_on_word(&c->value, (uint64_t)value, true);
	pass_on_word(&c->what, attr | ((uint64_t)t - s->since) << 32, true);
	return s->len == CHANGES ? hand_over(s, BATCHES - 1, err) : 0;
}

static int64_t beside_text(void *to, const char *text, struct error *err)
{
	struct sink_beside *s = to;
	if (strlen(text) > STRTAB_LONGEST)
		return catch_up(s, err) ? -1 : history_text(s->builder, text, err);
	const uint32_t known = strtab_put(&s->text, text);
	while (s->ids <= known)
		*ARRAY_PUSH(s->id, s->ids, s->ids_cap) = -1;
	if (s->id[known] < 0 && catch_up(s, err) == 0)
		s->id[known] = history_text(s->builder, text, err);
	return s->id[known];
}

const struct model_sink_ops sink_beside = {
	.state_set = beside_state_set, .attribute = beside_attribute, .set = beside_set, .text = beside_text,
};

struct sink_beside *sink_beside_begin(struct history_builder *b, struct chores *chores)
{
	struct sink_beside *s = mem_lines(sizeof *s);
	*s = (struct sink_beside){
		.builder = b, .batch = mem_new(BATCHES, sizeof *s->batch), .chores = chores,
		.chore = { .step = set_batch, .arg = s, .plenty = BATCHES / 2, .err = ERROR_INIT },
	};
	s->to = s->batch;
	strtab_init(&s->text);
	chores_add(chores, &s->chore);
	return s;
}

int sink_beside_end(struct sink_beside *s, struct error *err)
{
	if (!s)
		return 0;
	const int status = catch_up(s, err);
	chores_remove(s->chores, &s->chore);
	strtab_release(&s->text);
	free(s->id);
	free(s->batch);
	free(s);
	return status;
}
