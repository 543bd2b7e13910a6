/* Assertions for continuous integration, such as "p99.provider<2ms". */
#include "base/base.h"
#include "latency/latency.h"

#include <math.h>

#define REMEDY "write it like p99.provider<2ms or p50.share<=10%"

static int assertion_error(const char *text, const char *why, struct error *err)
{
	return error_set(err, STATUS_USAGE, REMEDY, "assertion '%s': %s", text, why);
}

static bool parse_quantity(const char *s, size_t n, struct assertion *a)
{
	char word[16];
	if (n == 0 || n >= sizeof word)
		return false;
	memcpy(word, s, n);
	word[n] = '\0';
	a->quantity = QUANTITY_PERCENTILE;
	if (!strcmp(word, "mean")) {
		a->quantity = QUANTITY_MEAN;
	} else if (!strcmp(word, "min")) {
		a->p = 0;
	} else if (!strcmp(word, "max")) {
		a->p = 1;
	} else {
		if (word[0] != 'p' || strspn(word + 1, "0123456789.") != n - 1 || n == 1)
			return false;
		char *end;
		a->p = strtod(word + 1, &end) / 100;
		return *end == '\0' && a->p >= 0 && a->p <= 1;
	}
	return true;
}

static bool parse_metric(const char *s, size_t n, enum request_metric *m)
{
	static const struct { const char *name; enum request_metric metric; } alias[] = {
		{ "provider", METRIC_HIGH },
		{ "share", METRIC_HIGH_SHARE },
	};
	for (size_t i = 0; i < sizeof alias / sizeof *alias; i++) {
		if (strlen(alias[i].name) == n && !strncmp(alias[i].name, s, n)) {
			*m = alias[i].metric;
			return true;
		}
	}
	for (unsigned i = 0; i < METRIC_COUNT; i++) {
		if (strlen(request_metric_name[i]) == n && !strncmp(request_metric_name[i], s, n)) {
			*m = (enum request_metric)i;
			return true;
		}
	}
	return false;
}

static bool parse_limit(const char *s, enum request_metric m, double *limit)
{
	if (!metric_is_share(m)) {
		int64_t ns;
		if (!time_parse_duration(s, &ns))
			return false;
		*limit = (double)ns;
		return true;
	}
	char *end;
	*limit = strtod(s, &end);
	if (end == s)
		return false;
	if (*end == '%') {
		*limit /= 100;
		end++;
	}
	return *end == '\0' && isfinite(*limit);
}

int assertion_parse(const char *text, struct assertion *a, struct error *err)
{
	*a = (struct assertion){ QUANTITY_PERCENTILE, 0, METRIC_HIGH, BELOW, 0 };
	const char *op = text + strcspn(text, "<>");
	if (!*op)
		return assertion_error(text, "there is no < or >", err);
	/* Of several dots, as in "p99.9.provider", the last one before the operator precedes the metric. */
	const char *dot = NULL;
	for (const char *s = text; s < op; s++) {
		if (*s == '.')
			dot = s;
	}
	if (!dot || !parse_quantity(text, (size_t)(dot - text), a))
		return assertion_error(text, "the quantity is none of p0..p100, min, max, mean", err);
	size_t n = (size_t)(op - dot) - 1;
	while (n && dot[n] == ' ')
		n--;
	if (!parse_metric(dot + 1, n, &a->metric))
		return assertion_error(text, "no such metric", err);
	bool equal = op[1] == '=';
	a->op = *op == '<' ? (equal ? AT_MOST : BELOW) : equal ? AT_LEAST : ABOVE;
	const char *limit = op + 1 + equal;
	limit += strspn(limit, " ");
	if (!parse_limit(limit, a->metric, &a->limit))
		return assertion_error(text,
		                       metric_is_share(a->metric) ? "the limit is not a share" : "the limit is not a duration",
		                       err);
	return 0;
}

bool assertion_holds(const struct assertion *a, const struct requests *r, double *value)
{
	double *v = requests_sorted(r, a->metric);
	if (a->quantity == QUANTITY_MEAN) {
		*value = 0;
		for (size_t i = 0; i < r->len; i++)
			*value += v[i] / (double)r->len;
	} else {
		*value = stats_quantile(v, r->len, a->p);
	}
	free(v);
	switch (a->op) {
	case BELOW: return *value < a->limit;
	case AT_MOST: return *value <= a->limit;
	case ABOVE: return *value > a->limit;
	case AT_LEAST: return *value >= a->limit;
	}
	return false;
}
