#include "truth_unknown.h"

#include <stdio.h>
#include <string.h>

#define PLACES 8  /* of a part, and its end, at which the clock is asked */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void doubt_begin(struct truth_unknown *d, const struct truth_file *truth, int64_t slack)
{
	memset(d, 0, sizeof *d);
	d->begin = truth->begin;
	d->length = (truth->end - truth->begin) / DOUBT_PARTS + 1;
	d->least = slack < 0 ? 0 : slack;
}

/* The widest corridor anywhere in a part, whose clock is held against the true one, but where it says that it does not
 * know.  False: the clock is wrong there. */
static bool ask_part(struct truth_unknown *d, const struct truth_file *truth, const struct sync_vm *vm, int64_t from,
                     int64_t *widest, doubt_outside_fn *outside, void *arg)
{
	for (int k = 0; k <= PLACES; k++) {
		const int64_t host = from + d->length / PLACES * k, guest = truth_guest_time(truth, vm->name, host);
		int64_t low, high;

		if (!clock_map_knows(&vm->clock, guest)) {
			*widest = DOUBT_ALL;
			continue;
		}
		if (!clock_map_bounds(&vm->clock, guest, &low, &high)) {
			outside(arg, vm->name, host, 1, 0);
			return false;
		}
		if (!clock_map_unsure(&vm->clock, guest))
			*widest = larger(*widest, high - low + d->least);
		if (truth_comes_twice(truth, vm->name, guest))
			continue;  /* the clock can say only one of the two */
		if (host < low - d->least || host > high + d->least) {
			outside(arg, vm->name, host, low - host, high - host);
			return false;
		}
	}
	return true;
}

/* A part in which no event can be, by what the clock says: what seems to be there are those beside it. */
static void fill_gaps(int64_t part[DOUBT_PARTS])
{
	int64_t own[DOUBT_PARTS];

	memcpy(own, part, sizeof own);
	for (int i = 0; i < DOUBT_PARTS; i++)
		for (int k = 1; own[i] == 0 && part[i] == 0 && k < DOUBT_PARTS; k++)
			part[i] = larger(i >= k ? own[i - k] : 0, i + k < DOUBT_PARTS ? own[i + k] : 0);
}

/* Where the clock says that it cannot tell when it jumped, it may be off by the jump, and no further. */
static void note_jumps(struct guest_doubt *g, const struct clock_map *clock, int64_t slack)
{
	for (size_t i = 1; i < clock->pieces && g->jumps < COUNT(g->jump); i++) {
		const struct clock_piece *p = &clock->piece[i];
		int64_t low[2], high[2];

		if (p->placed || p->unsure_from == p->unsure_to)
			continue;
		if (clock_map_bounds(clock, p->unsure_from, &low[0], &high[0]) &&
		    clock_map_bounds(clock, p->unsure_to - 1, &low[1], &high[1]))
			g->jump[g->jumps++] = (struct doubt_jump){ low[0], high[1], high[0] - low[0] + slack };
	}
}

static struct guest_doubt *add_guest(struct truth_unknown *d, const struct sync_vm *vm)
{
	struct guest_doubt *g = &d->guest[d->guests < DOUBT_GUESTS - 1 ? d->guests++ : d->guests];

	snprintf(g->machine, sizeof g->machine, "%s", vm->name);
	d->nested = d->nested || vm->parent > 0;
	return g;
}

void doubt_add_unknown(struct truth_unknown *d, const struct sync_vm *vm)
{
	add_guest(d, vm);
}

void doubt_add(struct truth_unknown *d, const struct truth_file *truth, const struct sync_vm *vm, doubt_outside_fn *outside,
               void *arg)
{
	struct guest_doubt *g = add_guest(d, vm);

	g->known = true;
	for (int i = 0; i < DOUBT_PARTS; i++)
		if (!ask_part(d, truth, vm, d->begin + d->length * i, &g->part[i], outside, arg))
			break;  /* once is enough */
	fill_gaps(g->part);
	note_jumps(g, &vm->clock, d->least);
}

/* Whose clock has a say in that attribute, a guest's own or all guests'? */
static bool concerns(const struct truth_unknown *d, const char *path, const struct guest_doubt *g)
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

bool doubt_unknown(const struct truth_unknown *d)
{
	bool unknown = false;

	for (size_t i = 0; i < d->guests; i++)
		unknown = unknown || !d->guest[i].known;
	return unknown;
}

/* The host's own attributes are known whatever its guests' clocks are, but for the names of those. */
bool doubt_knows(const struct truth_unknown *d, const char *path)
{
	const bool of_host = !strncmp(path, "/Host/", strlen("/Host/")) && strcmp(strrchr(path, '/'), "/Owner");

	for (size_t i = 0; i < d->guests; i++)
		if (!d->guest[i].known && !of_host && concerns(d, path, &d->guest[i]))
			return false;
	return true;
}

int64_t doubt_at(const struct truth_unknown *d, const char *path, int64_t t, int64_t *until)
{
	const int64_t at = t < d->begin ? 0 : (t - d->begin) / d->length;
	const int64_t part = at < DOUBT_PARTS ? at : DOUBT_PARTS - 1;
	int64_t tolerance = d->least;

	*until = part < DOUBT_PARTS - 1 && d->guests > 0 ? d->begin + (part + 1) * d->length - 1 : INT64_MAX;
	for (size_t i = 0; i < d->guests; i++) {
		const struct guest_doubt *g = &d->guest[i];

		if (!concerns(d, path, g))
			continue;
		tolerance = larger(tolerance, g->part[part]);
		for (size_t k = 0; k < g->jumps; k++) {
			const struct doubt_jump *j = &g->jump[k];
			const int64_t end = t < j->from ? j->from - 1 : t <= j->to ? j->to : INT64_MAX;

			*until = end < *until ? end : *until;
			if (t >= j->from && t <= j->to)
				tolerance = larger(tolerance, j->tolerance);
		}
	}
	return tolerance;
}

void doubt_window(const struct truth_unknown *d, const char *path, int64_t *from, int64_t *to)
{
	int64_t off, until;

	while (*from <= *to && (off = doubt_at(d, path, *from, &until)) == DOUBT_ALL)
		*from = until < *to ? until + 1 : *to + 1;
	if (*from <= *to)
		*from += off;
	while (*from <= *to && (off = doubt_at(d, path, *to, &until)) == DOUBT_ALL)
		*to = *to < d->begin + d->length ? *from - 1 : d->begin + (*to - d->begin) / d->length * d->length - 1;
	if (*from <= *to)
		*to -= off;
}

double doubt_share(const struct truth_unknown *d)
{
	size_t parts = 0;

	for (size_t i = 0; i < d->guests; i++)
		for (int k = 0; k < DOUBT_PARTS; k++)
			parts += !d->guest[i].known || d->guest[i].part[k] == DOUBT_ALL;
	return d->guests == 0 ? 0 : (double)parts / (double)(d->guests * DOUBT_PARTS);
}

int64_t doubt_most(const struct truth_unknown *d)
{
	int64_t most = d->least;

	for (size_t i = 0; i < d->guests; i++)
		for (int k = 0; k < DOUBT_PARTS; k++)
			most = d->guest[i].part[k] == DOUBT_ALL ? most : larger(most, d->guest[i].part[k]);
	return most;
}
