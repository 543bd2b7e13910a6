/* Hardware counters of CPUs: instructions and cycles, read when the CPU switches threads.
 *
 * The attributes of a CPU contain, from each read to the next one, the sum of all counts since the trace began up to that
 * next read. So the count of an interval is the difference to the value before. Equal counts of two adjacent intervals
 * would be joined; sums never are, because they grow. Counts that are not plausible have no value. */
#include <stdlib.h>

#include "base/mem.h"
#include "model/state/state.h"

#define COUNTERS 2
#define PER_NS_MAX 64       /* limit of a plausible count per ns; more: the counter was set, or its bits wrapped around */
#define SLACK 10000         /* count in addition to it: the clock's resolution may be coarse */

struct cpu_counters {
	struct cpu_counter {
		int64_t at;         /* time of the last read, host ns; INT64_MIN: none that the next one can be compared with */
		uint64_t value;     /* value of the last read */
		int64_t sum;        /* of all plausible counts */
		uint32_t attr;
	} counter[COUNTERS];
};

static const enum cpu_attr attributes[COUNTERS] = { CPU_INSTRUCTIONS, CPU_CYCLES };

/* Returns the count since the last read; 0: unknown. A count of 0 is no count: a switch takes instructions, so the counter
 * stood still. */
static uint64_t count_since(const struct cpu_counter *c, int64_t now, uint64_t value, bool is_difference)
{
	const uint64_t count = is_difference ? value : value > c->value ? value - c->value : 0;
	const uint64_t ns = (uint64_t)now - (uint64_t)c->at;
	return count < SLACK || (count - SLACK) / PER_NS_MAX < ns ? count : 0;
}

static void counter_read(struct model_sink *s, struct cpu_counter *c, uint64_t value, bool is_difference)
{
	if (c->at != INT64_MIN && s->now > c->at) {
		const uint64_t count = count_since(c, s->now, value, is_difference);
		const bool fits = count && count <= (uint64_t)(INT64_MAX - c->sum);
		c->sum += fits ? (int64_t)count : 0;
		sink_set_at(s, c->at, c->attr, fits ? c->sum : HISTORY_NULL);
	}
	if (c->at != INT64_MIN && !value && !is_difference)
		sink_set(s, c->attr, HISTORY_NULL);
	c->at = value || is_difference ? s->now : INT64_MIN;
	c->value = value;
}

static struct cpu_counters *counters_of_cpu(struct machine *mc, uint32_t number)
{
	if (number >= mc->counter_cpus) {
		const uint32_t n = number + 1 > 2 * mc->counter_cpus ? number + 1 : 2 * mc->counter_cpus;
		mc->counters = mem_resize(mc->counters, n, sizeof *mc->counters);
		for (uint32_t i = mc->counter_cpus; i < n; i++)
			for (unsigned k = 0; k < COUNTERS; k++)
				mc->counters[i].counter[k] = (struct cpu_counter){ .at = INT64_MIN, .attr = HISTORY_NONE };
		mc->counter_cpus = n;
	}
	return &mc->counters[number];
}

void counters_event(struct machine *mc, const struct event *ev)
{
	struct cpu_counters *all = counters_of_cpu(mc, ev->cpu);
	for (unsigned i = 0; i < COUNTERS; i++) {
		struct cpu_counter *c = &all->counter[i];
		if (ev->arg[i] == EVENT_ABSENT)
			continue;
		if (c->attr == HISTORY_NONE)
			c->attr = cpu_attribute(mc, ev->cpu, attributes[i]);
		counter_read(&mc->model->sink, c, (uint64_t)ev->arg[i], ev->counters.is_difference == 1);
	}
}

void counters_end(struct machine *mc)
{
	for (uint32_t i = 0; i < mc->counter_cpus; i++) {
		for (unsigned k = 0; k < COUNTERS; k++) {
			struct cpu_counter *c = &mc->counters[i].counter[k];
			if (c->at != INT64_MIN)
				sink_set_at(&mc->model->sink, c->at, c->attr, HISTORY_NULL);
			c->at = INT64_MIN;
		}
	}
}
