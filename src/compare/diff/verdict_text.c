/* A comparison in words, and conditions on it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "base/timefmt.h"
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

static struct texts texts_of(const struct diff_row *r)
{
	struct texts t;
	diff_value_text(t.before, sizeof t.before, r->quantity, r->before, false);
	diff_value_text(t.after, sizeof t.after, r->quantity, r->after, false);
	diff_value_text(t.change, sizeof t.change, r->quantity, r->change, true);
	diff_value_text(t.low, sizeof t.low, r->quantity, r->low, true);
	diff_value_text(t.high, sizeof t.high, r->quantity, r->high, true);
	return t;
}

/* That requests of a kind come no more, or at quite another rate; NULL: they do not. */
static const struct diff_row *rate_of(const struct diff *d, const char *subject)
{
	for (size_t i = 0; i < d->found; i++)
		if (d->row[i].quantity == DIFF_REQUESTS && !strcmp(d->row[i].subject, subject))
			return &d->row[i];
	return NULL;
}

static bool vanished(const struct diff_row *r)
{
	return r->quantity == DIFF_REQUESTS && r->before > 0 && !(r->after > 0);
}

/* What is said first: requests that come no more; else the first finding that is a whole; the median stands for a latency,
 * where that is one too. */
static const struct diff_row *headline(const struct diff *d)
{
	const struct diff_row *first = NULL;
	for (size_t i = 0; i < d->found; i++)
		if (vanished(&d->row[i]))
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
		if (!first || (first->quantity == DIFF_LATENCY && r->quantity == DIFF_P50 && !strcmp(first->subject, r->subject)))
			first = r;
	}
	return first;
}

/* What a latency is not about: requests that are not answered any more, or came in addition. */
static char *latency_text(const struct diff_row *r, const char *of, const struct diff_row *rate)
{
	char also[120] = "";
	const struct texts t = texts_of(r);
	if (rate) {
		const struct texts n = texts_of(rate);
		snprintf(also, sizeof also, "; and there are %s of them, before %s", n.after, n.before);
	}
	return mem_printf("Requests of %s take %s%s, before %s: %s (%s to %s)%s.", r->subject, t.after, of, t.before, t.change,
	                  t.low, t.high, also);
}

static char *headline_text(const struct diff *d, const struct diff_row *r)
{
	struct texts t = texts_of(r);
	const char *of = r->quantity == DIFF_P50 ? " in the median" : r->quantity == DIFF_P90 ? " at p90" :
	                 r->quantity == DIFF_P99 ? " at p99" : " in the mean";
	if (diff_unit_of[r->quantity] == UNIT_NS)
		return latency_text(r, of, rate_of(d, r->subject));
	if (vanished(r))
		return mem_printf("No requests of %s are answered any more, before %s.", r->subject, t.before);
	if (r->alone == 1)
		return mem_printf("%s, which ran %s of a CPU before, is not there any more.", r->subject, t.before);
	if (r->alone == 2)
		return mem_printf("%s, which runs %s of a CPU, was not there before.", r->subject, t.after);
	if (diff_unit_of[r->quantity] == UNIT_CPU)
		return mem_printf("%s %s %s of a CPU, before %s: %s (%s to %s).", r->subject, diff_quantity_name[r->quantity],
		                  t.after, t.before, t.change, t.low, t.high);
	return mem_printf("%s: %s of %s, before %s: %s (%s to %s).", r->subject, diff_quantity_name[r->quantity], t.after,
	                  t.before, t.change, t.low, t.high);
}

/* Of quantiles, what the mean consists of. */
static enum diff_quantity family_of(const struct diff_row *r)
{
	return diff_unit_of[r->quantity] == UNIT_NS ? DIFF_LATENCY : (enum diff_quantity)r->quantity;
}

/* Who explains most of it. */
static const struct diff_row *cause_of(const struct diff *d, const struct diff_row *whole)
{
	const enum diff_quantity q = family_of(whole);
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (*r->by && r->quantity == q && r->kind == whole->kind && !strcmp(r->subject, whole->subject) && r->explains > 0)
			return r;
	}
	return NULL;
}

/* Is that what the whole is about, or a thread of a machine that is there on one side alone? */
static bool is_of(const struct diff_row *r, const struct diff_row *whole)
{
	const size_t n = strlen(whole->subject);
	return strncmp(r->subject, whole->subject, n) == 0 && (r->subject[n] == '\0' || (whole->alone && r->subject[n] == '/'));
}

/* Who runs more than before by most; not those that the whole is about. */
static const struct diff_row *runs_more(const struct diff *d, const struct diff_row *whole)
{
	const struct diff_row *most = NULL;
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (r->quantity == DIFF_RAN && !*r->by && r->kind == DIFF_OF_THREAD && r->low > 0 && !is_of(r, whole) &&
		    (!most || r->change > most->change))
			most = r;
	}
	return most;
}

/* Another machine that one side alone has. */
static const struct diff_row *other_alone(const struct diff *d, const struct diff_row *whole)
{
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (r->alone && r->kind == DIFF_OF_MACHINE && !*r->by && !is_of(r, whole))
			return r;
	}
	return NULL;
}

/* The whole of that quantity, if it is a finding. */
static const struct diff_row *finding_of(const struct diff *d, const char *subject, enum diff_quantity q)
{
	for (size_t i = 0; i < d->found; i++)
		if (d->row[i].quantity == q && !*d->row[i].by && d->row[i].kind == DIFF_OF_MACHINE &&
		    !strcmp(d->row[i].subject, subject))
			return &d->row[i];
	return NULL;
}

/* Among the first n rows. */
static bool has_parts(const struct diff *d, const struct diff_row *whole, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (*d->row[i].by && d->row[i].kind == whole->kind && family_of(&d->row[i]) == family_of(whole) &&
		    !strcmp(d->row[i].subject, whole->subject))
			return true;
	return false;
}

/* Why no part of a change is said to explain it; NULL: it was not taken apart. */
static const char *no_part(const struct diff *d, const struct diff_row *whole)
{
	const bool latency = family_of(whole) == DIFF_LATENCY;
	if (!has_parts(d, whole, d->rows))
		return NULL;
	if (!has_parts(d, whole, d->found))
		return latency ? "No part of the mean changed for sure" : "No part of it changed for sure";
	return latency ? "The mean did not change for sure" : "No part that changed for sure explains it";
}

/* Where requests' own parts tell nothing for sure: who took the machine's time that answers them. */
static char *lost_text(const struct diff *d, const struct diff_row *whole)
{
	char machine[300];
	snprintf(machine, sizeof machine, "%.*s", (int)strcspn(whole->subject, "/"), whole->subject);
	const struct diff_row *lost = family_of(whole) == DIFF_LATENCY ? finding_of(d, machine, DIFF_LOST) : NULL;
	const struct diff_row *by = lost && (lost->change > 0) == (whole->change > 0) ? cause_of(d, lost) : NULL;
	if (!by)
		return NULL;
	const struct texts t = texts_of(lost), of = texts_of(by);
	const char *why = no_part(d, whole);
	return mem_printf("%s%s%s lost %s of a CPU, before %s, and of that %s to %s, before %s.", why ? why : "",
	                  why ? "; but " : "", machine, t.after, t.before, of.after, by->by, of.before);
}

/* The widest interval of a whole's loss or latency: what could have hidden in it. */
static char *hidden_text(const struct diff *d)
{
	const struct diff_row *r = NULL;
	for (size_t i = 0; i < d->rows; i++) {
		const struct diff_row *x = &d->row[i];
		if (!*x->by && (x->quantity == DIFF_LOST || x->quantity == DIFF_LATENCY) &&
		    (!r || (x->kind == r->kind ? x->high - x->low > r->high - r->low : x->kind < r->kind)))
			r = x;
	}
	if (!r)
		return mem_printf("There was nothing to compare.");
	struct texts t = texts_of(r);
	if (r->quantity == DIFF_LOST)
		return mem_printf("The change of what %s lost lies between %s and %s of a CPU.", r->subject, t.low, t.high);
	return mem_printf("The change of what requests of %s take lies between %s and %s.", r->subject, t.low, t.high);
}

static char *unexplained_text(const struct diff *d, const struct diff_row *whole)
{
	const char *why = no_part(d, whole);
	char *lost = lost_text(d, whole);
	const struct diff_row *r = lost ? NULL : runs_more(d, whole), *other = whole->alone ? other_alone(d, whole) : NULL;
	if (lost)
		return lost;
	if (other)
		return headline_text(d, other);
	if (!r)
		return whole->alone ? hidden_text(d)
		                    : mem_printf("%s%shat explains it is not told apart.", why ? why : "", why ? ": w" : "W");
	const struct texts t = texts_of(r);
	return mem_printf("%s%she thread that runs more by most is %s: %s of a CPU, before %s (%s to %s).", why ? why : "",
	                  why ? "; t" : "T", r->subject, t.after, t.before, t.low, t.high);
}

static char *cause_text(const struct diff *d, const struct diff_row *whole)
{
	char share[60];
	const struct diff_row *r = cause_of(d, whole);
	if (!r)
		return unexplained_text(d, whole);
	struct texts t = texts_of(r);
	snprintf(share, sizeof share, r->explains > 1.005 ? "All of the change and more (%.0f%%)" : "%.0f%% of the change",
	         100 * r->explains);
	return mem_printf("%s%s is %s: %s, before %s (%s to %s).", share,
	                  diff_unit_of[whole->quantity] == UNIT_NS && whole->quantity != DIFF_LATENCY ? " of the mean" : "",
	                  r->by, t.after, t.before, t.low, t.high);
}

char *diff_verdict(const struct diff *d)
{
	const struct diff_row *whole = headline(d);
	char *first = whole ? headline_text(d, whole)
		: mem_printf("Nothing changed that shows at a level of %g%%: %zu figures of %zu subject%s were compared.",
		             100 * d->level, d->wholes, d->subjects, d->subjects == 1 ? "" : "s");
	char *second = whole ? cause_text(d, whole) : hidden_text(d);
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
	char name[32] = "";
	if (than && than - text < (int)sizeof name)
		memcpy(name, text, (size_t)(than - text));
	unsigned q = 0;
	while (q < DIFF_QUANTITY_COUNT && strcmp(name, diff_quantity_name[q]))
		q++;
	a->quantity = (enum diff_quantity)q;
	if (q < DIFF_QUANTITY_COUNT && parse_limit(than + 1, a))
		return 0;
	return error_set(err, STATUS_USAGE, "write 'same', 'lost<+5%' or 'latency_p50<+2ms'", "not an assertion: '%s'", text);
}

bool diff_assertion_holds(const struct diff_assertion *a, const struct diff *d, const struct diff_row **worst)
{
	double most = 0;
	*worst = NULL;
	for (size_t i = 0; i < d->found; i++) {
		const struct diff_row *r = &d->row[i];
		if (a->same) {
			*worst = r;
			return false;
		}
		const double beyond = r->low - (a->relative ? a->limit * r->before : a->limit);
		if (!*r->by && r->quantity == a->quantity && beyond >= 0 && (!*worst || beyond > most)) {
			*worst = r;
			most = beyond;
		}
	}
	return !*worst;
}
