#include "report/report.h"

#include <sys/ioctl.h>

#include "report/writer.h"

#define CLOCK_DIGITS 4  /* digits after the second, as in the viewer; the gaps of a vCPU then fit 80 columns */

const char *const report_formats[] = { "text", "csv", "json", NULL };
static const struct report_writer *const writers[] = { &write_text, &write_csv, &write_json };

const char *field_escape(const char *text, struct field_buffer *f)
{
	const size_t size = TEXT_ESCAPED * strlen(text) + 1;
	if (size <= sizeof f->fixed)
		return text_escape(f->fixed, sizeof f->fixed, text);
	if (size > f->longer_size)
		f->longer = mem_resize(f->longer, f->longer_size = size, 1);
	return text_escape(f->longer, f->longer_size, text);
}

void field_release(struct field_buffer *f)
{
	free(f->longer);
	*f = (struct field_buffer){ 0 };
}

const char *field_format(const struct column *c, const struct value *v, bool people, struct field_buffer *f)
{
	char *buf = f->fixed;
	buf[0] = '\0';
	if (v->form == VALUE_ABSENT)
		return buf;
	switch (c->type) {
	case COL_TEXT:
	case COL_ACTOR:
	case COL_UNCUT:
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
	case COL_CLOCK_NS:
		if (people)
			return time_clock(buf, v->integer, 9);
		break;
	case COL_INT:
	case COL_LANE:
		break;
	case COL_SHARE:
		if (!people)
			snprintf(buf, sizeof f->fixed, "%.9f", v->real);
		else if (text_share(buf, v->real) && v->text)
			buf[strlen(buf) - 1] = v->text[0];
		return buf;
	case COL_REAL:
		snprintf(buf, sizeof f->fixed, people ? "%.3f" : "%.9f", v->real);
		return buf;
	}
	snprintf(buf, sizeof f->fixed, "%" PRId64, v->integer);
	return buf;
}

/* Writes the head before the rows. For later pages it is written with the first row, because the rows may show that
 * there is no such page. */
static void write_begin(struct report *r)
{
	if (!r->has_begun)
		r->writer->begin(r);
	r->has_begun = true;
}

struct report *report_begin(FILE *out, struct report_how how, const struct report_shape *shape,
                            const struct origin *origin)
{
	struct report *r = mem_new(1, sizeof *r);
	*r = (struct report){ .out = out, .writer = how.table ? &write_table : writers[how.format], .shape = shape,
		.origin = origin, .table = how.table };
	page_begin(&r->page, how, shape->name);
	if (r->page.from == 0 && !r->page.remedy)
		write_begin(r);
	return r;
}

int report_width(FILE *out)
{
	struct winsize ws;
	return ioctl(fileno(out), TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

int report_height(FILE *out)
{
	struct winsize ws;
	return ioctl(fileno(out), TIOCGWINSZ, &ws) == 0 ? ws.ws_row : 0;
}

void report_lanes(struct report *r, int (*draw)(void *arg, int64_t number, unsigned columns, char *lane), void *arg)
{
	r->draw = draw;
	r->draw_arg = arg;
}

void report_lost_time_of(struct report *r, const struct catalog *catalog, const struct target *target)
{
	r->has_invisible_loss = catalog_lacks_host_trace(catalog, target);
}

void report_row(struct report *r, const struct value *value)
{
	if (!page_count_row(&r->page, r->shape, value))
		return;
	write_begin(r);
	r->rows++;
	r->writer->row(r, value);
}

bool report_is_full(struct report *r)
{
	const bool is_full = r->table && r->table->most && r->table->rows >= r->table->most;
	if (is_full)
		r->table->has_more = true;
	return is_full;
}

void report_member(struct report *r, const char *name, struct json_object *o)
{
	if (r->writer->member && r->has_begun)
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
	report_table_release(&r->held);
	free(r);
	return rc;
}

struct value value_machine(const struct catalog *catalog, int32_t machine)
{
	return machine < 0 ? VAL_NONE : VAL_TEXT(catalog->machine[machine].name);
}

struct value value_tid(int32_t tid)
{
	return tid < 0 ? VAL_NONE : VAL_INT(tid);
}
