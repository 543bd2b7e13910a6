/* Export of the current pane as text, csv or json; the name's ending tells which.  The columns are those of the
 * commands `flow` and `steal`. */
#include "ui/app.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/save.h"
#include "base/text.h"
#include "base/timefmt.h"

void export_default_name(const struct app *app, char *buf, size_t size)
{
	char title[256] = "window", name[300];
	struct subject s = { SUBJECT_THREAD, app->flow.thread };
	if (app->pane == PANE_FLOW)
		topo_subject_text(&app->topo, &s, title, sizeof title);
	snprintf(name, sizeof name, "%s-%s", app->pane == PANE_BLAME ? "steal" : "flow", title);
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			*c = '-';
	snprintf(buf, size, "%s.txt", name);
	for (int n = 2; access(buf, F_OK) == 0 && n < 1000; n++)
		snprintf(buf, size, "%s-%d.txt", name, n);
}

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };

static bool ends_in(const char *file, const char *ending)
{
	const char *dot = strrchr(file, '.');
	return dot && strcmp(dot, ending) == 0;
}

static enum format format_of(const char *file)
{
	return ends_in(file, ".csv") ? FORMAT_CSV : ends_in(file, ".json") ? FORMAT_JSON : FORMAT_TEXT;
}

/* A cell of csv: quoted when it must be; escaped, so it holds no line end. */
static void csv_text(FILE *f, const char *raw)
{
	char text[512];
	text_escape(text, sizeof text, raw);
	bool quote = strpbrk(text, ",\"") != NULL;
	if (quote)
		putc('"', f);
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			putc('"', f);
		putc(*c, f);
	}
	if (quote)
		putc('"', f);
}

static const char *system_name(const struct app *app, int32_t system)
{
	return system >= 0 && system < (int32_t)app->topo.machines ? app->topo.machine[system].name : "";
}

static const char *name_of(char **names, size_t n, uint32_t i)
{
	return i < n && names[i] ? names[i] : "";
}

static void add_json(struct json_object *o, const char *key, const char *raw)
{
	char text[512];
	json_object_object_add(o, key, json_object_new_string(text_escape(text, sizeof text, raw)));
}

static void add_share(struct json_object *o, double share)
{
	char text[32];
	snprintf(text, sizeof text, "%.9f", share);
	json_object_object_add(o, "share", json_object_new_double_s(share, text));
}

/* Writes one array of objects, one object a line, and frees it. */
static int json_out(FILE *f, struct json_object *list)
{
	int n = fprintf(f, "%s\n", json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY |
	                                                          JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(list);
	return n < 0 ? -1 : 0;
}

static void flow_csv(const struct app *app, FILE *f)
{
	const struct flow *flow = &app->flow.flow;
	fputs("system,tid,name,kind,duration_ns,share\n", f);
	for (size_t i = 0; i < flow->entries; i++) {
		const struct flow_entry *e = &flow->entry[i];
		csv_text(f, system_name(app, e->system));
		if (e->tid >= 0)
			fprintf(f, ",%" PRId32 ",", e->tid);
		else
			fputs(",,", f);
		csv_text(f, name_of(flow->name, flow->names, e->name));
		fprintf(f, ",%s,%" PRId64 ",%.9f\n", flow_kind_name[e->kind], e->duration, e->share);
	}
}

static int flow_json(const struct app *app, FILE *f)
{
	const struct flow *flow = &app->flow.flow;
	struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < flow->entries; i++) {
		const struct flow_entry *e = &flow->entry[i];
		struct json_object *o = json_object_new_object();
		add_json(o, "system", system_name(app, e->system));
		json_object_object_add(o, "tid", e->tid >= 0 ? json_object_new_int(e->tid) : NULL);
		add_json(o, "name", name_of(flow->name, flow->names, e->name));
		add_json(o, "kind", flow_kind_name[e->kind]);
		json_object_object_add(o, "duration_ns", json_object_new_int64(e->duration));
		add_share(o, e->share);
		json_object_array_add(list, o);
	}
	return json_out(f, list);
}

static int flow_text(const struct app *app, FILE *f, struct error *err)
{
	struct subject s = { SUBJECT_THREAD, app->flow.thread };
	char name[512];
	size_t lines = 0;
	char **line = app->evidence ? app->evidence(&app->topo, &s, &lines) : NULL;
	if (lines) {  /* a clock was moved: not of the file that this made, which goes with the viewer */
		free(line[0]);
		line[0] = mem_printf("history  %s", text_escape(name, sizeof name, history_file(app->first)));
	}
	const struct flow_text options = { .intervals = app->flow.flow.intervals <= 100000,
		.header = (const char *const *)line, .headers = lines };
	int rc = flow_write_text(&app->topo, &app->flow.flow, &s, &options, f, err);
	for (size_t i = 0; i < lines; i++)
		free(line[i]);
	free(line);
	return rc;
}

static void party(const struct app *app, const struct steal_party *p, char *buf, size_t size)
{
	const struct steal *s = &app->blame.steal;
	flow_party_text(&app->topo, p->system, p->tid, p->name < s->names ? s->name[p->name] : NULL,
	                (enum flow_kind)p->kind, buf, size);
}

/* Of the names, so that a line fits 80. */
#define VICTIM_CELLS 27
#define THIEF_CELLS 35

/* A text and the spaces up to the next column; cut when it is too long. */
static void put_cell(FILE *f, char *text, int cells)
{
	text[text_fit(text, cells - 1)] = '\0';
	fprintf(f, "%s%*s", text, cells - text_width(text), "");
}

static int steal_out(const struct app *app, FILE *f, enum format format)
{
	const struct steal *s = &app->blame.steal;
	struct json_object *list = json_object_new_array();
	if (format == FORMAT_CSV)
		fputs("victim,thief,ns,share\n", f);
	else if (format == FORMAT_TEXT)
		fprintf(f, "%-*s%-*s%8s %8s\n", VICTIM_CELLS, "victim", THIEF_CELLS, "thief", "time", "share");
	for (size_t i = 0; i < s->cells; i++) {
		char victim[256], thief[256], d[TIME_TEXT];
		party(app, &s->cell[i].victim, victim, sizeof victim);
		party(app, &s->cell[i].thief, thief, sizeof thief);
		if (format == FORMAT_CSV) {
			csv_text(f, victim);
			putc(',', f);
			csv_text(f, thief);
			fprintf(f, ",%" PRId64 ",%.9f\n", s->cell[i].ns, s->cell[i].share);
		} else if (format == FORMAT_TEXT) {
			put_cell(f, victim, VICTIM_CELLS);
			put_cell(f, thief, THIEF_CELLS);
			fprintf(f, "%8s %7.2f%%\n", time_duration(d, s->cell[i].ns), 100 * s->cell[i].share);
		} else {
			struct json_object *o = json_object_new_object();
			add_json(o, "victim", victim);
			add_json(o, "thief", thief);
			json_object_object_add(o, "ns", json_object_new_int64(s->cell[i].ns));
			add_share(o, s->cell[i].share);
			json_object_array_add(list, o);
		}
	}
	if (format == FORMAT_JSON)
		return json_out(f, list);
	json_object_put(list);
	return 0;
}

static int write_pane(struct app *app, FILE *f, enum format format, struct error *err)
{
	if (app->pane == PANE_BLAME)
		return steal_out(app, f, format);
	if (format == FORMAT_CSV)
		return flow_csv(app, f), 0;
	return format == FORMAT_JSON ? flow_json(app, f) : flow_text(app, f, err);
}

static int write_file(struct app *app, const char *file, struct error *err)
{
	struct save save;
	if (save_begin(&save, file, err) < 0)
		return -1;
	int status = write_pane(app, save.f, format_of(file), err);
	if (status < 0 && !err->text[0])
		error_system(err, NULL, "%s", file);
	return save_end(&save, status, err);
}

void export_pane(struct app *app, const char *file)
{
	struct error err = ERROR_INIT;
	char name[PROMPT_LONGEST], shown[PROMPT_LONGEST];
	snprintf(name, sizeof name, "%s", file);
	size_t n = strlen(name);
	bool force = n > 1 && name[n - 1] == '!';
	if (force)
		name[n - 1] = '\0';
	text_escape(shown, sizeof shown, name);
	flow_pane_refresh(app);
	blame_refresh(app);
	if (app->pane == PANE_FLOW ? app->flow.asked : app->blame.asked)
		app_say(app, "it is still being read: write it when it is there");
	else if (app->pane == PANE_FLOW ? !app->flow.valid : !app->blame.valid)
		app_say(app, "there is nothing to write here");
	else if (!force && access(name, F_OK) == 0)
		app_say(app, "%.200s exists: write \"%.200s!\" to replace it", shown, shown);
	else if (write_file(app, name, &err) < 0)
		app_fail(app, &err);
	else
		app_say(app, "wrote %.300s%s", shown, format_of(name) == FORMAT_TEXT && !ends_in(name, ".txt") ? " as text" : "");
}
