/* Sentences on the actors for which a thread slept: actors on its critical path, the culprits that delayed them, the
 * evidence, and the wakeup latency. The path and its largest delay are those of the findings. */
#include "base/base.h"
#include "query/explain.h"

#define HELPERS_MAX 3
#define MOSTLY_SHARE 0.5       /* minimum share of the sleep for which the actors account, for the word "mostly" */
#define PARTLY_SHARE 0.1       /* minimum share of the sleep for a sentence */
#define NAMED_SHARE 0.1 /* minimum share of that for an actor to be named */

struct helper {
	struct actor actor, culprit;
	int64_t ns, culprit_ns;   /* ns on the path; ns of these that one culprit took */
};

struct helpers {
	struct helper *one;
	size_t len, cap;
	int64_t ns, inferred_ns;   /* ns of all; ns of these without proof, inferred from the nearest events */
};

/* Wakeup latency: the rest of each sleep after the wakeup, until the target's vCPU was woken and had a CPU. */
struct wakeup_latency {
	int64_t ns;
	struct helper culprit; /* the culprit that took most of it */
};

static struct helper *helper_of(struct helpers *all, const struct actor *actor)
{
	for (size_t i = 0; i < all->len; i++)
		if (same_thread(&all->one[i].actor, actor))
			return &all->one[i];
	struct helper *h = ARRAY_PUSH(all->one, all->len, all->cap);
	*h = (struct helper){ .actor = *actor, .culprit = { -1, -1, 0, FLOW_UNKNOWN, 0 } };
	return h;
}

/* The sums are sorted, longest first: the first culprit of a helper took most in one sum. */
static void collect_helpers(const struct sleep_path *sleep, struct helpers *all)
{
	const struct path *p = &sleep->path;
	for (size_t i = 0; i < p->sums; i++) {
		const struct path_sum *sum = &p->sum[i];
		if (!path_is_helper(&sleep->chain.self, &sum->actor))
			continue;
		struct helper *h = helper_of(all, &sum->actor);
		h->ns += sum->duration;
		all->ns += sum->duration;
		if (sum->culprit.machine < 0 || !flow_is_thread(sum->culprit.kind))
			continue;
		if (!h->culprit_ns)
			h->culprit = sum->culprit;
		if (same_thread(&h->culprit, &sum->culprit))
			h->culprit_ns += sum->duration;
	}
	for (size_t i = 0; i < p->intervals; i++)
		if (p->interval[i].evidence >= 0 && path_is_helper(&sleep->chain.self, &p->interval[i].actor))
			all->inferred_ns += p->interval[i].end - p->interval[i].start + 1;
}

static void measure_wakeup_latency(const struct sleep_path *sleep, struct wakeup_latency *out)
{
	const struct path *p = &sleep->path;
	struct helpers culprits = { 0 };
	for (size_t i = 0; i < p->intervals; i++) {
		const struct path_interval *interval = &p->interval[i];
		const int64_t ns = interval->end - interval->start + 1;
		if (interval->edge == EDGE_START || interval->actor.kind == FLOW_UNKNOWN ||
		    !same_thread(&sleep->chain.self, &interval->actor))
			continue;
		out->ns += ns;
		if (interval->culprit.machine >= 0 && flow_is_thread(interval->culprit.kind))
			helper_of(&culprits, &interval->culprit)->culprit_ns += ns;
	}
	for (size_t i = 0; i < culprits.len; i++)
		if (culprits.one[i].culprit_ns > out->culprit.culprit_ns)
			out->culprit = culprits.one[i];
	free(culprits.one);
}

ORDER_BY(compare_helpers, struct helper, FALLING(ns) RISING(actor.tid))

char *explanation_path_actor(const struct explanation *s, struct actor actor, char buf[NAME_TEXT])
{
	const struct path *p = &s->findings->sleep->path;
	actor.kind = FLOW_PREEMPTING;
	return actor_text(s->catalog, &actor, actor.name < p->names ? p->name[actor.name] : NULL,
	                  ACTOR_SENTENCE, &s->target, buf, NAME_TEXT);
}

/* Writes the chain's culprit if it took considerably more than the sentence on the first helper shows. */
static void write_chain_culprit(const struct explanation *s, const struct helpers *all)
{
	const struct helper *first = &all->one[0];
	const struct delay_chain *c = &s->findings->sleep->chain;
	char actor[NAME_TEXT], d[TIME_TEXT];
	const int64_t shown_ns = same_thread(&c->culprit, &first->culprit) ? first->culprit_ns : 0;
	if ((double)c->ns >= NAMED_SHARE * (double)all->ns && (double)(c->ns - shown_ns) >= NAMED_SHARE * (double)c->ns)
		fprintf(s->to, "; %s had the CPUs of this chain for %s in total", explanation_path_actor(s, c->culprit, actor),
		        time_duration(d, c->ns));
}

static void write_helpers(const struct explanation *s, const struct helpers *all)
{
	char actor[NAME_TEXT], d[TIME_TEXT];
	const bool mostly = (double)all->ns >= MOSTLY_SHARE * (double)s->demand.slept;
	for (size_t i = 0; i < all->len && i < HELPERS_MAX; i++) {
		const struct helper *h = &all->one[i];
		if (i && (double)h->ns < NAMED_SHARE * (double)all->ns)
			break;
		fprintf(s->to, "%s%s: %s", i ? "; " : mostly ? "It mostly waited for "
		        : "It partly waited for ",
		        explanation_path_actor(s, h->actor, actor), time_duration(d, h->ns));
		if ((double)h->culprit_ns >= NAMED_SHARE * (double)h->ns)
			fprintf(s->to, ", while %s had its CPU for %s", explanation_path_actor(s, h->culprit, actor),
			        time_duration(d, h->culprit_ns));
	}
	write_chain_culprit(s, all);
	if (all->inferred_ns)
		fprintf(s->to, "; of the %s of this chain ", time_duration(d, all->ns));
	if (all->inferred_ns)
		fprintf(s->to, "%s are inferred from the nearest events, the rest is proven by wakeup events",
		        time_duration(d, all->inferred_ns));
	else
		fputs(" (from wakeup events)", s->to);
	fputs(".\n", s->to);
}

static void write_wakeup_latency(const struct explanation *s, const struct wakeup_latency *latency)
{
	char actor[NAME_TEXT], d[TIME_TEXT];
	fprintf(s->to, "Wakeup latency: %s of its sleep", time_duration(d, latency->ns));
	if ((double)latency->culprit.culprit_ns >= NAMED_SHARE * (double)latency->ns)
		fprintf(s->to, "; for %s of that %s had its vCPU's CPU", time_duration(d, latency->culprit.culprit_ns),
		        explanation_path_actor(s, latency->culprit.actor, actor));
	fputs(".\n", s->to);
}

void explain_path(struct explanation *s)
{
	const struct sleep_path *sleep = s->findings->sleep;
	struct helpers all = { 0 };
	struct wakeup_latency latency = { 0 };
	if (!sleep)
		return;
	collect_helpers(sleep, &all);
	measure_wakeup_latency(sleep, &latency);
	if (all.len && (double)all.ns >= PARTLY_SHARE * (double)s->demand.slept) {
		qsort(all.one, all.len, sizeof *all.one, compare_helpers);
		write_helpers(s, &all);
		if (sleep->chain.ns && (double)sleep->chain.ns >= NAMED_SHARE * (double)all.ns)
			s->delay = &sleep->chain;
		s->slept_for = true;
	}
	if (s->catalog->machine[s->machine].kind == MACHINE_VM && (double)latency.ns >= PARTLY_SHARE * (double)s->demand.slept)
		write_wakeup_latency(s, &latency);
	free(all.one);
}
