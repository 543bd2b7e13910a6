#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "report/writer.h"

#define CLOCK_DIGITS 4  /* after the second: as the viewer has them, and 80 columns hold the gaps of a vCPU */

const char *const report_formats[] = { "text", "csv", "json", NULL };
static const struct report_writer *const writers[] = { &write_text, &write_csv, &write_json };

const char *field_escape(const char *text, struct field_text *f)
{
	const size_t most = TEXT_ESCAPED * strlen(text) + 1;
	if (most <= sizeof f->fixed)
		return text_escape(f->fixed, sizeof f->fixed, text);
	if (most > f->room)
		f->longer = mem_resize(f->longer, f->room = most, 1);
	return text_escape(f->longer, f->room, text);
}

void field_release(struct field_text *f)
{
	free(f->longer);
	*f = (struct field_text){ 0 };
}

const char *field_format(const struct column *c, const struct value *v, bool people, struct field_text *f)
{
	char *buf = f->fixed;
	buf[0] = '\0';
	if (v->form == VALUE_ABSENT)
		return buf;
	switch (c->type) {
	case COL_TEXT:
	case COL_WHOLE:
	case COL_FIELDS:
		if (v->form == VALUE_NUMBER)
			break;
		if (v->form == VALUE_RAW)
			return field_escape(v->text ? v->text : "", f);
		return v->text ? v->text : "";
	case COL_DURATION:
		if (people)
			return time_duration(buf, v->integer);
		break;
	case COL_CLOCK:
		if (people)
			return time_clock(buf, v->integer, CLOCK_DIGITS);
		break;
	case COL_MOMENT:
		if (people)
			return time_clock(buf, v->integer, 9);
		break;
	case COL_INT:
	case COL_LANE:
		break;
	case COL_SHARE:
		snprintf(buf, sizeof f->fixed, people ? "%.2f%%" : "%.9f", people ? 100 * v->real : v->real);
		return buf;
	case COL_REAL:
		snprintf(buf, sizeof f->fixed, people ? "%.3f" : "%.9f", v->real);
		return buf;
	}
	snprintf(buf, sizeof f->fixed, "%" PRId64, v->integer);
	return buf;
}

/* What comes before the rows.  Of a later page it has to wait: rows may say that there is none. */
static void begin(struct report *r)
{
	if (!r->begun)
		r->writer->begin(r);
	r->begun = true;
}

struct report *report_begin(FILE *out, struct report_how how, const struct report_shape *shape,
                            const struct origin *origin)
{
	struct report *r = mem_new(1, sizeof *r);
	*r = (struct report){ .out = out, .writer = writers[how.format], .shape = shape, .origin = origin };
	r->width = mem_new(2 * shape->columns, sizeof *r->width);
	r->readable = r->width + shape->columns;
	page_begin(&r->page, how, shape->name);
	if (r->page.from == 0 && !r->page.wrong)
		begin(r);
	return r;
}

int report_width(FILE *out)
{
	struct winsize ws;
	return ioctl(fileno(out), TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

/* What is for people alone stands last. */
size_t report_raw_columns(const struct report_shape *shape)
{
	size_t n = shape->columns;
	while (n && !shape->column[n - 1].name)
		n--;
	return n;
}

void report_lanes(struct report *r, int (*draw)(void *arg, int64_t number, unsigned columns, char *lane), void *arg)
{
	r->draw = draw;
	r->draw_arg = arg;
}

void report_losses(struct report *r, const struct topo *topo, const struct subject *who)
{
	r->unseen = topo_is_alone(topo, who);
}

void report_row(struct report *r, const struct value *value)
{
	if (!page_takes(&r->page, r->shape, value))
		return;
	begin(r);
	r->rows++;
	r->writer->row(r, value);
}

void report_member(struct report *r, const char *name, struct json_object *o)
{
	if (r->writer->member && r->begun)
		r->writer->member(r, name, o);
	else
		json_object_put(o);
}

int report_end(struct report *r, struct error *err)
{
	char next[PAGE_TEXT];
	int rc = page_end(&r->page, next, err);
	if (rc == 0) {
		report_member(r, "next", *next ? json_object_new_string(next) : NULL);
		r->writer->end(r);
	}
	free(r->held);
	free(r->width);
	free(r);
	return rc;
}

struct value value_system(const struct topo *topo, int32_t system)
{
	return system < 0 ? VAL_NONE : VAL_TEXT(topo->machine[system].name);
}

struct value value_tid(int32_t tid)
{
	return tid < 0 ? VAL_NONE : VAL_INT(tid);
}
