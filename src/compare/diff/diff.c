/* Comparison of two sides: aligns rows by name, estimates changes, corrects for multiple comparisons, and ranks the
 * rows.
 *
 * Step 1 compares every target's totals: run time, loss, counts, latencies. Step 2 splits the largest changes of
 * loss by culprit. All totals share the confidence level (Bonferroni), so equal sides show any finding in a fraction 1 -
 * level of all comparisons. Parts of a total are tested only if the total has changed, and share the level among
 * themselves (Benjamini and Bogomolov 2014).
 *
 * Order of the rows:
 * - findings first
 * - requests, then targets by how much their loss changed; last those that findings take last (doc/findings.md)
 * - per target a quantity's total, then its parts by their share of the change
 * - last the parts without a finding on their total */
#include "base/base.h"
#include "compare/compare.h"

#include <math.h>

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

/* A finding's minimum size, however significant: `threshold` in the quantity's unit, and `part`, a fraction of the
 * larger value. Counts depend on periodic events' phases, which differ between a system's runs. */
static const struct { double threshold, part; } finding_min[DIFF_QUANTITY_COUNT] = {
	[DIFF_LOST] = { 0.01, 0.01 }, [DIFF_RAN] = { 0.01, 0.01 },
	[DIFF_GAPS] = { 10, 0.5 }, [DIFF_WAKES] = { 10, 0.5 }, [DIFF_EXITS] = { 10, 0.5 }, [DIFF_REQUESTS] = { 0.1, 0.5 },
	[DIFF_LATENCY] = { 1000, 0.01 }, [DIFF_P50] = { 1000, 0.01 }, [DIFF_P90] = { 1000, 0.01 }, [DIFF_P99] = { 1000, 0.01 },
};
#define PART_THRESHOLD_FACTOR 0.1  /* factor on `threshold` for a changed total's parts */

#define SPLIT_MAX 8   /* most targets with a loss split by culprit */

/* requests: minimum number on both sides for testing the quantile */
static const struct { uint8_t quantity; double p; size_t requests; } quantile[] = {
	{ DIFF_P50, 0.5, 20 }, { DIFF_P90, 0.9, 50 }, { DIFF_P99, 0.99, 500 },
};
#define QUANTILES (sizeof quantile / sizeof *quantile)

struct row_pair {
	struct diff_row row;
	double max;              /* maximum value on either side, limits the change; 0: unknown */
	double variation;        /* change that another recording may show by chance, see random_variation.c */
	struct estimate side[2];
};

struct comparison {
	struct ledger ledger[2];
	struct error err[2];
	struct row_pair *pair;
	size_t pairs, cap, totals;
	struct diff_row *split;  /* rows for the targets with a loss split by culprit */
	size_t n_split;
	double level;
	bool two_recordings;     /* false: two windows in one recording */
};

/* ---- Reading both sides in parallel */

static int read_side(void *arg, size_t i)
{
	struct comparison *w = arg;
	return ledger_add_rates(&w->ledger[i], &w->err[i]) ? -1 : ledger_add_requests(&w->ledger[i], &w->err[i]);
}

static bool is_split(void *arg, enum diff_kind kind, const char *target)
{
	const struct comparison *w = arg;
	for (size_t i = 0; i < w->n_split; i++)
		if (w->split[i].kind == kind && !strcmp(w->split[i].target, target))
			return true;
	return false;
}

static int compare_split_targets(const void *pa, const void *pb)
{
	const struct diff_row *a = pa, *b = pb;
	const double x = fabs(a->change), y = fabs(b->change);
	return a->is_last != b->is_last ? a->is_last - b->is_last : x != y ? (x < y) - (x > y) : strcmp(a->target, b->target);
}

/* Selects the findings of loss with the largest changes; last those that findings take last. */
static void choose_split_targets(struct comparison *w)
{
	w->split = mem_new(w->pairs, sizeof *w->split);
	for (size_t i = 0; i < w->pairs; i++)
		if (w->pair[i].row.found && w->pair[i].row.quantity == DIFF_LOST)
			w->split[w->n_split++] = w->pair[i].row;
	ARRAY_SORT(w->split, w->n_split, compare_split_targets);
	w->n_split = w->n_split < SPLIT_MAX ? w->n_split : SPLIT_MAX;
}

static int read_culprits(void *arg, size_t i)
{
	struct comparison *w = arg;
	return ledger_add_culprits(&w->ledger[i], is_split, w, &w->err[i]);
}

static int run_both_sides(struct comparison *w, int (*task)(void *arg, size_t i), struct error *err)
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

static struct row_pair *pair_add(struct comparison *w, unsigned kind, unsigned quantity, const char *target, const char *by)
{
	struct row_pair *p = ARRAY_PUSH(w->pair, w->pairs, w->cap);
	struct target machine;
	bool is_last = false;
	for (int i = 0; i < 2; i++)
		is_last |= ledger_find_machine(w->ledger[i].catalog, target, &machine) &&
		           findings_take_last(w->ledger[i].catalog, machine.index);
	*p = (struct row_pair){ .row = { .kind = (uint8_t)kind, .quantity = (uint8_t)quantity, .target = target, .by = by,
		.is_last = is_last, .explains = NAN } };
	return p;
}

static double target_max(const struct ledger *l, const struct series *total)
{
	const struct series *s = ledger_find(l, total);
	return s ? s->max : 0;
}

/* Sets the change that another recording on the same system may show by chance: random_variation.c. */
static void add_variation(const struct comparison *w, struct row_pair *p)
{
	const struct series key = { .target = (char *)p->row.target, .by = (char *)"", .kind = p->row.kind,
		.quantity = DIFF_LOST };
	struct variation variation[2] = { 0 };
	double window[2];
	for (int i = 0; i < 2; i++) {
		const struct series *s = ledger_find(&w->ledger[i], &key);
		window[i] = (double)(w->ledger[i].edge[DIFF_SLICES] - w->ledger[i].edge[0]);
		variation[i] = s ? s->variation : variation[i];
		if (p->row.quantity == DIFF_LOST)
			p->side[i].error = fmax(p->side[i].error, sqrt(variation[i].all_waits.squares) / window[i]);
	}
	p->variation = p->row.quantity == DIFF_LOST ? variation_of_loss(variation, window)
	          : p->row.quantity == DIFF_GAPS && p->row.kind == DIFF_OF_THREAD ? 1e9 * variation_of_gaps(variation) : 0;
}

/* Returns true if the quantity is known on both sides, or unknown on both and still comparable. A VM's loss and exits
 * without a host trace are unknown; time that the host used counts as the VM's run time. */
static bool is_comparable(const struct comparison *w, const struct series *s)
{
	bool no_host[2] = { false };
	struct target machine;
	if (s->quantity != DIFF_LOST && s->quantity != DIFF_RAN && s->quantity != DIFF_GAPS && s->quantity != DIFF_EXITS)
		return true;
	for (int i = 0; i < 2; i++)
		no_host[i] = ledger_find_machine(w->ledger[i].catalog, s->target, &machine) &&
			catalog_lacks_host_trace(w->ledger[i].catalog, &machine);
	return no_host[0] == no_host[1] && (!no_host[0] || s->kind == DIFF_OF_THREAD || s->quantity == DIFF_RAN);
}

/* Pairs a series with its counterpart. A quantity that one side lacks counts as 0; but requests must occur on
 * both sides, and a missing machine's loss is unknown. */
static void add_series(struct comparison *w, const struct series *s, int side)
{
	struct target machine;
	const bool alone = s->kind != DIFF_OF_REQUESTS && !ledger_find_machine(w->ledger[!side].catalog, s->target, &machine);
	if ((alone && s->quantity != DIFF_RAN) || !is_comparable(w, s))
		return;
	const struct series *other = ledger_find(&w->ledger[!side], s);
	struct series blank = *s, key = { .target = s->target, .by = (char *)"", .kind = s->kind, .quantity = s->quantity };
	if (!other) {
		const struct series *group = diff_unit_of[s->quantity] == UNIT_NS ? ledger_find(&w->ledger[!side], &key) : NULL;
		if (diff_unit_of[s->quantity] == UNIT_NS && !group)
			return;
		memset(blank.num, 0, sizeof blank.num);
		if (group)
			memcpy(blank.den, group->den, sizeof blank.den);
		else
			for (unsigned i = 0; i < DIFF_SLICES; i++)
				blank.den[i] = (double)(w->ledger[!side].edge[i + 1] - w->ledger[!side].edge[i]) /
				               (diff_unit_of[s->quantity] == UNIT_RATE ? 1e9 : 1);
		other = &blank;
	}
	struct row_pair *p = pair_add(w, s->kind, s->quantity, s->target, s->by);
	p->row.alone = (uint8_t)(alone ? side + 1 : 0);
	p->max = fmax(target_max(&w->ledger[0], &key), target_max(&w->ledger[1], &key));
	p->side[side] = estimate_ratio(s->num, s->den);
	p->side[!side] = estimate_ratio(other->num, other->den);
	if (w->two_recordings && !*s->by)
		add_variation(w, p);
	/* Rare events come in bursts: a rate's error is less certain than a time's error. */
	for (int i = 0; i < 2 && diff_unit_of[s->quantity] == UNIT_RATE; i++)
		p->side[i].blocks = BLOCKS_MIN;
}

ORDER_BY(compare_latencies, struct latency, RISING(ns) RISING(slice))

static void add_quantiles(struct comparison *w, struct latencies *before)
{
	struct latencies *after = ledger_latencies(&w->ledger[1], before->target);
	for (int i = 0; i < 2; i++)
		if ((i ? after : before)->len)
			qsort((i ? after : before)->item, (i ? after : before)->len, sizeof(struct latency), compare_latencies);
	for (size_t i = 0; i < QUANTILES; i++) {
		if (before->len < quantile[i].requests || after->len < quantile[i].requests)
			continue;
		struct row_pair *p = pair_add(w, DIFF_OF_REQUESTS, quantile[i].quantity, before->target, "");
		p->side[0] = estimate_quantile(before->item, before->len, quantile[i].p);
		p->side[1] = estimate_quantile(after->item, after->len, quantile[i].p);
	}
}

/* Pairs all series and latencies that the ledgers contain. */
static void pair_all_rows(struct comparison *w)
{
	w->pairs = 0;
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < w->ledger[side].len; i++)
			if (side == 0 || !ledger_find(&w->ledger[0], w->ledger[1].series[i]))
				add_series(w, w->ledger[side].series[i], side);
	for (size_t i = 0; i < w->ledger[0].latency_kinds; i++)
		add_quantiles(w, &w->ledger[0].latencies[i]);
}

/* Returns the quantity that a row's total has: quantiles belong to the latency. */
static enum diff_quantity quantity_of_total(unsigned quantity)
{
	return diff_unit_of[quantity] == UNIT_NS ? DIFF_LATENCY : (enum diff_quantity)quantity;
}

struct family {
	const char *target;
	uint8_t kind, quantity;
	bool changed;            /* true: at least one of its totals is a finding */
	size_t parts;
};

ORDER_BY(compare_families, struct family, RISING_TEXT(target) RISING(kind) RISING(quantity))

static struct family family_key(const struct diff_row *r)
{
	return (struct family){ .target = r->target, .kind = r->kind, .quantity = (uint8_t)quantity_of_total(r->quantity) };
}

static size_t find_families(const struct comparison *w, struct family *f)
{
	size_t n = 0;
	for (size_t i = 0; i < w->pairs; i++)
		f[i] = family_key(&w->pair[i].row);
	ARRAY_SORT(f, w->pairs, compare_families);
	for (size_t i = 0; i < w->pairs; i++)
		if (n == 0 || compare_families(&f[n - 1], &f[i]))
			f[n++] = f[i];
	return n;
}

static void test_pair(struct row_pair *p, double alpha)
{
	struct diff_row *r = &p->row;
	r->before = p->side[0].value;
	r->after = p->side[1].value;
	const double size = fmax(fabs(r->before), fabs(r->after)), threshold = finding_min[r->quantity].threshold;
	estimate_change(&p->side[0], &p->side[1], alpha, &r->change, &r->low, &r->high);
	r->low -= p->variation;
	r->high += p->variation;
	if (p->max > 0) {
		r->low = fmax(r->low, -p->max);
		r->high = fmin(r->high, p->max);
	}
	r->found = (r->low > 0 || r->high < 0) && fabs(r->change) >= (*r->by ? PART_THRESHOLD_FACTOR * threshold : threshold) &&
	           fabs(r->change) >= finding_min[r->quantity].part * size;
}

/* Tests the totals, and then the parts of changed totals. */
static void test_rows(struct comparison *w)
{
	struct family *f = mem_new(w->pairs, sizeof *f);
	const size_t families = find_families(w, f);
	size_t totals = 0;
	for (size_t i = 0; i < w->pairs; i++) {
		struct family key = family_key(&w->pair[i].row), *group = bsearch(&key, f, families, sizeof *f, compare_families);
		totals += !*w->pair[i].row.by;
		group->parts += *w->pair[i].row.by != '\0';
	}
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < w->pairs; i++) {
			struct diff_row *r = &w->pair[i].row;
			struct family key = family_key(r), *group = bsearch(&key, f, families, sizeof *f, compare_families);
			if ((*r->by != '\0') != part)
				continue;
			test_pair(&w->pair[i], (1 - w->level) / (double)(part ? group->parts : totals));
			group->changed |= !part && r->found;
			r->found = r->found && group->changed;
		}
	w->totals = totals;
	free(f);
}

/* ---- Row order */

struct target_group {
	const char *target;
	uint8_t kind;
	bool is_last;            /* as in its rows */
	double weight;           /* how much its loss changed, or its mean latency */
	double total[DIFF_QUANTITY_COUNT];  /* changes in totals that are findings; 0: no finding */
};

struct ranked { struct diff_row row; const struct target_group *group; };

ORDER_BY(compare_groups, struct target_group, RISING(kind) RISING_TEXT(target))

static struct target_group *group_targets(const struct comparison *w, size_t *groups)
{
	struct target_group *g = mem_new(w->pairs, sizeof *g);
	size_t n = 0;
	for (size_t i = 0; i < w->pairs; i++)
		g[i] = (struct target_group){ .target = w->pair[i].row.target, .kind = w->pair[i].row.kind };
	ARRAY_SORT(g, w->pairs, compare_groups);
	for (size_t i = 0; i < w->pairs; i++)
		if (n == 0 || compare_groups(&g[n - 1], &g[i]))
			g[n++] = g[i];
	for (size_t i = 0; i < w->pairs; i++) {
		const struct diff_row *r = &w->pair[i].row;
		struct target_group key = { .target = r->target, .kind = r->kind };
		struct target_group *group = bsearch(&key, g, n, sizeof *g, compare_groups);
		group->is_last = r->is_last;
		if (*r->by || !r->found)
			continue;
		group->total[r->quantity] = r->change;
		if (r->quantity == DIFF_LOST || r->quantity == DIFF_LATENCY)
			group->weight = fabs(r->change);
	}
	*groups = n;
	return g;
}

/* Returns true if a part has no finding on its total: if only a quantile changed, the parts of the mean have none. */
static bool is_part_without_total(const struct diff_row *r)
{
	return r->found && *r->by && isnan(r->explains);
}

static int compare_ranks(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	const struct diff_row *r = &a->row, *s = &b->row;
	const struct target_group *g = a->group, *h = b->group;
	if (r->found != s->found)
		return r->found ? -1 : 1;
	if (g != h && (g->kind == DIFF_OF_REQUESTS) != (h->kind == DIFF_OF_REQUESTS))
		return g->kind == DIFF_OF_REQUESTS ? -1 : 1;
	if (g != h && g->is_last != h->is_last)
		return g->is_last ? 1 : -1;
	if (g != h && g->weight != h->weight)
		return g->weight > h->weight ? -1 : 1;
	if (g != h)
		return compare_groups(g, h);
	if (is_part_without_total(r) != is_part_without_total(s))
		return is_part_without_total(r) ? 1 : -1;
	if (r->quantity != s->quantity)
		return r->quantity < s->quantity ? -1 : 1;
	if (!*r->by != !*s->by)
		return *r->by ? 1 : -1;
	const double x = isnan(r->explains) ? r->change : r->explains, y = isnan(s->explains) ? s->change : s->explains;
	return x != y ? (x < y) - (x > y) : strcmp(r->by, s->by);
}

static void rank_rows(const struct comparison *w, struct diff *out)
{
	size_t groups;
	struct target_group *g = group_targets(w, &groups);
	struct ranked *order = mem_new(w->pairs, sizeof *order);
	for (size_t i = 0; i < w->pairs; i++) {
		const struct diff_row *r = &w->pair[i].row;
		struct target_group key = { .target = r->target, .kind = r->kind };
		order[i] = (struct ranked){ *r, bsearch(&key, g, groups, sizeof *g, compare_groups) };
		const double total = order[i].group->total[r->quantity];
		if (*r->by && total != 0)
			order[i].row.explains = r->change / total;
	}
	ARRAY_SORT(order, w->pairs, compare_ranks);
	out->row = mem_new(w->pairs, sizeof *out->row);
	for (size_t i = 0; i < w->pairs; i++) {
		out->row[i] = order[i].row;
		out->found += order[i].row.found;
	}
	out->rows = w->pairs;
	out->totals = w->totals;
	out->targets = groups;
	free(order);
	free(g);
}

static void comparison_free(struct comparison *w)
{
	for (int i = 0; i < 2; i++)
		ledger_release(&w->ledger[i]);
	free(w->pair);
	free(w->split);
	free(w);
}

static int check_side(const struct diff_side *s, struct error *err)
{
	if (s->to - s->from + 1 >= DIFF_WINDOW_MIN)
		return 0;
	return error_set(err, STATUS_USAGE, "give a longer window", "%s: less than 6.4 ms cannot be compared",
	                 history_file(s->catalog->h));
}

int diff_of(const struct diff_side side[2], const struct diff_options *options, struct diff *out, struct error *err)
{
	*out = (struct diff){ .level = options->level };
	if (check_side(&side[0], err) || check_side(&side[1], err))
		return -1;
	struct comparison *w = mem_new(1, sizeof *w);
	w->level = options->level;
	w->two_recordings = strcmp(history_file(side[0].catalog->h), history_file(side[1].catalog->h)) != 0;
	for (int i = 0; i < 2; i++)
		ledger_init(&w->ledger[i], &side[i]);
	int rc = run_both_sides(w, read_side, err);
	if (rc == 0) {
		pair_all_rows(w);
		test_rows(w);
		choose_split_targets(w);
		rc = run_both_sides(w, read_culprits, err);
	}
	if (rc) {
		comparison_free(w);
		return -1;
	}
	pair_all_rows(w);
	test_rows(w);
	rank_rows(w, out);
	if (options->notes)
		comparability_note(side, options->notes);
	for (int i = 0; i < 2 && options->notes; i++)
		for (size_t k = 0; k < w->ledger[i].notes.len; k++)
			notes_copy(options->notes, &w->ledger[i].notes.item[k], w->ledger[i].notes.item[k].machine);
	out->texts = w;
	return 0;
}

void diff_release(struct diff *d)
{
	if (d->texts)
		comparison_free(d->texts);
	free(d->row);
	*d = (struct diff){ 0 };
}
