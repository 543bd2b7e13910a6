#include "model/loss/host_prescan.h"

#include <stdlib.h>

#include "base/mem.h"

struct model_look {
	const struct trace *host;  /* borrowed */
	bool is_done;
	int status;                /* then, as those below */
	struct start start;
	struct error err;
};

struct model_look *model_look_begin(const struct trace *host)
{
	if (!host || !trace_info(host)->events)
		return NULL;
	struct model_look *l = mem_new(1, sizeof *l);
	*l = (struct model_look){ .host = host, .start = START_INIT, .err = ERROR_INIT };
	return l;
}

void model_look_run(void *look)
{
	struct model_look *l = look;
	l->status = start_look(&l->start, l->host, NULL, &l->err);
	l->is_done = true;
}

bool model_look_is_of(const struct model_look *l, const struct trace *trace)
{
	return l && l->host == trace && l->is_done;
}

int model_look_take(struct model_look *l, struct start *start, struct error *err)
{
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
	start_release(&l->start);
	free(l);
}
