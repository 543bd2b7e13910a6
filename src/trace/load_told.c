/* What child processes read, as part of a load. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "trace/load.h"

#define LIVE_USUAL 256  /* streams of a live trace, to begin with */

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool tick_of_files(void *arg)
{
	struct load *l = arg;
	load_tick(l);
	return atomic_load(&l->cancelled);
}

static bool tick_of_live(void *arg)
{
	struct load *l = arg;
	const struct progress *p = &l->options->progress;
	const uint64_t events = atomic_load(&l->live_events);
	if (p->tick && p->tick(p->arg, "reading live traces", events, PROGRESS_OPEN))
		return true;
	if (now() < l->live_until)
		return false;
	l->live_until = INT64_MAX;
	return true;
}

static void describe(struct trace *t, const struct metadata *m)
{
	load_add_uuid(t, m->uuid);
	if (*t->tracer)
		return;
	free(t->tracer);
	t->tracer = mem_dup(m->tracer);
}

/* The kernel's trace first, as its streams come first. */
static void describe_live(struct load *l)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct told *told = l->machine[i].told;
		for (int other = 0; told && other < 2; other++)
			for (size_t k = 0; k < told->traces; k++)
				if ((strcmp(told->trace[k].domain, "kernel") != 0) == other)
					describe(l->machine[i].trace, &told->trace[k]);
	}
}

/* Live traces first and all at once: what they say is said only now. */
int load_told(struct load *l, struct error *err)
{
	struct told **live = mem_new(l->tolds + 1, sizeof *live), **file = mem_new(l->tolds + 1, sizeof *file);
	size_t lives = 0, files = 0, streams = l->tasks;
	for (size_t i = 0; i < l->tolds; i++) {
		struct told *t = &l->told[i];
		const bool is_live = t->kind->endless;
		*(is_live ? &live[lives++] : &file[files++]) = t;
		streams += is_live ? LIVE_USUAL : t->most;
		l->total += t->bytes;
	}
	store_expect(l->store, streams);
	l->live_until = l->options->live_for ? now() + l->options->live_for : INT64_MAX;
	const struct told_work of_live = { l->store, &l->live_events, lives, tick_of_live, l };
	const struct told_work of_files = { l->store, &l->bytes, l->workers, tick_of_files, l };
	int status = told_read(live, lives, &of_live, err);
	for (size_t i = 0; i < lives && !status && !atomic_load(&l->live_events); i++)
		if (live[i]->cut)
			status = error_set(err, STATUS_INPUT, live[i]->kind->mend, "%s: %s", live[i]->name, live[i]->cut);
	if (!status)
		status = told_read(file, files, &of_files, err);
	free(live);
	free(file);
	describe_live(l);
	return status;
}
