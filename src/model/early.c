#include "model/early.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"

struct model_look {
	const struct trace *host;  /* borrowed */
	pthread_t thread;
	bool runs;                 /* has yet to be waited for */
	int status;                /* when it is over, as those below */
	struct start start;
	struct error err;
};

static void *look(void *arg)
{
	struct model_look *l = arg;
	l->status = start_look(&l->start, l->host, NULL, &l->err);
	return NULL;
}

struct model_look *model_look_begin(const struct trace *host, unsigned workers)
{
	if (!host || !trace_info(host)->events || parallel_workers(workers) < 2)
		return NULL;
	struct model_look *l = mem_new(1, sizeof *l);
	*l = (struct model_look){ .host = host, .start = START_INIT, .err = ERROR_INIT };
	l->runs = parallel_thread(&l->thread, look, l) == 0;
	if (l->runs)
		return l;
	free(l);
	return NULL;
}

static void wait_for(struct model_look *l)
{
	if (l->runs)
		pthread_join(l->thread, NULL);
	l->runs = false;
}

bool model_look_is_of(const struct model_look *l, const struct trace *trace)
{
	return l && l->host == trace;
}

int model_look_take(struct model_look *l, struct start *start, struct error *err)
{
	wait_for(l);
	*start = l->start;
	l->start = (struct start)START_INIT;
	if (l->status < 0)
		*err = l->err;
	return l->status;
}

void model_look_end(struct model_look *l)
{
	if (!l)
		return;
	wait_for(l);
	start_release(&l->start);
	free(l);
}
