/* Whom a thread slept for, in sentences: those who had the time of its critical path, who kept them from it, how that is
 * known, and how late it was woken.  Cost: that of the path. */
#include "query/explain.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"

#define TOLD 3
#define MOSTLY 0.5       /* part of the sleep from which on it was mostly somebody's */
#define A_PART 0.1       /* from which on that is told at all */
#define WORTH_TELLING 0.1 /* of that, from which on somebody is named */

struct helper {
	struct party who, thief;
	int64_t ns, taken;   /* on the path; of it what one thief had */
};

struct helpers {
	struct helper *one;
	size_t len, cap;
	int64_t ns, near;    /* of all; of it by what was nearest in time */
	struct helper thief; /* who had most from all who led to it */
};

/* What was left of its sleeps once their end had been caused: its vCPU had to be woken, and to get a CPU. */
struct lateness {
	int64_t ns;
	struct helper thief; /* who had most of that */
};

/* Is it about the subject's own time, or that of the vCPU that was woken for it? */
static bool is_own(const struct story *s, const struct party *who)
{
	if (s->subject.kind == SUBJECT_CPU)
		return who->system == (int32_t)s->machine;
	return who->system == (int32_t)s->machine && who->tid == s->topo->thread[s->subject.index].tid;
}

static bool is_somebody(const struct story *s, const struct party *who)
{
	return who->system >= 0 && who->kind != FLOW_UNKNOWN && who->kind != FLOW_WAITING && who->tid > 0 && !is_own(s, who);
}

static bool same_thread(const struct party *a, const struct party *b)
{
	return a->system == b->system && a->tid == b->tid;
}

static struct helper *helper_of(struct helpers *all, const struct party *who)
{
	for (size_t i = 0; i < all->len; i++)
		if (same_thread(&all->one[i].who, who))
			return &all->one[i];
	struct helper *h = ARRAY_PUSH(all->one, all->len, all->cap);
	*h = (struct helper){ .who = *who, .thief = { -1, -1, 0, FLOW_UNKNOWN } };
	return h;
}

/* Who had most of the CPUs of those who led to it. */
static void gather_thief(const struct story *s, const struct path *p, struct helpers *all)
{
	for (size_t i = 0; i < p->sums; i++) {
		const struct party *thief = &p->sum[i].thief;
		if (thief->system < 0 || thief->kind != FLOW_PREEMPTING || same_thread(thief, &all->thief.thief))
			continue;
		struct helper h = { .thief = *thief };
		for (size_t k = i; k < p->sums; k++)
			if (same_thread(&p->sum[k].thief, thief) && !is_own(s, &p->sum[k].who))
				h.taken += p->sum[k].duration;
		if (h.taken > all->thief.taken)
			all->thief = h;
	}
}

/* The sums are longest first: the thief of a helper that comes first had most at once. */
static void gather(const struct story *s, const struct path *p, struct helpers *all)
{
	for (size_t i = 0; i < p->sums; i++) {
		const struct path_sum *sum = &p->sum[i];
		if (!is_somebody(s, &sum->who))
			continue;
		struct helper *h = helper_of(all, &sum->who);
		h->ns += sum->duration;
		all->ns += sum->duration;
		if (sum->thief.system < 0 || sum->thief.kind != FLOW_PREEMPTING)
			continue;
		if (!h->taken)
			h->thief = sum->thief;
		if (same_thread(&h->thief, &sum->thief))
			h->taken += sum->duration;
	}
	for (size_t i = 0; i < p->pieces; i++)
		if (p->piece[i].evidence >= 0 && is_somebody(s, &p->piece[i].who))
			all->near += p->piece[i].end - p->piece[i].start + 1;
	gather_thief(s, p, all);
}

static void gather_lateness(const struct story *s, const struct path *p, struct lateness *out)
{
	struct helpers thieves = { 0 };
	for (size_t i = 0; i < p->pieces; i++) {
		const struct path_piece *piece = &p->piece[i];
		const int64_t ns = piece->end - piece->start + 1;
		if (piece->edge == EDGE_START || piece->who.kind == FLOW_UNKNOWN || !is_own(s, &piece->who))
			continue;
		out->ns += ns;
		if (piece->thief.system >= 0 && piece->thief.kind == FLOW_PREEMPTING)
			helper_of(&thieves, &piece->thief)->taken += ns;
	}
	for (size_t i = 0; i < thieves.len; i++)
		if (thieves.one[i].taken > out->thief.taken)
			out->thief = thieves.one[i];
	free(thieves.one);
}

static int most_first(const void *a, const void *b)
{
	const struct helper *x = a, *y = b;
	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (x->who.tid > y->who.tid) - (x->who.tid < y->who.tid);
}

static char *name_of(const struct story *s, const struct path *p, struct party who, char buf[NAME_TEXT])
{
	who.kind = FLOW_PREEMPTING;
	return explain_party(s->topo, &who, who.name < p->names ? p->name[who.name] : NULL, &s->subject, buf, NAME_TEXT);
}

/* Where that is considerably more than what was told of the first helper. */
static void tell_thief(const struct story *s, const struct path *p, const struct helpers *all)
{
	const struct helper *h = &all->thief, *first = &all->one[0];
	char who[NAME_TEXT], d[TIME_TEXT];
	const int64_t told = same_thread(&h->thief, &first->thief) ? first->taken : 0;
	if ((double)h->taken < WORTH_TELLING * (double)all->ns || (double)(h->taken - told) < WORTH_TELLING * (double)h->taken)
		return;
	fprintf(s->to, "; %s had the CPUs of those who led to it for %s in all", name_of(s, p, h->thief, who),
	        time_duration(d, h->taken));
}

static void tell_helpers(const struct story *s, const struct path *p, const struct helpers *all)
{
	char who[NAME_TEXT], d[TIME_TEXT];
	const bool mostly = (double)all->ns >= MOSTLY * (double)s->demand.slept;
	for (size_t i = 0; i < all->len && i < TOLD; i++) {
		const struct helper *h = &all->one[i];
		if (i && (double)h->ns < WORTH_TELLING * (double)all->ns)
			break;
		fprintf(s->to, "%s%s: %s", i ? "; " : mostly ? "What it slept for was mostly the doing of "
		                                             : "What it slept for was in part the doing of ",
		        name_of(s, p, h->who, who), time_duration(d, h->ns));
		if ((double)h->taken >= WORTH_TELLING * (double)h->ns)
			fprintf(s->to, ", %s of that because %s had its CPU", time_duration(d, h->taken),
			        name_of(s, p, h->thief, who));
	}
	tell_thief(s, p, all);
	if (all->near)
		fprintf(s->to, "; of the %s of all who led to it ", time_duration(d, all->ns));
	if (all->near)
		fprintf(s->to, "%s go by what was nearest in time, the rest by recorded wakeups", time_duration(d, all->near));
	else
		fputs("; recorded wakeups tell so", s->to);
	fputs(".\n", s->to);
}

static void tell_lateness(const struct story *s, const struct path *p, const struct lateness *late)
{
	char who[NAME_TEXT], d[TIME_TEXT];
	fprintf(s->to, "For %s of its sleep it was being woken", time_duration(d, late->ns));
	if ((double)late->thief.taken >= WORTH_TELLING * (double)late->ns)
		fprintf(s->to, "; for %s of that %s had its vCPU's CPU", time_duration(d, late->thief.taken),
		        name_of(s, p, late->thief.who, who));
	fputs(".\n", s->to);
}

/* A thread, or an idle or untraced guest's vCPU, that is nobody of those who led to it: these work for it. */
static bool is_rival(const struct story *s, const struct helpers *all, const struct party *thief)
{
	for (size_t i = 0; i < all->len; i++)
		if (same_thread(&all->one[i].who, thief))
			return false;
	return thief->system >= 0 && (thief->tid > 0 || s->topo->machine[thief->system].kind == MACHINE_VM);
}

static void remember_kept(struct story *s, const struct path *p, const struct helpers *all)
{
	const struct helper *most = NULL;
	char name[NAME_TEXT];
	for (size_t i = 0; i < all->len; i++)
		if (is_rival(s, all, &all->one[i].thief) && (!most || all->one[i].taken > most->taken))
			most = &all->one[i];
	if (!most || (double)most->taken < WORTH_TELLING * (double)all->ns)
		return;
	s->kept.who = most->who;
	s->kept.thief = most->thief;
	s->kept.who_name = mem_dup(name_of(s, p, most->who, name));
	s->kept.thief_name = mem_dup(name_of(s, p, most->thief, name));
}

int story_path(struct story *s, struct error *err)
{
	struct helpers all = { 0 };
	struct lateness late = { 0 };
	struct path p;
	if (path_of(s->topo, &s->subject, s->f->start, s->f->end, &p, err) < 0)
		return -1;
	gather(s, &p, &all);
	gather_lateness(s, &p, &late);
	if (all.len && (double)all.ns >= A_PART * (double)s->demand.slept) {
		qsort(all.one, all.len, sizeof *all.one, most_first);
		tell_helpers(s, &p, &all);
		remember_kept(s, &p, &all);
		s->slept_for = true;
	}
	if (s->topo->machine[s->machine].kind == MACHINE_VM && (double)late.ns >= A_PART * (double)s->demand.slept)
		tell_lateness(s, &p, &late);
	free(all.one);
	path_release(&p);
	return 0;
}
