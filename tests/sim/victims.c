/* Worlds in which one target is the worst victim although another one lost more time, or slept most of its life. */
#include <stdio.h>
#include <string.h>

#include "groups.h"
#include "scenario.h"

enum plant { SERVER, FLOOR, OWN, RECORDER, BESIDE, PLANTS };

static struct thread *add(struct machine *m, const char *name, enum workload wl, uint64_t affinity)
{
	struct sim *s = m->sim;

	return thread_add(m, name, workload[wl], s->begin + rng_range(&s->rng, 1 * MS, 9 * MS), affinity);
}

static struct quota_group *unit_add(struct sim *s, const char *name)
{
	struct quota_group *g = &s->group[s->groups++];

	snprintf(g->path, sizeof g->path, "/system.slice/%s", name);
	return g;
}

/* The threads of batch.service take more time from each other than burnP6 takes from web.service. */
static void own_threads(struct sim *s, struct machine *h)
{
	struct quota_group *batch = unit_add(s, "batch.service"), *web = unit_add(s, "web.service");

	s->groups_recorded = true;
	for (int i = 0; i < 3; i++)
		add(h, i ? "cc1" : "make", WL_HOG, 1)->group = batch;
	add(h, "nginx", WL_BURST_HOG, 2)->group = web;
	add(h, "burnP6", WL_HOG, 2);
}

/* The recorder's threads wait longest. */
static void busy_recorder(struct sim *s, struct machine *h)
{
	struct quota_group *lttng = unit_add(s, "lttng.service"), *burn = unit_add(s, "burn.service");

	s->groups_recorded = true;
	for (int i = 0; i < 2; i++) {
		struct thread *t = add(h, "lttng-consumerd", WL_HOG, 1);

		t->group = lttng;
		t->nice = 3;
	}
	add(h, "burnP6", WL_HOG, 1)->group = burn;
}

/* The host's threads take more time from each other than burnP6 takes from the VM. */
static void beside_guest(struct sim *s, struct machine *h)
{
	struct plan p = { .name = "Debian", .vcpus = 1, .affinity = 2, .offset = -5357583 * US, .ppb = 100000 };

	add(guest_add(s, &p), "nginx", WL_BURST_HOG, UINT64_MAX);
	add(h, "burnP6", WL_BURST_HOG, 2);
	for (int i = 0; i < 3; i++)
		add(h, "make", WL_HOG, 1);
}

int scenario_victims(struct sim *s)
{
	static const char *const name[PLANTS] = { "server", "floor", "own", "recorder", "beside" };
	enum plant plant = SERVER;
	struct machine *h = host_add(s, 2);

	while (s->opt.plant && plant < PLANTS && strcmp(name[plant], s->opt.plant))
		plant++;
	switch (plant) {
	case SERVER:
		add(h, "nginx", WL_NAPPER, 1)->nice = 10;
		add(h, "burnP6", WL_HOG, 1);
		return 0;
	case FLOOR:  /* both want less than 1 % of the time; the first one waits for 10 ms or more */
		add(h, "once", WL_SHORT_NAPPER, 1);
		add(h, "never", WL_SHORT_NAPPER, 2);
		add(h, "watchdog", WL_LONG_NAPPER, 1)->rt = true;
		add(h, "audio", WL_NAPPER, 2)->rt = true;
		return 0;
	case OWN:
		own_threads(s, h);
		return 0;
	case RECORDER:
		busy_recorder(s, h);
		return 0;
	case BESIDE:
		beside_guest(s, h);
		return 0;
	case PLANTS:
		break;
	}
	return error_set(&s->err, STATUS_USAGE, "server, floor, own, recorder or beside", "%s: no such victim", s->opt.plant);
}
