#include "truth_unknown.h"

#include <stdio.h>
#include <string.h>

#define HOST_STATES 8  /* number of samples of the clock per part, in addition to the sample at its end */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void bounds_begin(struct truth_unknown *d, const struct truth_file *truth, int64_t slack)
{
	memset(d, 0, sizeof *d);
	d->begin = truth->begin;
	d->length = (truth->end - truth->begin) / BOUND_PARTS + 1;
	d->least = slack < 0 ? 0 : slack;
}

/* Finds the largest error bound in a part, and compares the bounds with the true clock, unless the clock is reported
 * unknown. Returns false if the clock is wrong there. */
static bool sample_part(struct truth_unknown *d, const struct truth_file *truth, const struct sync_vm *vm, int64_t from,
                     int64_t *widest, bounds_outside_fn *outside, void *arg)
{
	for (int k = 0; k <= HOST_STATES; k++) {
		const int64_t host = from + d->length / HOST_STATES * k, guest = truth_guest_time(truth, vm->name, host);
		int64_t low, high;

		if (!clock_map_has_bounds(&vm->clock, guest)) {
			*widest = BOUND_NONE;
			continue;
		}
		if (!clock_map_bounds(&vm->clock, guest, &low, &high)) {
			outside(arg, vm->name, host, 1, 0);
			return false;
		}
		if (!clock_map_is_ambiguous(&vm->clock, guest))
			*widest = max_ns(*widest, high - low + d->least);
		if (truth_is_repeated(truth, vm->name, guest))
			continue;  /* that guest time occurs twice: the clock maps it to only one of the two host times */
		if (host < low - d->least || host > high + d->least) {
			outside(arg, vm->name, host, low - host, high - host);
			return false;
		}
	}
	return true;
}

/* Gives a part that can contain no event, according to the clock, the bounds of its neighbours. */
static void fill_empty_parts(int64_t part[BOUND_PARTS])
{
	int64_t own[BOUND_PARTS];

	memcpy(own, part, sizeof own);
	for (int i = 0; i < BOUND_PARTS; i++)
		for (int k = 1; own[i] == 0 && part[i] == 0 && k < BOUND_PARTS; k++)
			part[i] = max_ns(i >= k ? own[i - k] : 0, i + k < BOUND_PARTS ? own[i + k] : 0);
}

/* Adds the steps at unknown times: there the clock may be off by the step, and no further. */
static void add_jumps(struct guest_bounds *g, const struct clock_map *clock, int64_t slack)
{
	for (size_t i = 1; i < clock->segments && g->jumps < COUNT(g->jump); i++) {
		const struct clock_segment *p = &clock->segment[i];
		int64_t low[2], high[2];

		if (p->placed || p->ambiguous_from == p->ambiguous_to)
			continue;
		if (clock_map_bounds(clock, p->ambiguous_from, &low[0], &high[0]) &&
		    clock_map_bounds(clock, p->ambiguous_to - 1, &low[1], &high[1]))
			g->jump[g->jumps++] = (struct clock_jump){ low[0], high[1], high[0] - low[0] + slack };
	}
}

static struct guest_bounds *add_guest(struct truth_unknown *d, const struct sync_vm *vm)
{
	struct guest_bounds *g = &d->guest[d->guests < BOUND_GUESTS - 1 ? d->guests++ : d->guests];

	snprintf(g->machine, sizeof g->machine, "%s", vm->name);
	d->nested = d->nested || vm->parent > 0;
	return g;
}

void bounds_add_unknown(struct truth_unknown *d, const struct sync_vm *vm)
{
	add_guest(d, vm);
}

void bounds_add(struct truth_unknown *d, const struct truth_file *truth, const struct sync_vm *vm,
                bounds_outside_fn *outside, void *arg)
{
	struct guest_bounds *g = add_guest(d, vm);

	g->known = true;
	for (int i = 0; i < BOUND_PARTS; i++)
		if (!sample_part(d, truth, vm, d->begin + d->length * i, &g->part[i], outside, arg))
			break;  /* one report is enough */
	fill_empty_parts(g->part);
	add_jumps(g, &vm->clock, d->least);
}

/* Returns true if the guest's clock affects the attribute: an attribute of the guest, or one on which all clocks have an
 * effect. */
static bool is_affected(const struct truth_unknown *d, const char *path, const struct guest_bounds *g)
{
	static const char root[] = "/Virtual Machines/";
	const char *name = path + strlen(root);
	bool traced = false;

	if (d->nested || strncmp(path, root, strlen(root)))
		return true;
	for (size_t i = 0; i < d->guests; i++) {
		const size_t len = strlen(d->guest[i].machine);
		const bool is = !strncmp(name, d->guest[i].machine, len) && name[len] == '/';

		if (is && &d->guest[i] == g)
			return true;
		traced = traced || is;
	}
	return !traced;
}

bool bounds_any_unknown(const struct truth_unknown *d)
{
	bool unknown = false;

	for (size_t i = 0; i < d->guests; i++)
		unknown = unknown || !d->guest[i].known;
	return unknown;
}

/* The host's own attributes do not depend on the guests' clocks, except the names of VMs. */
bool bounds_known(const struct truth_unknown *d, const char *path)
{
	const bool of_host = !strncmp(path, "/Host/", strlen("/Host/")) && strcmp(strrchr(path, '/'), "/Owner");

	for (size_t i = 0; i < d->guests; i++)
		if (!d->guest[i].known && !of_host && is_affected(d, path, &d->guest[i]))
			return false;
	return true;
}

int64_t bounds_at(const struct truth_unknown *d, const char *path, int64_t t, int64_t *until)
{
	const int64_t at = t < d->begin ? 0 : (t - d->begin) / d->length;
	const int64_t part = at < BOUND_PARTS ? at : BOUND_PARTS - 1;
	int64_t tolerance = d->least;

	*until = part < BOUND_PARTS - 1 && d->guests > 0 ? d->begin + (part + 1) * d->length - 1 : INT64_MAX;
	for (size_t i = 0; i < d->guests; i++) {
		const struct guest_bounds *g = &d->guest[i];

		if (!is_affected(d, path, g))
			continue;
		tolerance = max_ns(tolerance, g->part[part]);
		for (size_t k = 0; k < g->jumps; k++) {
			const struct clock_jump *j = &g->jump[k];
			const int64_t end = t < j->from ? j->from - 1 : t <= j->to ? j->to : INT64_MAX;

			*until = end < *until ? end : *until;
			if (t >= j->from && t <= j->to)
				tolerance = max_ns(tolerance, j->tolerance);
		}
	}
	return tolerance;
}

void bounds_window(const struct truth_unknown *d, const char *path, int64_t *from, int64_t *to)
{
	int64_t off, until;

	while (*from <= *to && (off = bounds_at(d, path, *from, &until)) == BOUND_NONE)
		*from = until < *to ? until + 1 : *to + 1;
	if (*from <= *to)
		*from += off;
	while (*from <= *to && (off = bounds_at(d, path, *to, &until)) == BOUND_NONE)
		*to = *to < d->begin + d->length ? *from - 1 : d->begin + (*to - d->begin) / d->length * d->length - 1;
	if (*from <= *to)
		*to -= off;
}

double bounds_unknown_share(const struct truth_unknown *d)
{
	size_t parts = 0;

	for (size_t i = 0; i < d->guests; i++)
		for (int k = 0; k < BOUND_PARTS; k++)
			parts += !d->guest[i].known || d->guest[i].part[k] == BOUND_NONE;
	return d->guests == 0 ? 0 : (double)parts / (double)(d->guests * BOUND_PARTS);
}

int64_t bounds_max(const struct truth_unknown *d)
{
	int64_t most = d->least;

	for (size_t i = 0; i < d->guests; i++)
		for (int k = 0; k < BOUND_PARTS; k++)
			most = d->guest[i].part[k] == BOUND_NONE ? most : max_ns(most, d->guest[i].part[k]);
	return most;
}
