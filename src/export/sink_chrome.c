/* Sink chrome: writes Chrome's json trace format. Times are in us since the start of the run, so that readers that use
 * floating point do not lose the ns. Each group of tracks of a machine is a process of the format. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "export/timeline.h"

static void put_text(FILE *f, const char *text)
{
	putc_unlocked('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc_unlocked('\\', f);
		putc_unlocked(*text, f);
	}
	putc_unlocked('"', f);
}

static unsigned track_pid(const struct track *t)
{
	return t->machine * 8 + (unsigned)t->group;
}

static void put_us(FILE *f, const char *key, int64_t ns)
{
	fprintf(f, ",\"%s\":%" PRId64 ".%03" PRId64, key, ns / 1000, ns % 1000);
}

/* Writes the beginning of an event, up to and including its track. */
static void put_head(FILE *f, const char *phase, const struct track *t)
{
	fprintf(f, ",\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%" PRId64, phase, track_pid(t), t->number);
}

static void chrome_begin(FILE *f, int64_t origin)
{
	fprintf(f, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"origin_ns\":\"%" PRId64 "\"},\"traceEvents\":[\n"
	        "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"stealscope\"}}", origin);
}

static void put_machine(FILE *f, uint32_t machine, const char *name)
{
	for (unsigned i = 0; i < TIMELINE_GROUP_COUNT; i++) {
		const struct track t = { machine, (enum timeline_group)i, 0 };
		put_head(f, "M", &t);
		fputs(",\"name\":\"process_name\",\"args\":{\"name\":", f);
		char *group_name = mem_printf("%s: %s", name, timeline_group_name[i]);
		put_text(f, group_name);
		free(group_name);
		fputs("}}", f);
	}
}

static void put_track(FILE *f, const struct track *t, const char *name)
{
	put_head(f, "M", t);
	fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", f);
	put_text(f, name);
	fputs("}}", f);
}

static void put_slice(FILE *f, const struct track *t, int64_t ts, int64_t dur, const char *name,
                      const struct slice_arg *arg, size_t args)
{
	const char *separator = ",\"args\":{";
	put_head(f, "X", t);
	put_us(f, "ts", ts);
	put_us(f, "dur", dur);
	fputs(",\"name\":", f);
	put_text(f, name);
	for (size_t i = 0; i < args; i++) {
		if (arg[i].cell->absent)
			continue;
		fprintf(f, "%s\"%s\":", separator, arg[i].key);
		if (arg[i].type == FIELD_TEXT)
			put_text(f, arg[i].cell->text);
		else
			fprintf(f, "%" PRId64, arg[i].cell->number);
		separator = ",";
	}
	fputs(*separator == ',' && !separator[1] ? "}}" : "}", f);
}

static void put_flow(FILE *f, const struct track *from, const struct track *to, int64_t ts, uint64_t id)
{
	const struct track *side[] = { from, to };
	for (size_t i = 0; i < 2; i++) {
		put_head(f, i ? "f" : "s", side[i]);
		put_us(f, "ts", ts);
		fprintf(f, ",\"id\":%" PRIu64 ",\"cat\":\"steal\",\"name\":\"takes the CPU\"%s}", id, i ? ",\"bp\":\"e\"" : "");
	}
}

static void put_counter(FILE *f, const struct track *t, int64_t ts, int64_t ns)
{
	put_head(f, "C", t);
	put_us(f, "ts", ts);
	fprintf(f, ",\"name\":\"lost, ms in a second, vCPU%" PRId64 "\",\"args\":{\"ms\":%" PRId64 ".%06" PRId64 "}}",
	        t->number,
	        ns / 1000000, ns % 1000000);
}

static void chrome_end(FILE *f)
{
	fputs("\n]}\n", f);
}

static const struct timeline_ops json = {
	true, chrome_begin, put_machine, put_track, put_slice, put_flow, put_counter, chrome_end,
};

static struct sink *open_chrome(const char *target, const struct sink_run *run, struct error *err)
{
	return timeline_open(&json, target, run, err);
}

const struct sink_ops sink_chrome = { TIMELINE_TABLES, open_chrome, timeline_begin, timeline_row, timeline_end,
	timeline_close };
