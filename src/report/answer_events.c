#include "report/report.h"

static const struct column columns[] = {
	{ "at", "at", COL_CLOCK_NS },      { "machine_ns", NULL, COL_INT },  { "machine", "machine", COL_TEXT },
	{ "cpu", "CPU", COL_INT },       { "tid", "TID", COL_INT },        { "name", "name", COL_TEXT },
	{ "event", "event", COL_TEXT },  { "fields", "fields", COL_FIELDS },
};

struct report *report_events(FILE *out, struct report_how how, const struct origin *o)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("events", columns, "cpu tid");
	return report_begin(out, how, &shape, o);
}

void report_event(struct report *r, const struct event_text *ev)
{
	report_row(r, (struct value[]){
		VAL_INT(ev->t), VAL_INT(ev->own), VAL_TEXT(ev->machine), VAL_INT(ev->cpu), value_tid(ev->tid),
		VAL_TEXT(ev->comm), VAL_TEXT(ev->event), VAL_TEXT(ev->fields) });
}
