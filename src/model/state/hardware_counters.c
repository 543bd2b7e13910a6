/* Hardware counters of CPUs: instructions and cycles, read when the CPU switches threads.
 *
 * The attributes of a CPU contain, from each read to the next one, the sum of all counts since the trace began up to that
 * next read. So an interval's count is the difference to the value before. Equal counts of two adjacent intervals
 * would be joined; sums never are, because they grow. Counts that are not plausible have no value.
 *
 * Totals are read shortly before the sched_switch that follows (the same ns in traces of LTTng); the time of that switch is
 * the read's time, so that each interval belongs to one thread. */

#include "base/base.h"
#include "model/state/state.h"

#define COUNTERS 2
#define PER_NS_MAX 64       /* limit of a plausible count per ns; more: the counter was set, or its bits wrapped around */
#define SWITCH_DELAY 50000  /* longest time from a read to its sched_switch, ns */
#define UNKNOWN_NOTED 100   /* a smaller part of the time than 1 / UNKNOWN_NOTED is not worth a note */
#define SLACK 10000         /* count in addition to it: the clock's resolution may be coarse */

struct cpu_counters {
	struct cpu_counter {
		int64_t at;         /* time of the last read, host ns; INT64_MIN: none that the next one can be compared with */
		uint64_t value;     /* value of the last read */
		int64_t sum;        /* of all plausible counts */
		int64_t last;       /* time of the last read, also if it is not comparable, host ns; INT64_MIN: none */
		int64_t known, unknown;  /* ns between two reads, by whether the count is known */
		uint32_t attr;
	} counter[COUNTERS];
	int64_t waiting_since;  /* time of totals that wait for their switch, host ns; INT64_MIN: none */
	int64_t waiting[COUNTERS];  /* EVENT_ABSENT: not read */
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

/* t: the read's time, not after s->now. was_idle: the CPU was idle since the last read, and may have counted nothing. */
static void counter_read(struct model_sink *s, struct cpu_counter *c, int64_t t, uint64_t value, bool is_difference,
                         bool was_idle)
{
	bool is_known = false;
	if (c->at != INT64_MIN && t > c->at) {
		const uint64_t count = count_since(c, t, value, is_difference);
		const bool fits = count && count <= (uint64_t)(INT64_MAX - c->sum);
		c->sum += fits ? (int64_t)count : 0;
		is_known = fits;
		sink_set_at(s, c->at, c->attr, fits ? c->sum : HISTORY_NULL);
	}
	if (t > c->at)
		sink_set_at(s, t, c->attr, HISTORY_NULL);  /* until the next read replaces it */
	if (c->last != INT64_MIN && t > c->last && !was_idle)
		*(is_known ? &c->known : &c->unknown) += t - c->last;
	c->last = t;
	c->at = value || is_difference ? t : INT64_MIN;
	c->value = value;
}

static struct cpu_counters *counters_of_cpu(struct machine *mc, uint32_t number)
{
	if (number >= mc->counter_cpus) {
		const uint32_t n = number + 1 > 2 * mc->counter_cpus ? number + 1 : 2 * mc->counter_cpus;
		mc->counters = mem_resize(mc->counters, n, sizeof *mc->counters);
		for (uint32_t i = mc->counter_cpus; i < n; i++) {
			mc->counters[i].waiting_since = INT64_MIN;
			for (unsigned k = 0; k < COUNTERS; k++)
				mc->counters[i].counter[k] =
					(struct cpu_counter){ .at = INT64_MIN, .last = INT64_MIN, .attr = HISTORY_NONE };
		}
		mc->counter_cpus = n;
	}
	return &mc->counters[number];
}

/* Processes values that were read at t. */
static void read_counters(struct machine *mc, uint32_t cpu, int64_t t, const int64_t value[COUNTERS], bool is_difference)
{
	const bool was_idle = !is_difference && cpu < mc->cpus && mc->cpu[cpu].state == CPU_IDLE;
	for (unsigned i = 0; i < COUNTERS; i++) {
		struct cpu_counter *c = &mc->counters[cpu].counter[i];
		if (value[i] == EVENT_ABSENT)
			continue;
		if (c->attr == HISTORY_NONE)
			c->attr = cpu_attribute(mc, cpu, attributes[i]);
		counter_read(&mc->model->sink, c, t, (uint64_t)value[i], is_difference, was_idle);
	}
}

static void stop_waiting(struct machine *mc, uint32_t cpu, int64_t t)
{
	struct cpu_counters *all = &mc->counters[cpu];
	if (all->waiting_since != INT64_MIN)
		read_counters(mc, cpu, t <= all->waiting_since + SWITCH_DELAY ? t : all->waiting_since, all->waiting, false);
	all->waiting_since = INT64_MIN;
}

void counters_event(struct machine *mc, const struct event *ev)
{
	struct cpu_counters *all = counters_of_cpu(mc, ev->cpu);
	stop_waiting(mc, ev->cpu, INT64_MAX);
	if (ev->counters.is_difference == 1) {
		read_counters(mc, ev->cpu, mc->model->sink.now, ev->arg, true);
		return;
	}
	all->waiting_since = mc->model->sink.now;
	for (unsigned i = 0; i < COUNTERS; i++)
		all->waiting[i] = ev->arg[i];
}

void counters_switch(struct machine *mc, uint32_t cpu)
{
	if (cpu < mc->counter_cpus)
		stop_waiting(mc, cpu, mc->model->sink.now);
}

void counters_add_notes(const struct machine *mc, struct notes *notes)
{
	int64_t known = 0, unknown = 0;
	char text[TIME_TEXT];
	for (uint32_t i = 0; i < mc->counter_cpus; i++) {
		known += mc->counters[i].counter[0].known;
		unknown += mc->counters[i].counter[0].unknown;
	}
	if (unknown > 0 && unknown >= known / UNKNOWN_NOTED)
		note_add(notes, COUNTERS_UNKNOWN, mc->name, 100 * (double)unknown / ((double)known + (double)unknown),
		         time_duration(text, unknown));
}
