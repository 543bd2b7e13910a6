/* Requests: a row each, with its latency and the provider's part. */
#include <string.h>

#include "report/report.h"

#define FEATURE_COLUMN(field, unit, help) { #field, NULL, COL_INT },
static const struct column request_columns[] = {
	{ "request", "request", COL_TEXT },              { "machine", "machine", COL_TEXT },
	{ "start", "start", COL_CLOCK },                 { "end", NULL, COL_INT },
	{ "latency_ns", "latency", COL_DURATION },       { "provider_low_ns", "provider min", COL_DURATION },
	{ "provider_high_ns", "max", COL_DURATION },      { "predicted_ns", NULL, COL_DURATION },
	{ "ci_low_ns", NULL, COL_DURATION },             { "ci_high_ns", NULL, COL_DURATION },
	{ "culprit", "culprit", COL_TEXT },
	/* only with --features */
	{ "executing", NULL, COL_INT },                  { "unknown", NULL, COL_INT },
	REQUEST_FEATURES(FEATURE_COLUMN)
	{ "slow", NULL, COL_INT },                       { "moves", NULL, COL_INT },
	{ "ipc", NULL, COL_INT },
};
static const struct column label_column = { "label", "label", COL_TEXT };  /* only if a request has one */
static const struct column core_columns[] = {  /* only on hosts with several CPUs per core */
	{ "shared_ns", "shared core", COL_DURATION }, { "top_sharer", "top sharer", COL_TEXT },
};
#define CORE_COLUMNS (sizeof core_columns / sizeof *core_columns)
#define ALL_COLUMNS (sizeof request_columns / sizeof *request_columns)
#define PLAIN_COLUMNS (ALL_COLUMNS - REQUEST_FEATURE_COUNT - 5)

static const char *const sort_column[] = { [REQUESTS_BY_START] = "start", [REQUESTS_BY_LATENCY] = "latency_ns",
	[REQUESTS_BY_PROVIDER] = "provider_high_ns" };

static struct value predicted_value(const struct request *r, double v)
{
	return r->has_prediction ? VAL_INT((int64_t)v) : VAL_NONE;
}

static struct value value_known(int64_t v)
{
	return v >= 0 ? VAL_INT(v) : VAL_NONE;
}

int report_requests(FILE *to, struct report_how how, const struct requests_parts *parts, const struct origin *o,
                    struct error *err)
{
	const struct requests *all = parts->requests;
	const size_t n = parts->top && parts->top < all->len ? parts->top : all->len;
	bool cores = false, labels = false;
	for (size_t i = 0; i < n; i++) {
		cores = cores || all->row[i].core.shared >= 0;
		labels = labels || all->row[i].label;
	}
	struct column columns[ALL_COLUMNS + CORE_COLUMNS + 1];
	const size_t core = parts->features ? ALL_COLUMNS : PLAIN_COLUMNS;  /* position of the first column of cores */
	const size_t label = core + (cores ? CORE_COLUMNS : 0);
	memcpy(columns, request_columns, sizeof request_columns);
	memcpy(columns + core, core_columns, sizeof core_columns);
	columns[label] = label_column;
	for (size_t i = 0; i < PLAIN_COLUMNS && parts->is_predicted; i++)
		if (columns[i].name && strcmp(columns[i].name, "predicted_ns") == 0)
			columns[i].heading = "predicted";
	const struct report_shape shape = { "latency-requests", columns, label + labels,
	                                    parts->is_predicted || labels ? "machine start top_sharer request | provider_low_ns"
	                                    : "start top_sharer | machine provider_low_ns",
	                                    sort_column[parts->order] };
	struct report *out = report_begin(to, how, &shape, o);
	for (size_t i = 0; i < n && !report_is_full(out); i++) {
		const struct request *r = &all->row[i];
#define FEATURE_VALUE(field, unit, help) VAL_INT(r->feature.field),
		struct value value[ALL_COLUMNS + CORE_COLUMNS + 1] = {
			VAL_TEXT(r->id), VAL_TEXT(r->container ? r->container : r->machine), VAL_INT(r->start), VAL_INT(r->end),
			VAL_INT(request_latency(r)),
			VAL_INT(r->low), VAL_INT(r->high), predicted_value(r, r->predicted.mean), predicted_value(r, r->predicted.low),
			predicted_value(r, r->predicted.high), r->culprit ? VAL_SHOWN(r->culprit) : VAL_NONE,
			VAL_INT(r->executing), VAL_INT(r->unknown), REQUEST_FEATURES(FEATURE_VALUE)
			value_known(r->core.slow), value_known(r->core.moves),
			value_known(r->core.ipc) };
#undef FEATURE_VALUE
		value[core] = value_known(r->core.shared);
		value[core + 1] = r->sharer ? VAL_SHOWN(r->sharer) : VAL_NONE;
		value[label] = r->label ? VAL_SHOWN(r->label) : VAL_NONE;
		report_row(out, value);
	}
	int rc = report_end(out, err);
	if (rc || how.format != FORMAT_TEXT)
		return rc;
	fputs("\nprovider, measured: min = lost while the request executed;\n"
	      "                    max = lost while its server thread had work\n", to);
	if (n < all->len)
		fprintf(to, "shown: %zu of %zu (--top)\n", n, all->len);
	return 0;
}
