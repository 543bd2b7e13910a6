/* The tasks of readers that are apart, as part of a load: shared out among child processes. */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/clock.h"
#include "trace/load.h"
#include "trace/isolation/decoder_process.h"

#define LIVE_USUAL 256              /* streams of a live trace, to begin with */
#define WORTH_A_CHILD (4ULL << 20)  /* bytes: each child opens the source anew */

static bool tick_of_files(void *arg)
{
	struct load *l = arg;
	load_tick(l);
	return load_is_over(l);
}

static bool tick_of_live(void *arg)
{
	struct load *l = arg;
	const struct progress *p = &l->options->progress;
	const uint64_t events = atomic_load(&l->live_events);
	if (p->tick && p->tick(p->arg, "reading live traces", events, PROGRESS_OPEN))
		return true;
	if (now_ns() < l->live_until)
		return false;
	l->live_until = INT64_MAX;
	return true;
}

struct children {
	struct told **told;
	size_t len, cap;
};

static struct told *add_child(struct children *c, struct source *s)
{
	struct told *t = *ARRAY_PUSH(c->told, c->len, c->cap) = mem_new(1, sizeof *t);
	t->source = s;
	return t;
}

/* The tasks order[first, end) of one source: each to the child with the least work, in their order. */
static void share_out(struct children *c, struct load *l, size_t first, size_t end)
{
	struct source *s = l->task[l->order[first]].source;
	const size_t before = c->len, most = s->bytes / WORTH_A_CHILD + 1;
	for (size_t i = 0; i < l->workers && i < most && i < end - first; i++)
		add_child(c, s);
	for (size_t i = first; i < end; i++) {
		struct told *least = c->told[before];
		for (size_t k = before + 1; k < c->len; k++)
			least = c->told[k]->bytes < least->bytes ? c->told[k] : least;
		struct task *t = &l->task[l->order[i]];
		*ARRAY_PUSH(least->task, least->tasks, least->tasks_cap) = t;
		least->bytes += t->bytes;
	}
}

static void crew_release(struct children *c)
{
	for (size_t i = 0; i < c->len; i++) {
		told_release(c->told[i]);
		free(c->told[i]);
	}
	free(c->told);
}

/* Live traces first and all at once: what they say is said only now. */
int apart_tasks(struct load *l, struct error *err)
{
	struct children live = { 0 }, files = { 0 };
	size_t streams = l->ordered - l->apart;
	for (size_t i = 0, end; i < l->apart; i = end) {
		const struct source *s = l->task[l->order[i]].source;
		for (end = i; end < l->apart && l->task[l->order[end]].source == s; end++)
			streams += s->streams ? 1 : LIVE_USUAL;
		share_out(s->reader->endless ? &live : &files, l, i, end);
	}
	store_expect(l->store, streams);
	l->live_until = l->options->live_for ? now_ns() + l->options->live_for : INT64_MAX;
	int status = told_read(live.told, live.len,
	                       &(struct told_work){ l->store, &l->live_events, live.len, tick_of_live, l }, err);
	for (size_t i = 0; i < live.len && !status && !atomic_load(&l->live_events); i++) {
		const struct source *s = live.told[i]->source;
		if (s->cut)
			status = error_set(err, STATUS_INPUT, s->reader->mend, "%s: %s", s->place[0]->path, s->cut);
	}
	if (!status)
		status = told_read(files.told, files.len,
		                   &(struct told_work){ l->store, &l->bytes, l->workers, tick_of_files, l }, err);
	crew_release(&live);
	crew_release(&files);
	return status;
}
