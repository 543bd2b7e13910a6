/* Text of a comparison, and its assertions. */
#include <math.h>

#include "base/base.h"
#include "compare/compare.h"

char *diff_value_text(char *buf, size_t size, enum diff_quantity q, double v, bool sign)
{
	char time[TIME_TEXT];
	const char *mark = v < 0 ? "-" : sign ? "+" : "";
	if (diff_unit_of[q] == UNIT_NS)
		snprintf(buf, size, "%s%s", mark, time_duration(time, (int64_t)fmin(fabs(v), 9e18)));
	else if (diff_unit_of[q] == UNIT_CPU)
		snprintf(buf, size, "%s%.*f%%", mark, fabs(v) < 0.0995 ? 2 : 1, 100 * fabs(v));
	else
		snprintf(buf, size, "%s%.*f/s", mark, fabs(v) < 99.5 ? 1 : 0, fabs(v));
	return buf;
}

struct texts { char before[40], after[40], change[40], low[40], high[40]; };

static struct texts row_texts(const struct diff_row *r)
{
	struct texts t;
	diff_value_text(t.before, sizeof t.before, r->quantity, r->before, false);
	diff_value_text(t.after, sizeof t.after, r->quantity, r->after, false);
	diff_value_text(t.change, sizeof t.change, r->quantity, r->change, true);
	diff_value_text(t.low, sizeof t.low, r->quantity, r->low, true);
	diff_value_text(t.high, sizeof t.high, r->quantity, r->high, true);
	return t;
}

/* Row of the rate of these requests if the rate changed significantly; NULL: no such row. */
static const struct diff_row *request_rate(const struct diff *d, const char *target)
{
	for (size_t i = 0; i < d->found; i++)
		if (d->row[i].quantity == DIFF_REQUESTS && !strcmp(d->row[i].target, target))
			return &d->row[i];
	return NULL;
}

static bool requests_vanished(const struct diff_row *r)
{
	return r->quantity == DIFF_REQUESTS && r->before > 0 && !(r->after > 0);
}

/* Chooses the row of the first sentence: requests that vanished, or else the first total that is a finding (rates of
 * requests, gaps and wakeups only if no other quantity changed). Of a latency the median is preferred. NULL: nothing
 * changed. */
static const struct diff_row *find_headline(const struct diff *d)
{
	const struct diff_row *first = NULL;
	for (size_t i = 0; i < d->found; i++)
		if (requests_vanished(&d->row[i]))
			return &d->row[i];
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (*r->by)
			continue;
		if (!first && (r->quantity == DIFF_REQUESTS || r->quantity == DIFF_GAPS || r->quantity == DIFF_WAKES)) {
			bool better = false;
			for (size_t k = i + 1; k < d->found && !better; k++)
				better = !*d->row[k].by && (diff_unit_of[d->row[k].quantity] != UNIT_RATE);
			if (better)
				continue;
		}
		if (!first || (first->quantity == DIFF_LATENCY && r->quantity == DIFF_P50 && !strcmp(first->target, r->target)))
			first = r;
	}
	return first;
}

/* Describes a changed latency; adds the requests' rate if it changed, because the latency does not show requests
 * that are not answered any more, or new. */
static char *latency_text(const struct diff_row *r, const char *quantile, const struct diff_row *rate)
{
	char also[120] = "";
	const struct texts t = row_texts(r);
	if (rate) {
		const struct texts n = row_texts(rate);
		snprintf(also, sizeof also, "; and there are %s of them, before %s", n.after, n.before);
	}
	return mem_printf("Requests of %s take %s%s, before %s: %s (%s to %s)%s.", r->target, t.after, quantile, t.before,
	                  t.change, t.low, t.high, also);
}

static char *headline_text(const struct diff *d, const struct diff_row *r)
{
	struct texts t = row_texts(r);
	const char *quantile = r->quantity == DIFF_P50 ? " in the median" : r->quantity == DIFF_P90 ? " at p90" :
	                 r->quantity == DIFF_P99 ? " at p99" : " in the mean";
	if (diff_unit_of[r->quantity] == UNIT_NS)
		return latency_text(r, quantile, request_rate(d, r->target));
	if (requests_vanished(r))
		return mem_printf("No requests of %s are answered any more, before %s.", r->target, t.before);
	if (r->alone == 1)
		return mem_printf("%s, which ran %s of a CPU before, is not there any more.", r->target, t.before);
	if (r->alone == 2)
		return mem_printf("%s, which runs %s of a CPU, was not there before.", r->target, t.after);
	if (diff_unit_of[r->quantity] == UNIT_CPU)
		return mem_printf("%s %s %s of a CPU, before %s: %s (%s to %s).", r->target, diff_quantity_name[r->quantity],
		                  t.after, t.before, t.change, t.low, t.high);
	return mem_printf("%s: %s of %s, before %s: %s (%s to %s).", r->target, diff_quantity_name[r->quantity], t.after,
	                  t.before, t.change, t.low, t.high);
}

/* Returns the quantity with the parts of the row: quantiles use the parts of the mean. */
static enum diff_quantity quantity_of_parts(const struct diff_row *r)
{
	return diff_unit_of[r->quantity] == UNIT_NS ? DIFF_LATENCY : (enum diff_quantity)r->quantity;
}

/* Part with the largest share of the change; NULL: none. */
static const struct diff_row *largest_part(const struct diff *d, const struct diff_row *total)
{
	const enum diff_quantity q = quantity_of_parts(total);
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (*r->by && r->quantity == q && r->kind == total->kind && !strcmp(r->target, total->target) && r->explains > 0)
			return r;
	}
	return NULL;
}

/* Returns true if the row has the total's target, or, for a machine that only one side has, a thread of this machine. */
static bool concerns_target(const struct diff_row *r, const struct diff_row *total)
{
	const size_t n = strlen(total->target);
	return strncmp(r->target, total->target, n) == 0 && (r->target[n] == '\0' || (total->alone && r->target[n] == '/'));
}

/* Thread with the largest increase of run time, apart from the total's target; NULL: none. */
static const struct diff_row *largest_run_increase(const struct diff *d, const struct diff_row *total)
{
	const struct diff_row *largest = NULL;
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (r->quantity == DIFF_RAN && !*r->by && r->kind == DIFF_OF_THREAD && r->low > 0 && !concerns_target(r, total) &&
		    (!largest || r->change > largest->change))
			largest = r;
	}
	return largest;
}

/* Another machine that only one side has; NULL: none. */
static const struct diff_row *other_one_sided_machine(const struct diff *d, const struct diff_row *total)
{
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (r->alone && r->kind == DIFF_OF_MACHINE && !*r->by && !concerns_target(r, total))
			return r;
	}
	return NULL;
}

/* Finding for the total of a machine's quantity; NULL: no finding. */
static const struct diff_row *find_finding(const struct diff *d, const char *target, enum diff_quantity q)
{
	for (size_t i = 0; i < d->found; i++)
		if (d->row[i].quantity == q && !*d->row[i].by && d->row[i].kind == DIFF_OF_MACHINE &&
		    !strcmp(d->row[i].target, target))
			return &d->row[i];
	return NULL;
}

/* Returns true if the first n rows contain a part of the total. */
static bool has_parts(const struct diff *d, const struct diff_row *total, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (*d->row[i].by && d->row[i].kind == total->kind && quantity_of_parts(&d->row[i]) == quantity_of_parts(total) &&
		    !strcmp(d->row[i].target, total->target))
			return true;
	return false;
}

/* Returns the reason why no part explains a change; NULL: the change was not split. */
static const char *no_part_reason(const struct diff *d, const struct diff_row *total)
{
	const bool latency = quantity_of_parts(total) == DIFF_LATENCY;
	if (!has_parts(d, total, d->rows))
		return NULL;
	if (!has_parts(d, total, d->found))
		return latency ? "No part of the mean changed for sure" : "No part of it changed for sure";
	return latency ? "The mean did not change for sure" : "No part that changed for sure explains it";
}

/* Explains a latency without conclusive parts by the culprit of the loss of the machine that answers the requests.
 * Returns NULL if there is no such finding. The caller frees the text. */
static char *loss_cause_text(const struct diff *d, const struct diff_row *total)
{
	char machine[300];
	snprintf(machine, sizeof machine, "%.*s", (int)strcspn(total->target, "/"), total->target);
	const struct diff_row *lost = quantity_of_parts(total) == DIFF_LATENCY ? find_finding(d, machine, DIFF_LOST) : NULL;
	const struct diff_row *by = lost && (lost->change > 0) == (total->change > 0) ? largest_part(d, lost) : NULL;
	if (!by)
		return NULL;
	const struct texts t = row_texts(lost), quantile = row_texts(by);
	const char *why = no_part_reason(d, total);
	return mem_printf("%s%s%s lost %s of a CPU, before %s, and of that %s to %s, before %s.", why ? why : "",
	                  why ? "; but " : "", machine, t.after, t.before, quantile.after, by->by, quantile.before);
}

/* Text of the widest interval of a loss or latency: a change of that size may be undetected. */
static char *undetected_change_text(const struct diff *d)
{
	const struct diff_row *r = NULL;
	for (size_t i = 0; i < d->rows; i++) {
		const struct diff_row *x = &d->row[i];
		if (!*x->by && (x->quantity == DIFF_LOST || x->quantity == DIFF_LATENCY) &&
		    (!r || (x->kind == r->kind ? x->high - x->low > r->high - r->low : x->kind < r->kind)))
			r = x;
	}
	if (!r)
		return mem_printf("No common figures to compare.");
	struct texts t = row_texts(r);
	if (r->quantity == DIFF_LOST)
		return mem_printf("The change of the loss of %s is between %s and %s of a CPU.", r->target, t.low, t.high);
	return mem_printf("The change of the latency of %s requests is between %s and %s.", r->target, t.low, t.high);
}

static char *unexplained_text(const struct diff *d, const struct diff_row *total)
{
	const char *why = no_part_reason(d, total);
	char *lost = loss_cause_text(d, total);
	const struct diff_row *r = lost ? NULL : largest_run_increase(d, total);
	const struct diff_row *other = total->alone ? other_one_sided_machine(d, total) : NULL;
	if (lost)
		return lost;
	if (other)
		return headline_text(d, other);
	if (!r)
		return total->alone ? undetected_change_text(d)
		                    : mem_printf("%s%shat explains it could not be separated.", why ? why : "", why ? ": w" : "W");
	const struct texts t = row_texts(r);
	return mem_printf("%s%she thread that runs more by most is %s: %s of a CPU, before %s (%s to %s).", why ? why : "",
	                  why ? "; t" : "T", r->target, t.after, t.before, t.low, t.high);
}

static char *cause_text(const struct diff *d, const struct diff_row *total)
{
	char share[60];
	const struct diff_row *r = largest_part(d, total);
	if (!r)
		return unexplained_text(d, total);
	struct texts t = row_texts(r);
	snprintf(share, sizeof share, r->explains > 1.005 ? "All of the change and more (%.0f%%)" : "%.0f%% of the change",
	         100 * r->explains);
	return mem_printf("%s%s is %s: %s, before %s (%s to %s).", share,
	                  diff_unit_of[total->quantity] == UNIT_NS && total->quantity != DIFF_LATENCY ? " of the mean" : "",
	                  r->by, t.after, t.before, t.low, t.high);
}

char *diff_verdict(const struct diff *d)
{
	const struct diff_row *total = find_headline(d);
	char *first = total ? headline_text(d, total)
		: mem_printf("No significant change (%g%% level, %zu figures of %zu target%s).",
		             100 * d->level, d->totals, d->targets, d->targets == 1 ? "" : "s");
	char *second = total ? cause_text(d, total) : undetected_change_text(d);
	char *both = mem_printf("%s\n%s\n", first, second);
	free(first);
	free(second);
	return both;
}

/* ---- Assertions */

static bool parse_limit(const char *text, struct diff_assertion *a)
{
	char *end;
	int64_t ns;
	if (diff_unit_of[a->quantity] == UNIT_NS && time_parse_duration(*text == '+' ? text + 1 : text, &ns)) {
		a->limit = (double)ns;
		return true;
	}
	a->limit = strtod(text, &end);
	a->relative = *end == '%';
	if (a->relative) {
		a->limit /= 100;
		end++;
	}
	return end > text && *end == '\0' && isfinite(a->limit) &&
	       (a->relative || diff_unit_of[a->quantity] != UNIT_NS);
}

int diff_assertion_parse(const char *text, struct diff_assertion *a, struct error *err)
{
	*a = (struct diff_assertion){ .same = !strcmp(text, "same") };
	if (a->same)
		return 0;
	const char *than = strchr(text, '<');
	for (unsigned q = 0; than && q < DIFF_QUANTITY_COUNT; q++) {
		const size_t length = strlen(diff_quantity_name[q]), before = (size_t)(than - text);
		if (before < length || strncmp(than - length, diff_quantity_name[q], length) != 0 ||
		    (before > length && (before == length + 1 || than[-(long)length - 1] != '.')))
			continue;
		a->quantity = (enum diff_quantity)q;
		a->target = text;
		a->target_length = before > length ? before - length - 1 : 0;
		if (parse_limit(than + 1, a))
			return 0;
	}
	return error_set(err, STATUS_USAGE, "write 'same', 'lost<+5%', 'web.service.lost<+5%' or 'latency_p50<+2ms'",
	                 "not an assertion: '%s'", text);
}

static bool is_about(const struct diff_assertion *a, const struct diff_row *r)
{
	return !a->target_length ||
	       (strlen(r->target) == a->target_length && strncmp(r->target, a->target, a->target_length) == 0);
}

bool diff_assertion_applies(const struct diff_assertion *a, const struct diff *d)
{
	size_t i = 0;
	while (a->target_length && i < d->rows && !is_about(a, &d->row[i]))
		i++;
	return !a->target_length || i < d->rows;
}

bool diff_assertion_holds(const struct diff_assertion *a, const struct diff *d, const struct diff_row **worst)
{
	double largest = 0;
	*worst = NULL;
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (a->same) {
			*worst = r;
			return false;
		}
		const double beyond = r->low - (a->relative ? a->limit * r->before : a->limit);
		if (!*r->by && r->quantity == a->quantity && is_about(a, r) && beyond >= 0 && (!*worst || beyond > largest)) {
			*worst = r;
			largest = beyond;
		}
	}
	return !*worst;
}
