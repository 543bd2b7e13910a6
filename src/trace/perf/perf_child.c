/* Reader of perf files, part in the child process: decodes the records with libtraceevent and passes the events to the
 * sink. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/isolation/decoder_process.h"
#include "trace/pages/ring_records.h"
#include "trace/perf/perf_queue.h"
#include "trace/perf/perf_sample.h"
#include "trace/tracecmd/dat_descriptions.h"

#define LONG_SIZE_MAX 8
#define TIME_SLACK UINT64_C(1000000000)  /* distance from the first and the last sample at which times are damage, ns */
#define DAMAGES_MAX 100           /* damaged part count after which the rest is skipped */
#define PROGRESS_RECORDS 1024     /* records between two reports of progress */

struct opened_perf {
	const struct perf_file *file;
	const struct clock_scale *scale;  /* conversion to real time; rate 0: none */
	struct ring ring;
	struct tep_counters counters;     /* of the current sample */
	bool has_forks, has_exits, has_renames;  /* the tracepoints were recorded, so records of perf are not needed */
};

enum claim perf_claims(const char *name, const unsigned char *head, size_t len)
{
	(void)name;
	return len >= 8 && (memcmp(head, "PERFILE2", 8) == 0 || memcmp(head, "2ELIFREP", 8) == 0) ? CLAIM_FILE : CLAIM_NONE;
}

/* ---- formats */

static void on_header_page(void *arg, const char *text, size_t n)
{
	const struct opened_perf *o = arg;
	tep_parse_header_page(o->ring.tep, (char *)(uintptr_t)text, n, LONG_SIZE_MAX);
}

static void on_format(void *arg, const char *system, const char *text, size_t n)
{
	const struct opened_perf *o = arg;
	tep_parse_event(o->ring.tep, text, n, system);
}

/* Reads the formats, which are preceded by their version, as in files of trace-cmd. */
static int read_formats(struct opened_perf *o, struct error *err)
{
	const struct dat_descriptions to = { on_header_page, on_format, NULL, o };
	const struct perf_file *f = o->file;
	char version[8];
	unsigned char big_endian = 0, long_size = 0;
	int why = 0;
	const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_read(err, "make it readable for you", "%s", f->path);
	struct dat_position w = { .fd = fd, .at = f->formats_at, .size = f->formats_end, .why = &why };
	dat_skip_bytes(&w, 10);  /* magic */
	dat_get_text(&w, version, sizeof version);
	dat_read_bytes(&w, &big_endian, 1);
	dat_read_bytes(&w, &long_size, 1);
	w.swap = (big_endian != 0) != (BYTE_ORDER == BIG_ENDIAN);
	dat_skip_bytes(&w, 4);  /* page size */
	tep_set_file_bigendian(o->ring.tep, big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(o->ring.tep, long_size);
	dat_read_descriptions(&to, &w);
	close(fd);
	errno = why;
	if (why)
		return error_system(err, NULL, "%s", f->path);
	return !w.is_bad ? 0 : error_set(err, STATUS_INPUT, perf_reader.remedy,
	                                 "%s: the formats of its tracepoints are truncated or damaged", f->path);
}

/* Returns true if this tracepoint was recorded. */
static bool is_recorded(const struct opened_perf *o, const char *system, const char *name)
{
	const struct tep_event *e = tep_find_event_by_name(o->ring.tep, system, name);
	for (size_t i = 0; e && i < o->file->attrs; i++)
		if (o->file->attr[i].type == PERF_TRACEPOINT && o->file->attr[i].config == (uint64_t)e->id)
			return true;
	return false;
}

void *perf_enter(struct source *s, struct error *err)
{
	struct opened_perf *o = mem_new(1, sizeof *o);
	o->file = s->location[0]->data;
	o->scale = &s->location[0]->scale;
	o->ring.tep = tep_alloc();
	if (!o->ring.tep) {
		errno = ENOMEM;
		error_system(err, NULL, "%s", o->file->path);
		return NULL;
	}
	tep_set_loglevel(TEP_LOG_NONE);
	if (read_formats(o, err))
		return NULL;
	const struct trace_location *p = s->location[0];
	char *names = mem_printf("%.*s", (int)p->saved_bytes, p->saved_names ? p->saved_names : "");
	ring_read_lines(&o->ring, true, names);
	free(names);
	ring_init(&o->ring, o->ring.tep, &s->mapping);
	for (size_t i = 0; i < o->file->attrs; i++)
		if (o->file->attr[i].sample_type & SAMPLE_READ)
			tep_binder_set_counters(o->ring.binder, &o->counters);
	o->has_forks = is_recorded(o, "sched", "sched_process_fork");
	o->has_exits = is_recorded(o, "sched", "sched_process_exit");
	o->has_renames = is_recorded(o, "task", "task_rename");
	if (!o->has_forks)
		atomic_fetch_or(&s->mapping.enabled_events, ENABLED_FORKS);
	return o;
}

/* ---- events */

/* Progress in the records. */
struct perf_progress {
	struct opened_perf *opened;
	struct event_sink *out;
	struct perf_queue queue;
	struct map process;      /* TID -> process of threads that were created while recording */
	unsigned damages;
	bool has_namespace;      /* perf ran in a pid namespace: its TIDs are not those of the tracepoints */
};

/* Converts a time of the file to ns; -1: impossible. */
static int64_t event_time(const struct opened_perf *o, uint64_t time)
{
	if (time > INT64_MAX / 2)
		return -1;
	return o->scale->millihertz ? clock_scale_ns(o->scale, time) : (int64_t)time;
}

static bool is_known_cpu(const struct opened_perf *o, uint32_t cpu)
{
	return cpu < (o->file->cpus && o->file->cpus < IPC_MAX_STREAMS ? o->file->cpus : IPC_MAX_STREAMS);
}

/* Reports damage. The state of all CPUs is unknown until their next events. continues: there are further records. */
static int report_damage_before(struct perf_progress *p, const char *why, bool continues)
{
	perf_queue_lose_all(&p->queue);
	if (p->damages++ >= DAMAGES_MAX)
		return 0;
	if (!p->queue.streams && event_sink_select_stream(p->out, p->queue.streams++, 0))
		return -1;
	return event_sink_report_damage(p->out, why, continues && p->damages < DAMAGES_MAX);
}

static int report_damage(struct perf_progress *p, const char *why)
{
	return report_damage_before(p, why, true);
}

/* Sets the fields of the current thread that the tracepoint does not contain. */
static void set_context(struct perf_progress *p, const struct perf_sample *s, struct event *ev)
{
	struct opened_perf *o = p->opened;
	struct perf_cpu *c = perf_queue_cpu(&p->queue, ev->cpu);
	p->has_namespace |= perf_sample_has_namespace(o->file, s);
	ev->pid = ev->tid == s->tid && !p->has_namespace ? s->pid : -1;
	ring_name_thread(&o->ring, ev, &c->has_switch);
	if (ev->kind == EV_FORK && ev->fork.child_pid == EVENT_ABSENT) {
		const uint64_t *process = map_find(&p->process, (uint64_t)ev->fork.child_tid);
		if (process && !p->has_namespace)
			ev->fork.child_pid = (int64_t)*process;
	}
}

static bool is_damaged_time(const struct opened_perf *o, const struct perf_sample *s)
{
	const struct perf_file *f = o->file;
	return f->first && f->last >= f->first && (s->time + TIME_SLACK < f->first || s->time > f->last + TIME_SLACK);
}

static int put_sample(struct perf_progress *p, const struct perf_record *record)
{
	struct opened_perf *o = p->opened;
	struct perf_sample s;
	struct event ev = { .kind = EV_OTHER, .tid = -1, .pid = -1 };
	if (!perf_sample_parse(o->file, record, &s))
		return report_damage(p, "a sample cannot be parsed");
	if (!(s.attr->sample_type & SAMPLE_TIME) || !(s.attr->sample_type & SAMPLE_CPU))
		return 0;
	/* A sample between sched_switch and the switch itself has the thread that leaves: only to be listed. */
	if (s.attr->type != PERF_TRACEPOINT && !p->out->window)
		return 0;
	const int64_t ts = event_time(o, s.time);
	if (ts < 0 || is_damaged_time(o, &s))
		return report_damage(p, "impossible time stamp");
	if (!is_known_cpu(o, s.cpu))
		return report_damage(p, "impossible number of a CPU");
	ev.cpu = (uint16_t)s.cpu;
	ev.ts = ts;
	ev.tid = s.tid;
	if (p->out->window && ts < p->out->window->from) {
		ev.kind = EV_OTHER;  /* the sink drops it */
	} else if (s.attr->type == PERF_TRACEPOINT) {
		struct tep_record raw = { .ts = s.time, .size = (int)s.raw_size, .record_size = (int)s.raw_size,
			.data = (void *)(uintptr_t)s.raw, .cpu = (int)s.cpu };
		o->counters = (struct tep_counters){ s.instructions, s.cycles };
		if (!s.raw || !tep_binder_event(o->ring.binder, &raw, &ev))
			return report_damage(p, "a sample without the fields of its tracepoint");
		struct event counters;
		if (tep_binder_counters(o->ring.binder, &raw, &ev, &counters) && perf_queue_put(&p->queue, &counters))
			return -1;
	} else if (p->out->window && *s.attr->name) {
		ev.kind = EV_NAMED;
		ev.named.name = string_cache_put(&o->ring.cache, s.attr->name, strlen(s.attr->name));
	}
	set_context(p, &s, &ev);
	return perf_queue_put(&p->queue, &ev);
}

/* ---- other records */

static struct event make_event(enum event_kind kind, int64_t ts, uint32_t cpu)
{
	struct event ev = { .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = -1, .pid = -1 };
	for (size_t i = 0; i < EVENT_ARGS; i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

static int put_comm(struct perf_progress *p, struct perf_position body, int64_t ts, uint32_t cpu)
{
	struct event ev = make_event(EV_RENAME, ts, cpu);
	perf_get32(&body);
	ev.rename.tid = perf_get32(&body);
	if (body.is_bad || p->opened->has_renames)
		return 0;
	ev.rename.comm = string_cache_put(&p->opened->ring.cache, (const char *)body.at, (size_t)(body.end - body.at));
	return perf_queue_put_sideband(&p->queue, &ev);
}

static int put_fork(struct perf_progress *p, struct perf_position body, int64_t ts, uint32_t cpu)
{
	struct event ev = make_event(EV_FORK, ts, cpu);
	ev.fork.child_pid = perf_get32(&body);
	perf_get32(&body);
	ev.fork.child_tid = perf_get32(&body);
	ev.fork.parent_tid = perf_get32(&body);
	if (body.is_bad)
		return 0;
	*map_put(&p->process, (uint64_t)ev.fork.child_tid, NULL) = (uint64_t)ev.fork.child_pid;
	return p->opened->has_forks ? 0 : perf_queue_put_sideband(&p->queue, &ev);
}

static int put_exit(struct perf_progress *p, struct perf_position body, int64_t ts, uint32_t cpu)
{
	struct event ev = make_event(EV_EXIT, ts, cpu);
	perf_get64(&body);
	ev.exit.tid = perf_get32(&body);
	map_remove(&p->process, (uint64_t)ev.exit.tid);
	return body.is_bad || p->opened->has_exits ? 0 : perf_queue_put_sideband(&p->queue, &ev);
}

/* Adds a record LOST, which perf's kernel part writes at the loss's place. */
static void add_lost(struct perf_progress *p, struct perf_position body, const struct perf_sample *end, int64_t ts)
{
	perf_get64(&body);
	const uint64_t n = perf_get64(&body);
	if (body.is_bad || !is_known_cpu(p->opened, end->cpu)) {
		perf_queue_lose_all(&p->queue);
		return;
	}
	perf_queue_cpu(&p->queue, (uint16_t)end->cpu)->lost_counted += n;
	perf_queue_lose(&p->queue, (uint16_t)end->cpu, ts < 0 ? INT64_MIN : ts, n > INT64_MAX ? EVENT_ABSENT : (int64_t)n);
}

/* Adds a record LOST_SAMPLES without a time, which perf writes at the end: the number of all lost events of an id. */
static void add_lost_total(struct perf_progress *p, struct perf_position body, const struct perf_sample *end)
{
	const uint64_t *cpu = map_find(&p->opened->file->cpu_by_id, end->id), n = perf_get64(&body);
	if (cpu && !body.is_bad && !end->time && *cpu < UINT32_MAX && is_known_cpu(p->opened, (uint32_t)*cpu))
		perf_queue_cpu(&p->queue, (uint16_t)*cpu)->lost_total += n;
}

static int put_other(struct perf_progress *p, const struct perf_record *rec)
{
	const struct opened_perf *o = p->opened;
	struct perf_sample end;
	size_t size;
	if (rec->type == RECORD_FINISHED_ROUND)
		return perf_queue_end_round(&p->queue);
	const bool has_trailer = perf_trailer_parse(o->file, rec, &end, &size);
	struct perf_position body = perf_position_of(rec, o->file->big_endian);
	if (!has_trailer) {
		if (rec->type == RECORD_LOST)
			perf_queue_lose_all(&p->queue);
		return 0;
	}
	body.end = rec->body + size;
	const int64_t ts = event_time(o, end.time);
	if (rec->type == RECORD_LOST)
		add_lost(p, body, &end, ts);
	if (rec->type == RECORD_LOST_SAMPLES)
		add_lost_total(p, body, &end);
	/* Records without a time were written by perf for threads that existed at the start. */
	if (!end.time || ts < 0 || !is_known_cpu(o, end.cpu) || p->has_namespace)
		return 0;
	switch (rec->type) {
	case RECORD_COMM: return put_comm(p, body, ts, end.cpu);
	case RECORD_FORK: return put_fork(p, body, ts, end.cpu);
	case RECORD_EXIT: return put_exit(p, body, ts, end.cpu);
	default: return 0;
	}
}

/* ---- the file */

/* Returns true if all later events are later than the window. */
static bool is_past_window(const struct perf_progress *p)
{
	return p->out->window && p->queue.limit != INT64_MIN && p->queue.limit > p->out->window->to;
}

/* Decodes the records in [from, to) of a file. before: number of bytes of the files before it. */
static int decode_file(struct perf_progress *p, int fd, const char *path, uint64_t from, uint64_t to, uint64_t before)
{
	struct perf_records r;
	struct perf_record rec;
	int status = 0, got = 0;
	unsigned n = 0;
	perf_records_open(&r, p->opened->file, fd, from, to);
	while (!status && p->damages < DAMAGES_MAX && !is_past_window(p) && (got = perf_records_next(&r, &rec)) > 0) {
		if (r.damage)
			status = report_damage(p, r.damage);
		r.damage = NULL;
		if (!status)
			status = rec.type == RECORD_SAMPLE ? put_sample(p, &rec) : put_other(p, &rec);
		if (!status && ++n % PROGRESS_RECORDS == 0)
			status = event_sink_report_progress(p->out, before + r.at);
	}
	if (!status && got < 0)
		status = error_system(p->out->err, NULL, "%s", path);
	if (!status && r.damage)
		status = report_damage_before(p, r.damage, false);
	perf_records_close(&r);
	return status;
}

/* Decodes the files data.0, data.1, ... that perf record --threads writes beside the file. */
static int decode_more_files(struct perf_progress *p)
{
	const struct perf_file *f = p->opened->file;
	uint64_t before = f->data_end;
	int status = 0;
	for (unsigned i = 0; !status; i++) {
		char *path = mem_printf("%s.%u", f->path, i);
		const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		struct stat st;
		const bool is_end = fd < 0 && errno == ENOENT;
		if (fd < 0 && !is_end)
			status = error_read(p->out->err, "make it readable for you", "%s", path);
		else if (fd >= 0 && fstat(fd, &st))
			status = error_system(p->out->err, NULL, "%s", path);
		else if (!is_end)
			status = decode_file(p, fd, path, 0, (uint64_t)st.st_size, before);
		if (fd >= 0)
			close(fd);
		before += fd >= 0 && !status ? (uint64_t)st.st_size : 0;
		free(path);
		if (is_end)
			break;
	}
	return status;
}

int perf_decode(void *state, const struct stream_part *s, struct event_sink *out)
{
	struct perf_progress p = { .opened = state, .out = out };
	const struct perf_file *f = p.opened->file;
	(void)s;
	const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_read(out->err, "make it readable for you", "%s", f->path);
	perf_queue_open(&p.queue, out);
	int status = decode_file(&p, fd, f->path, f->data_at, f->data_end, 0);
	close(fd);
	if (!status && f->is_dir)
		status = decode_more_files(&p);
	if (status)
		perf_queue_release(&p.queue);
	else
		status = perf_queue_close(&p.queue);
	map_release(&p.process);
	return status;
}
