/* Comparing two sides: align by name, estimate, correct for many comparisons, rank.
 *
 * In two steps: what every subject ran, lost and waited for; then, of those whose loss changed most, to whom.
 * All wholes share the level (Bonferroni), so that equal sides show any finding at all once in 1 / (1 - level) times;
 * the parts of a whole are asked about only when it has changed, and share the level among themselves (Benjamini and
 * Bogomolov 2014).
 *
 * The order: findings before the rest; requests, then those who lost most more (or less) than before, guests before the
 * host; of one subject the whole of a quantity first, then who explains most of its change; last what is a part of no
 * finding. */
#include "compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "compare/diff/bootstrap.h"
#include "compare/diff/ledger.h"

#define DIFF_CODE(code, name, unit) name,
const char *const diff_quantity_name[DIFF_QUANTITY_COUNT + 1] = { DIFF_QUANTITIES(DIFF_CODE) };
#undef DIFF_CODE
#define DIFF_CODE(code, name) name,
const char *const diff_unit_name[] = { DIFF_UNITS(DIFF_CODE) };
const char *const diff_kind_name[DIFF_KIND_COUNT] = { DIFF_KINDS(DIFF_CODE) };
#undef DIFF_CODE
#define DIFF_CODE(code, name, unit) unit,
const enum diff_unit diff_unit_of[DIFF_QUANTITY_COUNT] = { DIFF_QUANTITIES(DIFF_CODE) };
#undef DIFF_CODE

/* Smaller changes are not worth a word, however sure: `most`, and a part of what there is.  Counts depend on how periodic
 * things fall together, which differs from run to run of the same system. */
static const struct { double most, part; } least[DIFF_QUANTITY_COUNT] = {
	[DIFF_LOST] = { 0.01, 0.01 }, [DIFF_RAN] = { 0.01, 0.01 },
	[DIFF_GAPS] = { 10, 0.5 }, [DIFF_WAKES] = { 10, 0.5 }, [DIFF_EXITS] = { 10, 0.5 }, [DIFF_REQUESTS] = { 0.1, 0.5 },
	[DIFF_LATENCY] = { 1000, 0.01 }, [DIFF_P50] = { 1000, 0.01 }, [DIFF_P90] = { 1000, 0.01 }, [DIFF_P99] = { 1000, 0.01 },
};
#define LEAST_PART 0.1  /* of `most`: of a part of something that changed */

#define LOOKS 8   /* subjects whose loss is taken apart */

/* A quantile is told of as many requests as leave some beyond it, on both sides. */
static const struct { uint8_t quantity; double p; size_t requests; } quantile[] = {
	{ DIFF_P50, 0.5, 20 }, { DIFF_P90, 0.9, 50 }, { DIFF_P99, 0.99, 500 },
};
#define QUANTILES (sizeof quantile / sizeof *quantile)

struct row_pair {
	struct diff_row row;
	double most;             /* what the figure can be on either side; 0: nothing says */
	double chance;           /* so much of a difference another recording may show */
	struct estimate side[2];
};

struct work {
	struct ledger ledger[2];
	struct error err[2];
	struct row_pair *pair;
	size_t pairs, cap, wholes;
	struct diff_row *look;   /* whose loss is taken apart */
	size_t looks;
	double level;
	bool again;              /* the sides are two recordings */
};

/* ---- Reading, one side beside the other */

static int read_side(void *arg, size_t i)
{
	struct work *w = arg;
	return ledger_add_rates(&w->ledger[i], &w->err[i]) ? -1 : ledger_add_requests(&w->ledger[i], &w->err[i]);
}

static bool is_looked_into(void *arg, enum diff_kind kind, const char *subject)
{
	const struct work *w = arg;
	for (size_t i = 0; i < w->looks; i++)
		if (w->look[i].kind == kind && !strcmp(w->look[i].subject, subject))
			return true;
	return false;
}

static bool is_of_host(const char *subject)
{
	return !strncmp(subject, "host", 4) && (subject[4] == '\0' || subject[4] == '/');
}

static int look_cmp(const void *pa, const void *pb)
{
	const struct diff_row *a = pa, *b = pb;
	const bool host = is_of_host(a->subject), other = is_of_host(b->subject);
	const double x = fabs(a->change), y = fabs(b->change);
	return host != other ? host - other : x != y ? (x < y) - (x > y) : strcmp(a->subject, b->subject);
}

/* Into the losses that changed most. */
static void choose_looks(struct work *w)
{
	w->look = mem_new(w->pairs, sizeof *w->look);
	for (size_t i = 0; i < w->pairs; i++)
		if (w->pair[i].row.found && w->pair[i].row.quantity == DIFF_LOST)
			w->look[w->looks++] = w->pair[i].row;
	if (w->looks)
		qsort(w->look, w->looks, sizeof *w->look, look_cmp);
	w->looks = w->looks < LOOKS ? w->looks : LOOKS;
}

static int read_thieves(void *arg, size_t i)
{
	struct work *w = arg;
	return ledger_add_thieves(&w->ledger[i], is_looked_into, w, &w->err[i]);
}

static int both(struct work *w, int (*task)(void *arg, size_t i), struct error *err)
{
	const struct parallel p = { .workers = 2, .task = task, .arg = w };
	int rc = parallel_run(&p, 2);
	for (int i = 0; i < 2 && rc; i++)
		if (w->err[i].status != STATUS_OK) {
			*err = w->err[i];
			return -1;
		}
	return rc;
}

/* ---- Pairs */

static struct row_pair *pair_add(struct work *w, unsigned kind, unsigned quantity, const char *subject, const char *by)
{
	struct row_pair *p = ARRAY_PUSH(w->pair, w->pairs, w->cap);
	*p = (struct row_pair){ .row = { .kind = (uint8_t)kind, .quantity = (uint8_t)quantity, .subject = subject, .by = by,
		.explains = NAN } };
	return p;
}

static double most_of(const struct ledger *l, const struct series *whole)
{
	const struct series *s = ledger_find(l, whole);
	return s ? s->most : 0;
}

/* What another recording of the same may show otherwise: random_variation.c. */
static void add_chance(const struct work *w, struct row_pair *p)
{
	const struct series key = { .subject = (char *)p->row.subject, .by = (char *)"", .kind = p->row.kind,
		.quantity = DIFF_LOST };
	struct chance chance[2] = { 0 };
	double span[2];
	for (int i = 0; i < 2; i++) {
		const struct series *s = ledger_find(&w->ledger[i], &key);
		span[i] = (double)(w->ledger[i].edge[DIFF_SLICES] - w->ledger[i].edge[0]);
		chance[i] = s ? s->chance : chance[i];
		if (p->row.quantity == DIFF_LOST)
			p->side[i].error = fmax(p->side[i].error, sqrt(chance[i].all.squares) / span[i]);
	}
	p->chance = p->row.quantity == DIFF_LOST ? chance_of_loss(chance, span)
	          : p->row.quantity == DIFF_GAPS && p->row.kind == DIFF_OF_THREAD ? 1e9 * chance_of_gaps(chance) : 0;
}

/* Do both sides tell it?  Of a VM that no host was seen to run nobody knows what it lost and why it was left; what its
 * host took from it and its threads counts as run. */
static bool is_told(const struct work *w, const struct series *s)
{
	bool alone[2] = { false };
	struct subject machine;
	if (s->quantity != DIFF_LOST && s->quantity != DIFF_RAN && s->quantity != DIFF_GAPS && s->quantity != DIFF_EXITS)
		return true;
	for (int i = 0; i < 2; i++)
		alone[i] = ledger_find_machine(w->ledger[i].topo, s->subject, &machine) &&
			topo_is_alone(w->ledger[i].topo, &machine);
	return alone[0] == alone[1] && (!alone[0] || s->kind == DIFF_OF_THREAD || s->quantity == DIFF_RAN);
}

/* What one side knows nothing of did not happen there; of requests there must be some on both, and of a machine that is not
 * there nobody knows what it would have lost. */
static void add_series(struct work *w, const struct series *s, int own)
{
	struct subject machine;
	const bool alone = s->kind != DIFF_OF_REQUESTS && !ledger_find_machine(w->ledger[!own].topo, s->subject, &machine);
	if ((alone && s->quantity != DIFF_RAN) || !is_told(w, s))
		return;
	const struct series *other = ledger_find(&w->ledger[!own], s);
	struct series blank = *s, key = { .subject = s->subject, .by = (char *)"", .kind = s->kind, .quantity = s->quantity };
	if (!other) {
		const struct series *of = diff_unit_of[s->quantity] == UNIT_NS ? ledger_find(&w->ledger[!own], &key) : NULL;
		if (diff_unit_of[s->quantity] == UNIT_NS && !of)
			return;
		memset(blank.num, 0, sizeof blank.num);
		if (of)
			memcpy(blank.den, of->den, sizeof blank.den);
		else
			for (unsigned i = 0; i < DIFF_SLICES; i++)
				blank.den[i] = (double)(w->ledger[!own].edge[i + 1] - w->ledger[!own].edge[i]) /
				               (diff_unit_of[s->quantity] == UNIT_RATE ? 1e9 : 1);
		other = &blank;
	}
	struct row_pair *p = pair_add(w, s->kind, s->quantity, s->subject, s->by);
	p->row.alone = (uint8_t)(alone ? own + 1 : 0);
	p->most = fmax(most_of(&w->ledger[0], &key), most_of(&w->ledger[1], &key));
	p->side[own] = estimate_ratio(s->num, s->den);
	p->side[!own] = estimate_ratio(other->num, other->den);
	if (w->again && !*s->by)
		add_chance(w, p);
	/* What happens seldom comes in bursts: their errors are known less well than that of a time. */
	for (int i = 0; i < 2 && diff_unit_of[s->quantity] == UNIT_RATE; i++)
		p->side[i].blocks = FEWEST_BLOCKS;
}

static int by_ns(const void *pa, const void *pb)
{
	const struct latency *a = pa, *b = pb;
	return a->ns != b->ns ? (a->ns > b->ns) - (a->ns < b->ns) : (a->slice > b->slice) - (a->slice < b->slice);
}

static void add_quantiles(struct work *w, struct latencies *before)
{
	struct latencies *after = ledger_latencies(&w->ledger[1], before->subject);
	for (int i = 0; i < 2; i++)
		if ((i ? after : before)->len)
			qsort((i ? after : before)->item, (i ? after : before)->len, sizeof(struct latency), by_ns);
	for (size_t i = 0; i < QUANTILES; i++) {
		if (before->len < quantile[i].requests || after->len < quantile[i].requests)
			continue;
		struct row_pair *p = pair_add(w, DIFF_OF_REQUESTS, quantile[i].quantity, before->subject, "");
		p->side[0] = estimate_quantile(before->item, before->len, quantile[i].p);
		p->side[1] = estimate_quantile(after->item, after->len, quantile[i].p);
	}
}

/* All that the ledgers have by now. */
static void pair_up(struct work *w)
{
	w->pairs = 0;
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < w->ledger[side].len; i++)
			if (side == 0 || !ledger_find(&w->ledger[0], w->ledger[1].series[i]))
				add_series(w, w->ledger[side].series[i], side);
	for (size_t i = 0; i < w->ledger[0].latency_kinds; i++)
		add_quantiles(w, &w->ledger[0].latencies[i]);
}

/* The whole that a quantity is a part of, or is itself: quantiles are wholes of a latency. */
static enum diff_quantity family_of(unsigned quantity)
{
	return diff_unit_of[quantity] == UNIT_NS ? DIFF_LATENCY : (enum diff_quantity)quantity;
}

struct family {
	const char *subject;
	uint8_t kind, quantity;
	bool changed;            /* one of its wholes is a finding */
	size_t parts;
};

static int family_cmp(const void *pa, const void *pb)
{
	const struct family *a = pa, *b = pb;
	int c = strcmp(a->subject, b->subject);
	c = c ? c : (a->kind > b->kind) - (a->kind < b->kind);
	return c ? c : (a->quantity > b->quantity) - (a->quantity < b->quantity);
}

static struct family family_key(const struct diff_row *r)
{
	return (struct family){ .subject = r->subject, .kind = r->kind, .quantity = (uint8_t)family_of(r->quantity) };
}

static size_t families_of(const struct work *w, struct family *f)
{
	size_t n = 0;
	for (size_t i = 0; i < w->pairs; i++)
		f[i] = family_key(&w->pair[i].row);
	if (w->pairs)
		qsort(f, w->pairs, sizeof *f, family_cmp);
	for (size_t i = 0; i < w->pairs; i++)
		if (n == 0 || family_cmp(&f[n - 1], &f[i]))
			f[n++] = f[i];
	return n;
}

static void judge_one(struct row_pair *p, double alpha)
{
	struct diff_row *r = &p->row;
	r->before = p->side[0].value;
	r->after = p->side[1].value;
	const double size = fmax(fabs(r->before), fabs(r->after)), most = least[r->quantity].most;
	estimate_change(&p->side[0], &p->side[1], alpha, &r->change, &r->low, &r->high);
	r->low -= p->chance;
	r->high += p->chance;
	if (p->most > 0) {
		r->low = fmax(r->low, -p->most);
		r->high = fmin(r->high, p->most);
	}
	r->found = (r->low > 0 || r->high < 0) && fabs(r->change) >= (*r->by ? LEAST_PART * most : most) &&
	           fabs(r->change) >= least[r->quantity].part * size;
}

/* Wholes first, then the parts of those that changed. */
static void judge(struct work *w)
{
	struct family *f = mem_new(w->pairs, sizeof *f);
	const size_t families = families_of(w, f);
	size_t wholes = 0;
	for (size_t i = 0; i < w->pairs; i++) {
		struct family key = family_key(&w->pair[i].row), *of = bsearch(&key, f, families, sizeof *f, family_cmp);
		wholes += !*w->pair[i].row.by;
		of->parts += *w->pair[i].row.by != '\0';
	}
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < w->pairs; i++) {
			struct diff_row *r = &w->pair[i].row;
			struct family key = family_key(r), *of = bsearch(&key, f, families, sizeof *f, family_cmp);
			if ((*r->by != '\0') != part)
				continue;
			judge_one(&w->pair[i], (1 - w->level) / (double)(part ? of->parts : wholes));
			of->changed |= !part && r->found;
			r->found = r->found && of->changed;
		}
	w->wholes = wholes;
	free(f);
}

/* ---- The order */

struct subject_group {
	const char *subject;
	uint8_t kind;
	bool host;
	double weight;           /* how much its loss changed, or what requests wait */
	double whole[DIFF_QUANTITY_COUNT];  /* proven changes of the wholes, else 0 */
};

struct ranked { struct diff_row row; const struct subject_group *group; };

static int group_cmp(const void *pa, const void *pb)
{
	const struct subject_group *a = pa, *b = pb;
	int c = (a->kind > b->kind) - (a->kind < b->kind);
	return c ? c : strcmp(a->subject, b->subject);
}

static struct subject_group *groups_of(const struct work *w, size_t *groups)
{
	struct subject_group *g = mem_new(w->pairs, sizeof *g);
	size_t n = 0;
	for (size_t i = 0; i < w->pairs; i++)
		g[i] = (struct subject_group){ .subject = w->pair[i].row.subject, .kind = w->pair[i].row.kind };
	if (w->pairs)
		qsort(g, w->pairs, sizeof *g, group_cmp);
	for (size_t i = 0; i < w->pairs; i++)
		if (n == 0 || group_cmp(&g[n - 1], &g[i]))
			g[n++] = g[i];
	for (size_t i = 0; i < w->pairs; i++) {
		const struct diff_row *r = &w->pair[i].row;
		struct subject_group key = { .subject = r->subject, .kind = r->kind };
		struct subject_group *of = bsearch(&key, g, n, sizeof *g, group_cmp);
		if (*r->by || !r->found)
			continue;
		of->whole[r->quantity] = r->change;
		if (r->quantity == DIFF_LOST || r->quantity == DIFF_LATENCY)
			of->weight = fabs(r->change);
	}
	for (size_t i = 0; i < n; i++)
		g[i].host = is_of_host(g[i].subject);
	*groups = n;
	return g;
}

/* A finding that is a part of what is none: of a mean, where a quantile changed. */
static bool is_loose(const struct diff_row *r)
{
	return r->found && *r->by && isnan(r->explains);
}

static int rank_cmp(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	const struct diff_row *r = &a->row, *s = &b->row;
	const struct subject_group *g = a->group, *h = b->group;
	if (r->found != s->found)
		return r->found ? -1 : 1;
	if (g != h && (g->kind == DIFF_OF_REQUESTS) != (h->kind == DIFF_OF_REQUESTS))
		return g->kind == DIFF_OF_REQUESTS ? -1 : 1;
	if (g != h && g->host != h->host)
		return g->host ? 1 : -1;
	if (g != h && g->weight != h->weight)
		return g->weight > h->weight ? -1 : 1;
	if (g != h)
		return group_cmp(g, h);
	if (is_loose(r) != is_loose(s))
		return is_loose(r) ? 1 : -1;
	if (r->quantity != s->quantity)
		return r->quantity < s->quantity ? -1 : 1;
	if (!*r->by != !*s->by)
		return *r->by ? 1 : -1;
	const double x = isnan(r->explains) ? r->change : r->explains, y = isnan(s->explains) ? s->change : s->explains;
	return x != y ? (x < y) - (x > y) : strcmp(r->by, s->by);
}

static void rank(const struct work *w, struct diff *out)
{
	size_t groups;
	struct subject_group *g = groups_of(w, &groups);
	struct ranked *order = mem_new(w->pairs, sizeof *order);
	for (size_t i = 0; i < w->pairs; i++) {
		const struct diff_row *r = &w->pair[i].row;
		struct subject_group key = { .subject = r->subject, .kind = r->kind };
		order[i] = (struct ranked){ *r, bsearch(&key, g, groups, sizeof *g, group_cmp) };
		const double whole = order[i].group->whole[r->quantity];
		if (*r->by && whole != 0)
			order[i].row.explains = r->change / whole;
	}
	if (w->pairs)
		qsort(order, w->pairs, sizeof *order, rank_cmp);
	out->row = mem_new(w->pairs, sizeof *out->row);
	for (size_t i = 0; i < w->pairs; i++) {
		out->row[i] = order[i].row;
		out->found += order[i].row.found;
	}
	out->rows = w->pairs;
	out->wholes = w->wholes;
	out->subjects = groups;
	free(order);
	free(g);
}

static void work_free(struct work *w)
{
	for (int i = 0; i < 2; i++)
		ledger_release(&w->ledger[i]);
	free(w->pair);
	free(w->look);
	free(w);
}

static int check_side(const struct diff_side *s, struct error *err)
{
	if (s->to - s->from + 1 >= DIFF_SHORTEST)
		return 0;
	return error_set(err, STATUS_USAGE, "give a longer window", "%s: less than 6.4 ms cannot be compared",
	                 history_file(s->topo->h));
}

int diff_of(const struct diff_side side[2], const struct diff_options *options, struct diff *out, struct error *err)
{
	*out = (struct diff){ .level = options->level };
	if (check_side(&side[0], err) || check_side(&side[1], err))
		return -1;
	struct work *w = mem_new(1, sizeof *w);
	w->level = options->level;
	w->again = strcmp(history_file(side[0].topo->h), history_file(side[1].topo->h)) != 0;
	for (int i = 0; i < 2; i++)
		ledger_init(&w->ledger[i], &side[i]);
	int rc = both(w, read_side, err);
	if (rc == 0) {
		pair_up(w);
		judge(w);
		choose_looks(w);
		rc = both(w, read_thieves, err);
	}
	if (rc) {
		work_free(w);
		return -1;
	}
	pair_up(w);
	judge(w);
	rank(w, out);
	if (options->notes)
		sides_note(side, options->notes);
	for (int i = 0; i < 2 && options->notes; i++)
		for (size_t k = 0; k < w->ledger[i].notes.len; k++)
			notes_copy(options->notes, &w->ledger[i].notes.item[k], w->ledger[i].notes.item[k].machine);
	out->keeps = w;
	return 0;
}

void diff_release(struct diff *d)
{
	if (d->keeps)
		work_free(d->keeps);
	free(d->row);
	*d = (struct diff){ 0 };
}
