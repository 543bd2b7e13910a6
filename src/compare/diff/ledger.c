#include "compare/diff/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"

void ledger_init(struct ledger *l, const struct diff_side *side)
{
	*l = (struct ledger){ .topo = side->topo };
	for (unsigned i = 0; i <= DIFF_SLICES; i++)
		l->edge[i] = flow_column(side->from, side->to, i, DIFF_SLICES);
}

void ledger_release(struct ledger *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->series[i]->subject);
		free(l->series[i]->by);
		free(l->series[i]);
	}
	for (size_t i = 0; i < l->latency_kinds; i++) {
		free(l->latencies[i].subject);
		free(l->latencies[i].item);
	}
	free(l->series);
	free(l->latencies);
	map_release(&l->by_hash);
	notes_release(&l->notes);
	*l = (struct ledger){ 0 };
}

static struct series *series_new(struct ledger *l, unsigned kind, const char *subject, unsigned q, const char *by)
{
	struct series *s = *ARRAY_PUSH(l->series, l->len, l->cap) = mem_new(1, sizeof *s);
	s->subject = mem_dup(subject);
	s->by = mem_dup(by);
	s->kind = (uint8_t)kind;
	s->quantity = (uint8_t)q;
	double unit = diff_unit_of[q] == UNIT_RATE ? 1e9 : 1;
	for (unsigned i = 0; i < DIFF_SLICES && diff_unit_of[q] != UNIT_NS; i++)
		s->den[i] = (double)(l->edge[i + 1] - l->edge[i]) / unit;
	return s;
}

/* Where that series is, or would be, in by_hash; NULL: there is none. */
static struct series *look_up(const struct ledger *l, unsigned kind, const char *subject, unsigned q, const char *by,
                              uint64_t *hash)
{
	const unsigned char head[2] = { (unsigned char)kind, (unsigned char)q };
	*hash = hash_bytes(HASH_BEGIN, head, sizeof head);
	*hash = hash_bytes(*hash, subject, strlen(subject) + 1);
	*hash = hash_bytes(*hash, by, strlen(by));
	for (;; ++*hash) {
		const uint64_t *at = map_find(&l->by_hash, *hash);
		struct series *s = at ? l->series[*at] : NULL;
		if (!s || (s->kind == kind && s->quantity == q && !strcmp(s->subject, subject) && !strcmp(s->by, by)))
			return s;
	}
}

struct series *ledger_series(struct ledger *l, enum diff_kind kind, const char *subject, enum diff_quantity q,
                             const char *by)
{
	uint64_t hash;
	struct series *s = look_up(l, kind, subject, q, by, &hash);
	if (!s && l->len >= LEDGER_MOST) {
		subject = "(others)";
		by = "";
		s = look_up(l, kind, subject, q, by, &hash);
	}
	if (!s) {
		*map_put(&l->by_hash, hash, NULL) = l->len;
		s = series_new(l, kind, subject, q, by);
	}
	return s;
}

struct series *ledger_find(const struct ledger *l, const struct series *like)
{
	uint64_t hash;
	return look_up(l, like->kind, like->subject, like->quantity, like->by, &hash);
}

struct latencies *ledger_latencies(struct ledger *l, const char *subject)
{
	for (size_t i = 0; i < l->latency_kinds; i++)
		if (!strcmp(l->latencies[i].subject, subject))
			return &l->latencies[i];
	struct latencies *new = ARRAY_PUSH(l->latencies, l->latency_kinds, l->latency_cap);
	*new = (struct latencies){ .subject = mem_dup(subject) };
	return new;
}

unsigned ledger_slice(const struct ledger *l, int64_t t)
{
	size_t at;
	BISECT(at, DIFF_SLICES, l->edge[at] <= t);
	return at > 0 ? (unsigned)at - 1 : 0;
}

char *ledger_subject(const struct topo *topo, const struct subject *s, char buf[SUBJECT_TEXT])
{
	char name[SUBJECT_TEXT / 2];
	text_escape(name, sizeof name, topo->machine[subject_machine(topo, s)].name);
	if (s->kind != SUBJECT_THREAD) {
		snprintf(buf, SUBJECT_TEXT, "%s", name);
		return buf;
	}
	char thread[SUBJECT_TEXT / 2];
	text_escape(thread, sizeof thread, topo_longest_name(topo, s->index));
	snprintf(buf, SUBJECT_TEXT, "%s/%s", name, *thread ? thread : "(no name)");
	return buf;
}

bool diff_find(const struct topo *topo, const struct diff_row *row, int64_t from, int64_t to, struct subject *out)
{
	char name[SUBJECT_TEXT];
	int64_t most = -1;
	if (row->kind != DIFF_OF_THREAD)
		return ledger_find_machine(topo, row->subject, out);
	for (uint32_t i = 0; i < topo->threads; i++) {
		const struct subject s = { SUBJECT_THREAD, i };
		int64_t ns = 0;
		if (strcmp(ledger_subject(topo, &s, name), row->subject) != 0)
			continue;
		if (steal_time(topo, &s, from, to, &ns, NULL) < 0)
			ns = 0;
		if (ns > most) {
			most = ns;
			*out = s;
		}
	}
	return most >= 0;
}

char *ledger_party(const struct topo *topo, const struct party *who, const char *name, char buf[SUBJECT_TEXT])
{
	char system[SUBJECT_TEXT / 2] = "", thread[SUBJECT_TEXT / 2] = "";
	if (who->system >= 0)
		text_escape(system, sizeof system, topo->machine[who->system].name);
	text_escape(thread, sizeof thread, name ? name : "");
	switch ((enum flow_kind)who->kind) {
	case FLOW_RUNNING:
		snprintf(buf, SUBJECT_TEXT, "own work");
		break;
	case FLOW_PREEMPTING: case FLOW_IRQ:
		snprintf(buf, SUBJECT_TEXT, "%s/%s", system, *thread ? thread : "(no name)");
		break;
	case FLOW_WAITING:
		snprintf(buf, SUBJECT_TEXT, "asleep");
		break;
	case FLOW_LIMITED:
		snprintf(buf, SUBJECT_TEXT, "limited by %s", *thread ? thread : "something");
		break;
	default:
		snprintf(buf, SUBJECT_TEXT, "%s", who->kind == FLOW_HYPERVISOR ? "hypervisor" :
		         who->kind == FLOW_IDLE_CPU ? "idle CPU" : "unknown");
	}
	return buf;
}
