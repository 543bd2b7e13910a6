#include "compare/diff/ledger.h"

#include "base/base.h"
#include "base/bisect.h"
#include "base/hash.h"

void ledger_init(struct ledger *l, const struct diff_side *side)
{
	*l = (struct ledger){ .catalog = side->catalog };
	for (unsigned i = 0; i <= DIFF_SLICES; i++)
		l->edge[i] = flow_column(side->from, side->to, i, DIFF_SLICES);
}

void ledger_release(struct ledger *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->series[i]->target);
		free(l->series[i]->by);
		free(l->series[i]);
	}
	for (size_t i = 0; i < l->latency_kinds; i++) {
		free(l->latencies[i].target);
		free(l->latencies[i].item);
	}
	free(l->series);
	free(l->latencies);
	map_release(&l->by_hash);
	notes_release(&l->notes);
	*l = (struct ledger){ 0 };
}

static struct series *series_new(struct ledger *l, unsigned kind, const char *target, unsigned q, const char *by)
{
	struct series *s = *ARRAY_PUSH(l->series, l->len, l->cap) = mem_new(1, sizeof *s);
	s->target = mem_dup(target);
	s->by = mem_dup(by);
	s->kind = (uint8_t)kind;
	s->quantity = (uint8_t)q;
	double unit = diff_unit_of[q] == UNIT_RATE ? 1e9 : 1;
	for (unsigned i = 0; i < DIFF_SLICES && diff_unit_of[q] != UNIT_NS; i++)
		s->den[i] = (double)(l->edge[i + 1] - l->edge[i]) / unit;
	return s;
}

/* Finds a series; NULL: absent. *hash becomes its key in by_hash, or the free key for it. */
static struct series *find_series(const struct ledger *l, unsigned kind, const char *target, unsigned q, const char *by,
                              uint64_t *hash)
{
	const unsigned char head[2] = { (unsigned char)kind, (unsigned char)q };
	*hash = hash_bytes(HASH_BEGIN, head, sizeof head);
	*hash = hash_bytes(*hash, target, strlen(target) + 1);
	*hash = hash_bytes(*hash, by, strlen(by));
	for (;; ++*hash) {
		const uint64_t *at = map_find(&l->by_hash, *hash);
		struct series *s = at ? l->series[*at] : NULL;
		if (!s || (s->kind == kind && s->quantity == q && !strcmp(s->target, target) && !strcmp(s->by, by)))
			return s;
	}
}

struct series *ledger_series(struct ledger *l, enum diff_kind kind, const char *target, enum diff_quantity q,
                             const char *by)
{
	uint64_t hash;
	struct series *s = find_series(l, kind, target, q, by, &hash);
	if (!s && l->len >= LEDGER_MAX) {
		target = "(others)";
		by = "";
		s = find_series(l, kind, target, q, by, &hash);
	}
	if (!s) {
		*map_put(&l->by_hash, hash, NULL) = l->len;
		s = series_new(l, kind, target, q, by);
	}
	return s;
}

struct series *ledger_find(const struct ledger *l, const struct series *like)
{
	uint64_t hash;
	return find_series(l, like->kind, like->target, like->quantity, like->by, &hash);
}

struct latencies *ledger_latencies(struct ledger *l, const char *target)
{
	for (size_t i = 0; i < l->latency_kinds; i++)
		if (!strcmp(l->latencies[i].target, target))
			return &l->latencies[i];
	struct latencies *new = ARRAY_PUSH(l->latencies, l->latency_kinds, l->latency_cap);
	*new = (struct latencies){ .target = mem_dup(target) };
	return new;
}

unsigned ledger_slice(const struct ledger *l, int64_t t)
{
	size_t at;
	BISECT(at, DIFF_SLICES, l->edge[at] <= t);
	return at > 0 ? (unsigned)at - 1 : 0;
}

char *ledger_target(const struct catalog *catalog, const struct target *target, char buf[TARGET_TEXT])
{
	char name[TARGET_TEXT / 2];
	text_escape(name, sizeof name, catalog->machine[target_machine(catalog, target)].name);
	if (target->kind != TARGET_THREAD) {
		snprintf(buf, TARGET_TEXT, "%s", name);
		return buf;
	}
	char thread[TARGET_TEXT / 2];
	text_escape(thread, sizeof thread, catalog_longest_name(catalog, target->index));
	snprintf(buf, TARGET_TEXT, "%s/%s", name, *thread ? thread : "(no name)");
	return buf;
}

bool diff_find(const struct catalog *catalog, const struct diff_row *row, int64_t from, int64_t to, struct target *out)
{
	char name[TARGET_TEXT];
	int64_t max_lost = -1;
	if (row->kind != DIFF_OF_THREAD)
		return ledger_find_machine(catalog, row->target, out);
	for (uint32_t i = 0; i < catalog->threads; i++) {
		const struct target s = { TARGET_THREAD, i };
		int64_t ns = 0;
		if (strcmp(ledger_target(catalog, &s, name), row->target) != 0)
			continue;
		if (steal_time(catalog, &s, from, to, &ns, NULL) < 0)
			ns = 0;
		if (ns > max_lost) {
			max_lost = ns;
			*out = s;
		}
	}
	return max_lost >= 0;
}

char *ledger_actor(const struct catalog *catalog, const struct actor *actor, const char *name, char buf[TARGET_TEXT])
{
	char system[TARGET_TEXT / 2] = "", thread[TARGET_TEXT / 2] = "";
	if (actor->machine >= 0)
		text_escape(system, sizeof system, catalog->machine[actor->machine].name);
	text_escape(thread, sizeof thread, name ? name : "");
	switch ((enum flow_kind)actor->kind) {
	case FLOW_RUNNING:
		snprintf(buf, TARGET_TEXT, "own work");
		break;
	case FLOW_PREEMPTING: case FLOW_IRQ:
		snprintf(buf, TARGET_TEXT, "%s/%s", system, *thread ? thread : "(no name)");
		break;
	case FLOW_CURRENT:
		snprintf(buf, TARGET_TEXT, "%s/%s or provider", system,
		         actor->tid == 0 ? "idle CPU" : *thread ? thread : "(no name)");
		break;
	case FLOW_WAITING:
		snprintf(buf, TARGET_TEXT, "asleep");
		break;
	case FLOW_LIMITED:
		snprintf(buf, TARGET_TEXT, "limited by %s", *thread ? thread : "something");
		break;
	default:
		snprintf(buf, TARGET_TEXT, "%s", actor->kind == FLOW_HYPERVISOR ? "hypervisor" :
		         actor->kind == FLOW_IDLE_CPU ? "idle CPU" : "unknown");
	}
	return buf;
}
