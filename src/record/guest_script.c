#include "record/guest_script.h"

#include "base/base.h"
#include "record/buffer_sizing.h"
#include "record/guest_text.h"

static char *quote_text(const char *text)
{
	char *q = mem_new(4 * strlen(text) + 3, 1), *to = q;
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(to, "'\\''", 4);
			to += 4;
		} else {
			*to++ = *text;
		}
	}
	*to = '\'';
	return q;
}

static char *event_list(const struct guest_settings *o)
{
	char *all = mem_dup("");
	for (size_t i = 0; i < o->events; i++) {
		char *longer = mem_printf("%s %s", all, o->event[i]);
		free(all);
		all = longer;
	}
	return all;
}

char *guest_script(const struct guest *g)
{
	const struct guest_settings *o = g->settings;
	char *events = event_list(o), *event = quote_text(events), *clocks = quote_text(o->clocks);
	static const struct guest_request_kinds none = { 0 };
	char *programs = guest_request_kinds_script(o->requests ? o->requests : &none);
	char *head = mem_printf("key=%s task=%s hold=%u limit=%u overwrite=%d max_kb=%d steal=%d root='' %s clocks=%s "
	                        "events=%s\n", g->frames.key, o->task, o->hold, o->limit, o->overwrite, FORECAST_KB_MAX,
	                        o->steal, programs, clocks, event);
	char *text = mem_printf("%s%s", head, shipped[0].text);
	free(programs);
	free(events);
	free(event);
	free(clocks);
	free(head);
	return text;
}

