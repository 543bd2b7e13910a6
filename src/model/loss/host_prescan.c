#include "model/loss/host_prescan.h"

#include "base/base.h"

struct host_prescan {
	const struct trace *host; /* borrowed */
	bool is_done;
	int status;               /* the prescan's result; valid if is_done, like the members below */
	struct prescan prescan;
	struct error err;
};

struct host_prescan *host_prescan_begin(const struct trace *host)
{
	if (!host || !trace_info(host)->events)
		return NULL;
	struct host_prescan *l = mem_new(1, sizeof *l);
	*l = (struct host_prescan){ .host = host, .prescan = PRESCAN_INIT, .err = ERROR_INIT };
	return l;
}

void host_prescan_run(void *arg)
{
	struct host_prescan *l = arg;
	l->status = prescan_read(&l->prescan, l->host, NULL, &l->err);
	l->is_done = true;
}

bool host_prescan_matches(const struct host_prescan *l, const struct trace *trace)
{
	return l && l->host == trace && l->is_done;
}

int host_prescan_take(struct host_prescan *l, struct prescan *prescan, struct error *err)
{
	*prescan = l->prescan;
	l->prescan = (struct prescan)PRESCAN_INIT;
	if (l->status < 0)
		*err = l->err;
	return l->status;
}

void host_prescan_end(struct host_prescan *l)
{
	if (!l)
		return;
	prescan_release(&l->prescan);
	free(l);
}
