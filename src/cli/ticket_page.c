#include "cli/ticket_page.h"

#include "base/base64.h"
#include "base/csv.h"
#include "cli/ticket_timeline.h"

#define FIELDS_MAX 16
#define TIME_DIGITS 6

/* ---- tables from csv */

enum ticket_cell { CELL_TEXT, CELL_TIME, CELL_DURATION, CELL_SHARE, CELL_CULPRIT };

/* A cell; place: start and length of a wait that the cell links to, ns since the window's start; length 0: none. */
struct ticket_field { const char *text; enum ticket_cell kind; int64_t place, length; };

/* A column of a table, made of a column of csv. */
struct table_column { const char *field, *heading; enum ticket_cell cell; };

static const struct table_column culprit_columns[] = {
	{ "victim", "victim", CELL_TEXT }, { "culprit", "culprit", CELL_TEXT }, { "ns", "time", CELL_DURATION },
	{ "share", "share", CELL_SHARE }, { NULL, NULL, CELL_TEXT },
};
static const struct table_column gap_columns[] = {
	{ "start", "start (UTC)", CELL_TIME }, { "duration_ns", "length", CELL_DURATION },
	{ "target", "victim", CELL_TEXT },
	{ "culprit_name", "main culprit", CELL_CULPRIT }, { "state", "state", CELL_TEXT },
	{ NULL, NULL, CELL_TEXT },
};

static size_t split_line(char *line, char *field[FIELDS_MAX])
{
	size_t n = 0;
	for (char *f; n < FIELDS_MAX && (f = csv_field(&line));)
		field[n++] = f;
	return n;
}

static const char *find_field(char *const *head, char *const *field, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(head[i], name) == 0)
			return field[i];
	return "";
}

/* Returns a cell's text; the caller frees. */
static char *cell_text(char *const *head, char *const *field, size_t n, const struct table_column *c, bool with_date)
{
	char time[TIME_TEXT];
	const char *value = find_field(head, field, n, c->field);
	const char *machine = find_field(head, field, n, "culprit_machine"), *tid = find_field(head, field, n, "culprit_tid");
	switch (c->cell) {
	case CELL_TIME:
		time_date(time, strtoll(value, NULL, 10), TIME_DIGITS);
		time[strlen(time) > TIME_ZONE ? strlen(time) - TIME_ZONE : 0] = '\0';
		return mem_dup(with_date ? time : time + TIME_DATE + 1);
	case CELL_DURATION:
		return mem_dup(time_duration(time, strtoll(value, NULL, 10)));
	case CELL_SHARE:
		return mem_printf("%.1f %%", 100 * strtod(value, NULL));
	case CELL_CULPRIT:
		if (!*machine && !*value)
			return mem_dup("unknown");
		return *tid ? mem_printf("%s/%s %s", machine, tid, value) : mem_printf("%s%s%s", machine, *value ? " " : "", value);
	case CELL_TEXT:
		break;
	}
	return mem_dup(value);
}

/* Output of one table: HTML or text. */
struct table_format {
	void (*begin)(FILE *), (*row_begin)(FILE *), (*row_end)(FILE *), (*end)(FILE *);
	void (*cell)(FILE *, const struct ticket_field *, bool is_head);
};

static void write_table(FILE *out, const char *csv, const struct table_column *column, const struct ticket_page *p,
                        const struct table_format *format)
{
	char *copy = mem_dup(csv), *rest = copy, *line = strsep(&rest, "\n"), *head[FIELDS_MAX], *field[FIELDS_MAX];
	const size_t n = line ? split_line(line, head) : 0;
	format->begin(out);
	format->row_begin(out);
	for (const struct table_column *c = column; c->field; c++)
		if (p->has_victims || strcmp(c->heading, "victim") != 0)
			format->cell(out, &(struct ticket_field){ c->heading, c->cell, 0, 0 }, true);
	format->row_end(out);
	while (rest && (line = strsep(&rest, "\n"))) {
		if (!*line || split_line(line, field) != n)
			continue;
		format->row_begin(out);
		for (const struct table_column *c = column; c->field; c++) {
			if (!p->has_victims && strcmp(c->heading, "victim") == 0)
				continue;
			char *text = cell_text(head, field, n, c, strncmp(p->from, p->to, TIME_DATE) != 0);
			struct ticket_field cell = { text, c->cell, 0, 0 };
			if (c->cell == CELL_TIME && *p->timeline) {
				cell.place = strtoll(find_field(head, field, n, "start"), NULL, 10) - p->start;
				cell.length = strtoll(find_field(head, field, n, "duration_ns"), NULL, 10);
			}
			format->cell(out, &cell, false);
			free(text);
		}
		format->row_end(out);
	}
	format->end(out);
	free(copy);
}

char *ticket_page_waits_for(const char *gaps, const char *machine, const char *tid, const char *name, size_t most)
{
	static const char *const column[] = { "culprit_machine", "culprit_tid", "culprit_name" };
	const char *const wanted[] = { machine, tid, name };
	char *copy = mem_dup(gaps), *rest = copy, *line = strsep(&rest, "\n"), *head[FIELDS_MAX], *field[FIELDS_MAX];
	char *out = mem_printf("%s\n", line ? line : "");
	const size_t n = line ? split_line(line, head) : 0;
	size_t kept = 0;
	while (rest && kept < most && (line = strsep(&rest, "\n"))) {
		char *whole = mem_dup(line);
		bool matches = *line && split_line(line, field) == n;
		for (size_t i = 0; i < 3 && matches; i++)
			matches = !*wanted[i] || strcmp(find_field(head, field, n, column[i]), wanted[i]) == 0;
		char *longer = matches ? mem_printf("%s%s\n", out, whole) : NULL;
		if (longer) {
			free(out);
			out = longer;
			kept++;
		}
		free(whole);
	}
	free(copy);
	if (kept)
		return out;
	free(out);
	return mem_dup(gaps);
}

size_t ticket_page_places(const char *gaps, int64_t (*place)[2], size_t most)
{
	char *copy = mem_dup(gaps), *rest = copy, *line = strsep(&rest, "\n"), *head[FIELDS_MAX], *field[FIELDS_MAX];
	const size_t n = line ? split_line(line, head) : 0;
	size_t places = 0;
	while (rest && places < most && (line = strsep(&rest, "\n"))) {
		if (!*line || split_line(line, field) != n)
			continue;
		place[places][0] = strtoll(find_field(head, field, n, "start"), NULL, 10);
		place[places][1] = place[places][0] + strtoll(find_field(head, field, n, "duration_ns"), NULL, 10) - 1;
		places++;
	}
	free(copy);
	return places;
}

/* ---- HTML */

static void put_html(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: putc(*text, out);
		}
	}
}

static void html_table_begin(FILE *out)
{
	fputs("<div class=\"wide\"><table>\n", out);
}

static void html_row_begin(FILE *out)
{
	fputs("<tr>", out);
}

static void html_cell(FILE *out, const struct ticket_field *cell, bool is_head)
{
	const bool is_number = cell->kind == CELL_DURATION || cell->kind == CELL_SHARE;
	fprintf(out, "<t%c%s>", is_head ? 'h' : 'd', is_number ? " class=\"n\"" : "");
	if (cell->length > 0)
		fprintf(out, "<a href=\"#at=%" PRId64 "+%" PRId64 "\">", cell->place, cell->length);
	put_html(out, cell->text);
	fprintf(out, "%s</t%c>", cell->length > 0 ? "</a>" : "", is_head ? 'h' : 'd');
}

static void html_row_end(FILE *out)
{
	fputs("</tr>\n", out);
}

static void html_table_end(FILE *out)
{
	fputs("</table></div>\n", out);
}

static const struct table_format html = { html_table_begin, html_row_begin, html_row_end, html_table_end, html_cell };

static const char style[] =
	"<style>\n"
	":root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#59636e;--line:#d1d9e0;--mark:#fff5d6;"
	"--ran:#5fd75f;--stolen:#af0000;--own:#8a3a6b;--vmm:#6b6bd0;--throttled:#8a5a00;--idle:#b2b2b2;--unknown:#a8a8a8}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--soft:#9198a1;--line:#3d444d;--mark:#3a2f0b;"
	"--idle:#5a6068;--stolen:#e05252;--own:#c678a8;--throttled:#d4a017;--vmm:#8f8ff0}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:62rem;padding:1.2rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
	"background:var(--paper);overflow-wrap:anywhere}\n"
	"h1{font-size:1.45rem;line-height:1.25;margin:.2rem 0}h2{font-size:1.1rem;margin:2rem 0 .4rem}\n"
	".verdict{background:var(--mark);border-left:4px solid #d4a017;padding:.7rem 1rem;font-size:1.1rem}\n"
	".soft,figcaption{color:var(--soft);font-size:.9rem}\n"
	".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\n"
	"th,td{overflow-wrap:normal;text-align:left;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line);"
	"vertical-align:top}\n"
	"th{font-size:.85rem;color:var(--soft);font-weight:600}.n{text-align:right;white-space:nowrap}\n"
	"figure{margin:0}figure .wide svg{min-width:46rem;width:100%;height:auto;display:block}\n"
	"pre{overflow-x:auto;font-size:.8rem;line-height:1.35;border:1px solid var(--line);padding:.7rem}\n"
	"code{font-size:.9em}a{color:inherit}\n"
	"#timeline{display:none}#lanes{width:100%;display:block;touch-action:pan-y}\n"
	"@media screen{.scripted #timeline{display:block}.scripted #picture{display:none}}\n"
	"</style>\n";

static void put_lines(FILE *out, const char *text, const char *tag)
{
	char *copy = mem_dup(text), *rest = copy;
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		fprintf(out, "<%s>", tag);
		put_html(out, line);
		fprintf(out, "</%s>\n", tag);
	}
	free(copy);
}

static void put_commands(FILE *out, const struct ticket_page *p)
{
	static const char *const command[] = { "view", "explain", "flow" };
	fputs("<h2>Look further</h2>\n", out);
	if (p->history) {
		fprintf(out, "<p><a download=\"%s\" href=\"data:application/octet-stream;base64,", p->history_name);
		char *coded = base64_encode(p->history, p->history_bytes);
		fputs(coded, out);
		free(coded);
		fprintf(out, "\">%s</a> (%zu kB) holds %s%s; stealscope opens it:</p>\n", p->history_name,
		        (p->history_bytes + 999) / 1000, *p->history_part ? p->history_part : "this window",
		        *p->history_part ? " around the longest wait (<code>ticket -o DIR</code> keeps all)" : "");
	} else if (p->history_name) {
		fprintf(out, "<p><a href=\"%s\">%s</a> holds this window; stealscope opens it:</p>\n", p->history_name,
		        p->history_name);
	} else {
		fputs("<p class=\"soft\">The history of this window is too large for the page; "
		      "<code>ticket -o DIR</code> keeps it.</p>\n", out);
		return;
	}
	fputs("<pre>", out);
	for (size_t i = 0; i < (*p->target ? 3 : 2); i++) {
		fprintf(out, "stealscope %s %s", command[i], p->history_name);
		if (*p->target && i > 0)
			put_html(out, " ");
		if (i > 0)
			put_html(out, p->target);
		putc('\n', out);
	}
	fputs("</pre>\n", out);
}

void ticket_page_write_html(FILE *out, const struct ticket_page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
	      "img-src data:; script-src ", out);
	ticket_timeline_write_policy(out);
	fputs("\">\n<title>CPU time of ", out);
	put_html(out, p->subject);
	fprintf(out, "</title>\n%s</head>\n<body>\n<p class=\"soft\">stealscope ticket</p>\n"
	        "<h1>Who took the CPU time of ", style);
	put_html(out, p->subject);
	fputs("?</h1>\n<p class=\"soft\">", out);
	put_html(out, p->from);
	fputs(" to ", out);
	put_html(out, p->to);
	fputs(" UTC (", out);
	put_html(out, p->span);
	fputs(")</p>\n<p class=\"verdict\">", out);
	put_html(out, p->verdict);
	fputs("</p>\n", out);
	if (p->moment) {
		fputs("<h2>", out);
		put_html(out, p->moment_title);
		fprintf(out, "</h2>\n<figure><div class=\"wide\">\n%s</div></figure>\n", p->moment);
	}
	fputs("<figure id=\"picture\"><div class=\"wide\">\n", out);
	fputs(p->picture, out);
	fputs("</div>\n<figcaption>Times of day in UTC. The states and their colours: stealscope-states(7).</figcaption>"
	      "</figure>\n", out);
	fputs(p->timeline, out);
	put_lines(out, p->explanation, "p");
	fputs("<h2>Culprits</h2>\n", out);
	write_table(out, p->culprits, culprit_columns, p, &html);
	fprintf(out, "<h2>The longest waits%s</h2>\n", p->moment ? " for the verdict's culprit" : "");
	write_table(out, p->gaps, gap_columns, p, &html);
	fputs("<h2>How sure is this</h2>\n", out);
	put_lines(out, *p->warnings ? p->warnings : "No events were lost, and no warning applies.", "p");
	if (p->has_aliases)
		fputs("<p>Names of machines, threads and devices were replaced; equal names have equal replacements.</p>\n", out);
	put_commands(out, p);
	fputs("<h2>The recording</h2>\n<pre>", out);
	put_html(out, p->recording);
	fputs("</pre>\n</body>\n</html>\n", out);
}

/* ---- text */

static void text_nothing(FILE *out)
{
	(void)out;
}

static void text_row_begin(FILE *out)
{
	fputs("  ", out);
}

static void text_cell(FILE *out, const struct ticket_field *cell, bool is_head)
{
	static const int width[] = {
		[CELL_TEXT] = 36, [CELL_TIME] = 28, [CELL_DURATION] = 9, [CELL_SHARE] = 8, [CELL_CULPRIT] = 36,
	};
	const bool is_number = cell->kind == CELL_DURATION || cell->kind == CELL_SHARE;
	(void)is_head;
	fprintf(out, "%*s%s", is_number ? width[cell->kind] : -width[cell->kind], cell->text, is_number ? "  " : " ");
}

static void text_row_end(FILE *out)
{
	putc('\n', out);
}

static const struct table_format text = { text_nothing, text_row_begin, text_row_end, text_nothing, text_cell };

void ticket_page_write_text(FILE *out, const struct ticket_page *p)
{
	fprintf(out, "Who took the CPU time of %s?\n%s to %s UTC (%s)\n\n%s\n\n%s\n", p->subject, p->from, p->to, p->span,
	        p->verdict, p->explanation);
	if (p->moment)
		fprintf(out, "%s\n\n", p->moment_title);
	fputs("Culprits:\n", out);
	write_table(out, p->culprits, culprit_columns, p, &text);
	fprintf(out, "\nThe longest waits%s:\n", p->moment ? " for the verdict's culprit" : "");
	write_table(out, p->gaps, gap_columns, p, &text);
	fprintf(out, "\nHow sure is this:\n%s\n", *p->warnings ? p->warnings : "No events were lost, and no warning applies.");
	if (p->history_name)
		fprintf(out, "\nstealscope view %s\n", p->history_name);
}
