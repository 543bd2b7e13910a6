#include "base/event_text.h"

#include "base/base.h"

void event_list_add(struct event_list *l, const struct event_text *ev)
{
	struct event_text *to = ARRAY_PUSH(l->event, l->len, l->cap);
	*to = *ev;
	to->machine = mem_dup(ev->machine);
	to->comm = mem_dup(ev->comm);
	to->event = mem_dup(ev->event);
	to->fields = mem_dup(ev->fields);
}

void event_list_release(struct event_list *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free((char *)l->event[i].machine);
		free((char *)l->event[i].comm);
		free((char *)l->event[i].event);
		free((char *)l->event[i].fields);
	}
	free(l->event);
	*l = (struct event_list){ 0 };
}
