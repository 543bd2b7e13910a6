/* Inputs of the prediction that not every recording has: use of the core, frequency, moves and hardware counters of the
 * server thread (query.h, Shared cores). */
#include <math.h>

#include "base/base.h"
#include "latency/attribution.h"

#define INPUT_NAME(field, unit, help) #field,
const char *const request_input_name[REQUEST_INPUT_COUNT] = {
	REQUEST_FEATURES(INPUT_NAME) REQUEST_CORE_FEATURES(INPUT_NAME)
};
#undef INPUT_NAME

/* Returns the vCPU or CPU of the host on which the server thread was at the request's start: an index into
 * catalog->cpu; -1: unknown. */
static int cpu_at_start(const struct catalog *catalog, uint32_t machine, uint32_t thread, int64_t t)
{
	struct interval iv;
	const uint32_t attr = catalog->thread[thread].cpu;
	if (attr == HISTORY_NONE || history_stab(catalog->h, attr, t, &iv, NULL) || iv.value < 0 || iv.value > UINT16_MAX)
		return -1;
	return catalog_find_cpu(catalog, machine, (unsigned)iv.value);
}

int request_find_core(const struct catalog *catalog, struct request *r, struct error *err)
{
	struct core_share s;
	char name[ACTOR_TEXT];
	const int machine = catalog_find_machine(catalog, r->machine);
	const int thread = machine < 0 || r->tid < 0 ? -1 : catalog_find_thread(catalog, (uint32_t)machine, r->tid);
	if (thread < 0 || (!catalog->has_cores && !catalog->has_counters))
		return 0;
	const int vcpu = catalog->machine[machine].kind == MACHINE_VM ?
		cpu_at_start(catalog, (uint32_t)machine, (uint32_t)thread, r->start) : -1;
	const struct target of[2] = { { TARGET_THREAD, (uint32_t)thread }, { TARGET_CPU, (uint32_t)vcpu } };
	if (query_answer(core_share_open(catalog, of, vcpu >= 0 ? 2 : 1, r->start, r->end), &s, err))
		return -1;
	const struct core_row *row = &s.row[0], *counted = &s.row[s.rows - 1];
	r->core.shared = s.siblings ? row->time.shared : -1;
	r->core.slow = s.frequencies ? row->time.slow : -1;
	r->core.moves = s.cores ? row->time.moves : -1;
	r->core.ipc = counted->counts.cycles > 0 ? (int64_t)llround(1000 * core_ipc(&counted->counts)) : -1;
	if (row->sharers) {
		const struct core_sharer *sharer = &s.sharer[row->sharer];
		r->sharer = mem_dup(actor_text(catalog, &sharer->actor, s.name[sharer->actor.name],
		                               ACTOR_PLAIN, NULL, name, sizeof name));
	}
	core_share_release(&s);
	return 0;
}

void request_inputs_get(const struct request *r, double out[REQUEST_INPUT_COUNT])
{
	const double seconds = (double)request_latency(r) / 1e9;
	size_t i = REQUEST_FEATURE_COUNT;
	request_features_get(r, out);
#define INPUT_GET(field, unit, help) out[i++] = r->core.field < 0 ? NAN : (double)r->core.field / (*unit ? 1 : seconds);
	REQUEST_CORE_FEATURES(INPUT_GET)
#undef INPUT_GET
}

/* Returns true if at least half of the requests have a known value of the input. */
static bool has_input(const struct requests *r, size_t input)
{
	size_t known = 0;
	for (size_t i = 0; i < r->len; i++) {
		double all[REQUEST_INPUT_COUNT];
		request_inputs_get(&r->row[i], all);
		known += isnan(all[input]) ? 0 : 1;
	}
	return known > 0 && known >= r->len - known;
}

size_t requests_inputs(const struct requests *const *run, size_t runs, const char *name[REQUEST_INPUT_COUNT])
{
	size_t n = 0;
	for (size_t i = 0; i < REQUEST_INPUT_COUNT; i++) {
		bool all = true;
		for (size_t k = 0; k < runs && i >= REQUEST_FEATURE_COUNT; k++)
			all = all && has_input(run[k], i);
		if (all)
			name[n++] = request_input_name[i];
	}
	return n;
}

/* Replaces unknown values of an input by the median of the known ones. Returns false if there are none. */
static bool fill_unknown(double *x, size_t rows, size_t d)
{
	double *known = mem_new(rows + 1, sizeof *known);
	size_t n = 0;
	for (size_t i = 0; i < rows; i++)
		if (!isnan(x[i * d]))
			known[n++] = x[i * d];
	stats_sort(known, n);
	const double median = n ? stats_quantile(known, n, 0.5) : 0;
	for (size_t i = 0; i < rows; i++)
		x[i * d] = isnan(x[i * d]) ? median : x[i * d];
	free(known);
	return n > 0 || rows == 0;
}

double *requests_matrix(const struct requests *r, const char *const *name, size_t d, const char **missing)
{
	double *x = mem_new(r->len * d, sizeof *x);
	*missing = NULL;
	for (size_t j = 0; j < d && !*missing; j++) {
		size_t input = 0;
		while (input < REQUEST_INPUT_COUNT && strcmp(name[j], request_input_name[input]) != 0)
			input++;
		for (size_t i = 0; i < r->len && input < REQUEST_INPUT_COUNT; i++) {
			double all[REQUEST_INPUT_COUNT];
			request_inputs_get(&r->row[i], all);
			x[i * d + j] = all[input];
		}
		if (input == REQUEST_INPUT_COUNT || !fill_unknown(x + j, r->len, d))
			*missing = name[j];
	}
	return x;
}
