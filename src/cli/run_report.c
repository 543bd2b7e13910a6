#include "cli/run_report.h"

#include "base/base.h"
#include "report/report.h"

#define DISTURBED 0.01     /* share of the wanted time that others took, from which on a run counts as disturbed */
#define NAMED 3            /* culprits in the line */
#define NAMED_SHARE 0.002

static bool is_disturbed(const struct run_tally *t)
{
	return run_share(t, t->others + t->throttled) >= DISTURBED || t->host >= DISTURBED;
}

/* Writes "disturbed: 12.1 % lost to others (cc1 9.0, dpkg 2.1), 0.0 % throttled, ...". */
static void write_line(const struct run_result *r, char *buf, size_t size)
{
	const struct run_tally *t = &r->tally;
	char text[TIME_TEXT];
	const char *verdict = is_disturbed(t) ? "disturbed" : t->seen < 0.5 ? "not known" : "undisturbed";
	size_t n = (size_t)snprintf(buf, size, "%s: ", verdict);
	n += (size_t)snprintf(buf + n, size - n, "%.1f %% stolen by the host, %s%.1f %% lost to others", 100 * t->host,
	                      t->seen < 0.995 ? "at least " : "", 100 * run_share(t, t->others));
	for (size_t i = 0; i < t->culprits && i < NAMED && run_share(t, t->culprit[i].ns) >= NAMED_SHARE && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s %.1f", i ? ", " : " (", t->culprit[i].name,
		                      100 * run_share(t, t->culprit[i].ns));
	if (t->culprits && run_share(t, t->culprit[0].ns) >= NAMED_SHARE && n < size)
		n += (size_t)snprintf(buf + n, size - n, ")");
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, ", %.1f %% throttled", 100 * run_share(t, t->throttled));
	if (t->longest > 0 && n < size)
		n += (size_t)snprintf(buf + n, size - n, "; longest %s%s", t->longest_culprit[0] ? "" : "at most ",
		                      time_duration(text, t->longest));
	if (t->longest > 0 && n < size)
		n += (size_t)snprintf(buf + n, size - n, " at %s", time_clock(text, t->longest_at, 0));
	if (t->longest_culprit[0] && n < size)
		n += (size_t)snprintf(buf + n, size - n, " (%s)", t->longest_culprit);
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, "; ran %s", time_duration(text, t->ran));
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, " in %s", time_duration(text, t->ended - t->began));
	if (t->seen < 0.995 && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", waits seen of %.0f %% of it", 100 * t->seen);
	if (t->seen < 0.995 && strcmp(t->source, "bpf") != 0 && n < size)
		snprintf(buf + n, size - n, " (root sees all, and names)");
	else if (r->limits && n < size)
		snprintf(buf + n, size - n, " (root sees names)");
}

/* ---- table */

static const struct column columns[] = {
	{ "command", "command", COL_TEXT },
	{ "status", "status", COL_INT },
	{ "source", "source", COL_UNCUT },
	{ "disturbed", "disturbed", COL_UNCUT },
	{ "wall_ns", "wall", COL_DURATION },
	{ "ran_ns", "ran", COL_DURATION },
	{ "lost_ns", "lost", COL_DURATION },           /* to others, and throttled */
	{ "others_ns", NULL, COL_DURATION },
	{ "throttled_ns", NULL, COL_DURATION },
	{ "own_ns", NULL, COL_DURATION },
	{ "unknown_ns", NULL, COL_DURATION },
	{ "host_share", NULL, COL_REAL },
	{ "seen_share", NULL, COL_REAL },
	{ "longest_ns", "longest", COL_DURATION },
	{ "longest_at", NULL, COL_INT },
	{ "longest_culprit", NULL, COL_TEXT },
	{ "culprit", "culprit", COL_TEXT },
	{ "culprit_ns", "of that", COL_DURATION },
	{ "cost_share", NULL, COL_REAL },
};

static int write_table(const struct run_result *r, FILE *out, int format, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("run", columns);
	const struct run_tally *t = &r->tally;
	struct report *report = report_begin(out, REPORT_WHOLE(format), &shape, NULL);
	const bool has_longest = t->longest > 0;
	report_row(report, (const struct value[]){
		VAL_TEXT(r->command), VAL_INT(r->status), VAL_SHOWN(t->source), VAL_SHOWN(is_disturbed(t) ? "yes" : "no"),
		VAL_INT(t->ended - t->began), VAL_INT(t->ran), VAL_INT(t->others + t->throttled), VAL_INT(t->others),
		VAL_INT(t->throttled), VAL_INT(t->own), VAL_INT(t->unknown), VAL_REAL(t->host), VAL_REAL(t->seen),
		VAL_INT(t->longest),
		has_longest ? VAL_INT(t->longest_at) : VAL_NONE,
		t->longest_culprit[0] ? VAL_SHOWN(t->longest_culprit) : VAL_NONE,
		t->culprits ? VAL_SHOWN(t->culprit[0].name) : VAL_NONE, t->culprits ? VAL_INT(t->culprit[0].ns) : VAL_NONE,
		VAL_REAL(t->cost) });
	return report_end(report, err);
}

/* ---- CI */

static void write_xml(FILE *f, const char *text)
{
	for (; *text; text++) {
		const char *escape = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" :
		                     *text == '"' ? "&quot;" : NULL;
		if (escape)
			fputs(escape, f);
		else
			fputc(*text, f);
	}
}

static void write_property(FILE *f, const char *name, double value)
{
	fprintf(f, "      <property name=\"stealscope.%s\" value=\"%.6g\"/>\n", name, value);
}

static void write_junit(const struct run_result *r, FILE *f, const char *command, const char *line)
{
	const struct run_tally *t = &r->tally;
	const bool failed = r->failed;
	fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	fprintf(f, "<testsuite name=\"stealscope run\" tests=\"1\" failures=\"%d\">\n", failed);
	fprintf(f, "  <testcase classname=\"stealscope\" name=\"");
	write_xml(f, command);
	fprintf(f, "\" time=\"%.3f\">\n    <properties>\n", (double)(t->ended - t->began) / 1e9);
	write_property(f, "lost_percent", 100 * run_share(t, t->others + t->throttled));
	write_property(f, "throttled_percent", 100 * run_share(t, t->throttled));
	write_property(f, "host_percent", 100 * t->host);
	write_property(f, "longest_ms", (double)t->longest / 1e6);
	write_property(f, "exit_status", r->status);
	fputs("    </properties>\n", f);
	if (failed) {
		fputs("    <failure message=\"", f);
		write_xml(f, line);
		fputs("\"/>\n", f);
	}
	fputs("    <system-err>", f);
	write_xml(f, line);
	fputs("</system-err>\n  </testcase>\n</testsuite>\n", f);
}

/* A workflow command ends at a line break; '%' begins an escape there. */
static void write_github(const struct run_result *r, FILE *f, const char *command, const char *line)
{
	const char *summary = getenv("GITHUB_STEP_SUMMARY");
	fprintf(f, "::%s title=stealscope run::", r->failed ? "error" : is_disturbed(&r->tally) ? "warning" : "notice");
	for (const char *at = line; *at; at++)
		fputs(*at == '%' ? "%25" : (char[2]){ *at, '\0' }, f);
	fputc('\n', f);
	FILE *page = summary && *summary ? fopen(summary, "a") : NULL;
	if (page) {
		fprintf(page, "`%s`: %s\n", command, line);
		fclose(page);
	}
}

int run_report(const struct run_result *r, enum run_format format, const char *file, struct error *err)
{
	char line[1024], command[256];
	text_escape(command, sizeof command, r->command);
	write_line(r, line, sizeof line);
	fprintf(stderr, "stealscope: %s\n", line);
	FILE *f = format == RUN_TEXT ? NULL : file ? fopen(file, "w") : stdout;
	if (format == RUN_TEXT)
		return 0;
	if (!f)
		return error_system(err, NULL, "%s", file);
	int rc = 0;
	switch (format) {
	case RUN_TEXT: break;
	case RUN_CSV: case RUN_JSON: rc = write_table(r, f, format == RUN_CSV ? FORMAT_CSV : FORMAT_JSON, err); break;
	case RUN_JUNIT: write_junit(r, f, command, line); break;
	case RUN_GITHUB: write_github(r, f, command, line); break;
	}
	if (file && fclose(f) && rc == 0)
		rc = error_system(err, NULL, "%s", file);
	return rc;
}
