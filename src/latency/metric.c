/* Metrics of requests and sets of requests. */
#include "latency/latency.h"

#include "base/mem.h"

#define METRIC_NAME(code, name) name,
const char *const request_metric_name[METRIC_COUNT] = { REQUEST_METRICS(METRIC_NAME) };
#undef METRIC_NAME

int64_t request_latency(const struct request *r)
{
	return r->end - r->start + 1;
}

bool metric_is_share(enum request_metric m)
{
	return m == METRIC_LOW_SHARE || m == METRIC_HIGH_SHARE || m == METRIC_PREDICTED_SHARE;
}

double request_metric(const struct request *r, enum request_metric m)
{
	double latency = (double)request_latency(r);
	switch (m) {
	case METRIC_LATENCY: return latency;
	case METRIC_LOW: return (double)r->low;
	case METRIC_HIGH: return (double)r->high;
	case METRIC_PREDICTED: return r->predicted.mean;
	case METRIC_CUSTOMER: return latency - (double)r->high;
	case METRIC_LOW_SHARE: return (double)r->low / latency;
	case METRIC_HIGH_SHARE: return (double)r->high / latency;
	case METRIC_PREDICTED_SHARE: return r->predicted.mean / latency;
	case METRIC_COUNT: break;
	}
	return 0;
}

double *requests_sorted(const struct requests *r, enum request_metric m)
{
	double *v = mem_new(r->len, sizeof *v);
	for (size_t i = 0; i < r->len; i++)
		v[i] = request_metric(&r->row[i], m);
	stats_sort(v, r->len);
	return v;
}
