/* Requests, from an application's marks.
 *
 * A request that begins with a resume mark started before the trace or while events were lost: its state is unknown
 * until its next mark, so that it is not counted as complete.
 *
 *   /Requests/<machine>/<id>/State   running | yielded | unknown (events or its start were lost) | dropped (requests of
 *                                    probes only: no end was recorded); null outside
 *   /Requests/<machine>/<id>/Thread  TID of the thread that serves it; null outside
 *   /Requests/<machine>/<id>/Label   text of the request without values (requests of probes only, see layout_label())
 *
 * Memory: the open requests. */
#include "base/base.h"
#include "model/state/state.h"

static uint32_t declare_attribute(struct machine *mc, const char *id, enum request_attr attr, unsigned set)
{
	char path[NODE_MAX];
	history_path(path, sizeof path, SCHEMA_REQUESTS, mc->name, id, (char *)NULL);
	return sink_attribute(&mc->model->sink, path, &request_schema[attr], set);
}

struct request_attrs request_declare(struct machine *mc, const char *id)
{
	struct request_attrs r;
	r.attr_state = declare_attribute(mc, id, REQUEST_STATE, mc->model->set_request);
	r.attr_thread = declare_attribute(mc, id, REQUEST_THREAD, 0);
	r.attr_label = HISTORY_NONE;
	return r;
}

void request_set_label(struct machine *mc, const char *id, struct request_attrs *r, int64_t t, int64_t label)
{
	if (label != EVENT_ABSENT && r->attr_label == HISTORY_NONE)
		r->attr_label = declare_attribute(mc, id, REQUEST_LABEL, 0);
	if (r->attr_label != HISTORY_NONE)
		sink_set_at(&mc->model->sink, t, r->attr_label,
		            label == EVENT_ABSENT ? HISTORY_NULL : sink_id(&mc->model->sink, mc->names.get(mc->names.of, label)));
}

static struct request_attrs *get_request(struct machine *mc, int64_t id, bool *is_new)
{
	uint64_t *slot = map_put(&mc->request, (uint64_t)id, is_new);
	if (!*is_new)
		return (struct request_attrs *)(uintptr_t)*slot;
	struct request_attrs *r = mem_new(1, sizeof *r);
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, id);
	*r = request_declare(mc, text);
	*slot = (uint64_t)(uintptr_t)r;
	return r;
}

static void end_request(struct machine *mc, struct request_attrs *r)
{
	sink_set(&mc->model->sink, r->attr_state, HISTORY_NULL);
	sink_set(&mc->model->sink, r->attr_thread, HISTORY_NULL);
	free(r);
}

void request_event(struct machine *mc, const struct event *ev, int64_t tid)
{
	struct model_sink *s = &mc->model->sink;
	int64_t id = ev->mark.id;
	if (id == EVENT_ABSENT)
		return;
	if (ev->mark.op == MARK_END) {
		uint64_t *slot = map_find(&mc->request, (uint64_t)id);
		if (!slot)
			return;
		end_request(mc, (struct request_attrs *)(uintptr_t)*slot);
		map_remove(&mc->request, (uint64_t)id);
		return;
	}
	bool is_new;
	struct request_attrs *r = get_request(mc, id, &is_new);
	int state = ev->mark.op == MARK_YIELD ? REQUEST_YIELDED
	          : ev->mark.op == MARK_RESUME && is_new ? REQUEST_UNKNOWN : REQUEST_RUNNING;
	sink_set(s, r->attr_state, state);
	if (tid >= 0)
		sink_set(s, r->attr_thread, tid);
}

void request_set_unknown(struct machine *mc)
{
	uint64_t id, p;
	for (size_t at = 0; map_each(&mc->request, &at, &id, &p); )
		sink_set(&mc->model->sink, ((struct request_attrs *)(uintptr_t)p)->attr_state, REQUEST_UNKNOWN);
}

void request_close(struct machine *mc)
{
	uint64_t id, p;
	for (size_t at = 0; map_each(&mc->request, &at, &id, &p); )
		end_request(mc, (struct request_attrs *)(uintptr_t)p);
	map_release(&mc->request);
}

void request_release(struct machine *mc)
{
	uint64_t id, p;
	for (size_t at = 0; map_each(&mc->request, &at, &id, &p); )
		free((struct request_attrs *)(uintptr_t)p);
	map_release(&mc->request);
}
