/* Reader of Perfetto traces: operations of struct trace_reader. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/perfetto/bundle.h"
#include "trace/perfetto/perfetto.h"
#include "trace/perfetto/perfetto_file.h"

#define REMEDY "copy the file again after perfetto has finished"
#define WINDOW_SLACK 1000000  /* time to read beyond a window's end, ns */
#define DRIFT_MAX 5000        /* 1 / greatest drift between two machines' clocks (200 ppm) */
#define OFFSET_MAX (INT64_MAX / 4)  /* of the offset between two clocks, ns: 73 years */

/* One machine of a file. */
struct perfetto_part {
	struct perfetto_file *file;
	size_t machine;
};

static const struct perfetto_machine *machine_of(const struct trace_location *p)
{
	const struct perfetto_part *part = p->data;
	return &part->file->machine[part->machine];
}

/* Returns true if the first bytes are a packet, and its first fields are among those with which Perfetto begins one. */
static enum claim claim_file(const char *name, const unsigned char *head, size_t len)
{
	static const struct { uint8_t number, type; } known[] = {
		{ PACKET_FTRACE, WIRE_BYTES }, { PACKET_PROCESS_TREE, WIRE_BYTES }, { 3, WIRE_VARINT },
		{ PACKET_CLOCKS, WIRE_BYTES }, { PACKET_TIME, WIRE_VARINT }, { PACKET_SEQUENCE, WIRE_VARINT },
		{ PACKET_TRACK_EVENT, WIRE_BYTES }, { 12, WIRE_BYTES }, { 13, WIRE_VARINT }, { PACKET_CONFIG, WIRE_BYTES },
		{ PACKET_FTRACE_STATS, WIRE_BYTES }, { 35, WIRE_BYTES }, { 36, WIRE_BYTES }, { 41, WIRE_VARINT },
		{ PACKET_DROPPED, WIRE_VARINT }, { 43, WIRE_BYTES }, { 44, WIRE_BYTES }, { PACKET_SYSTEM, WIRE_BYTES },
		{ PACKET_DEFLATED, WIRE_BYTES }, { PACKET_TIME_CLOCK, WIRE_VARINT }, { 59, WIRE_BYTES }, { 60, WIRE_BYTES },
		{ PACKET_SERVICE, WIRE_BYTES }, { 79, WIRE_VARINT }, { PACKET_FIRST, WIRE_VARINT }, { PACKET_UUID, WIRE_BYTES },
		{ PACKET_MACHINE, WIRE_VARINT }, { PACKET_REMOTE_CLOCKS, WIRE_BYTES }, { PACKET_ZSTD, WIRE_BYTES },
	};
	struct proto_message m = proto_open(head, len);
	uint64_t key, packet, size;
	(void)name;
	if (!proto_varint(&m, &key) || key != (1 << 3 | WIRE_BYTES) || !proto_varint(&m, &packet) || packet < 2 ||
	    packet > PERFETTO_PACKET_MAX)
		return CLAIM_NONE;
	const unsigned char *begin = m.at;
	while (m.at < m.end && (uint64_t)(m.at - begin) < packet && proto_varint(&m, &key)) {
		size_t i = 0;
		while (i < sizeof known / sizeof *known && key != ((unsigned)known[i].number << 3 | known[i].type))
			i++;
		if (i == sizeof known / sizeof *known || !proto_varint(&m, &size))
			return !m.is_bad ? CLAIM_NONE : m.at == m.end ? CLAIM_FILE : CLAIM_NONE;
		if ((key & 7) != WIRE_BYTES)
			continue;
		if (size > packet - (uint64_t)(m.at - begin))
			return CLAIM_NONE;
		if (size >= (uint64_t)(m.end - m.at))
			return CLAIM_FILE;
		m.at += size;
	}
	return CLAIM_FILE;
}

/* ---- describing */

static void forget_file(struct trace_location *p)
{
	struct perfetto_part *part = p->data;
	if (part)
		perfetto_file_release(part->file);
	free(part);
	p->data = NULL;
}

/* Sets saved_names to the threads' names, as in the kernel's saved_cmdlines. */
static void set_saved_names(struct trace_location *p, const struct perfetto_machine *m)
{
	size_t at = 0;
	uint64_t tid, id;
	FILE *f = open_memstream(&p->saved_names, &p->saved_bytes);
	while (f && map_each(&m->name_by_tid, &at, &tid, &id)) {
		const char *name = strtab_get(&m->names, (uint32_t)id);
		if (!strchr(name, '\n'))
			fprintf(f, "%llu %s\n", (unsigned long long)tid, name);
	}
	if (f)
		fclose(f);
}

/* Returns the index of the next machine with events, from index i on; f->machines: none. */
static size_t next_machine(const struct perfetto_file *f, size_t i)
{
	while (i < f->machines && !f->machine[i].streams)
		i++;
	return i;
}

static void describe_machine(struct trace_location *p)
{
	const struct perfetto_part *part = p->data;
	const struct perfetto_file *f = part->file;
	const struct perfetto_machine *m = machine_of(p);
	const bool is_alone = next_machine(f, next_machine(f, 0) + 1) >= f->machines;
	p->bytes = is_alone ? f->bytes : m->bytes;
	p->has_correction = m->clock.has_host;
	if (m->counters.has_start && m->counters.has_end && m->counters.lost_at_end > m->counters.lost_at_start)
		p->lost = m->counters.lost_at_end - m->counters.lost_at_start;
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", m->name);
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "%s", *f->machine[0].service ? f->machine[0].service : "Perfetto");
	snprintf(p->meta.uuid, sizeof p->meta.uuid, "%s", f->uuid);
	set_saved_names(p, m);
}

static int describe_file(struct trace_location *p, struct error *err)
{
	struct perfetto_file *f = perfetto_file_read(p->path, err);
	if (!f)
		return -1;
	struct perfetto_part *part = p->data = mem_new(1, sizeof *part);
	part->file = f;
	part->machine = next_machine(f, 0);
	if (part->machine < f->machines) {
		describe_machine(p);
		return 0;
	}
	if (f->ends_early && f->packets < 2)
		error_set(err, STATUS_INPUT, REMEDY, "%s: no Perfetto trace: %s at byte %llu", p->path, f->damage,
		          (unsigned long long)f->damaged_at);
	else if (f->damages)
		error_set(err, STATUS_INPUT, REMEDY, "%s: a Perfetto trace without readable events: %s at byte %llu", p->path,
		          f->damage, (unsigned long long)f->damaged_at);
	else
		error_set(err, STATUS_INPUT, f->track_events ? "record with the data source linux.ftrace and its event "
		          "sched/sched_switch; if stealscope export wrote the file, open the history that it was exported from"
		          : "record with the data source linux.ftrace and its event sched/sched_switch",
		          "%s: a Perfetto trace without events of the kernel%s", p->path,
		          f->track_events ? ", only with slices" : "");
	forget_file(p);
	return -1;
}

static bool split_file(const struct trace_location *p, size_t number, struct trace_location *next, char *name, size_t size)
{
	const struct perfetto_part *part = p->data;
	struct perfetto_file *f = part->file;
	size_t i = next_machine(f, 0);
	for (; number && i < f->machines; number--)
		i = next_machine(f, i + 1);
	if (i >= f->machines)
		return false;
	snprintf(name, size, "%u", (unsigned)f->machine[i].id);
	if (next) {
		struct perfetto_part *other = next->data = mem_new(1, sizeof *other);
		*other = (struct perfetto_part){ f, i };
		f->references++;
		describe_machine(next);
	}
	return true;
}

/* ---- decoding */

static int open_file(struct source *s, struct error *err)
{
	const struct perfetto_machine *m = machine_of(s->location[0]);
	(void)err;
	for (size_t i = 0; i < m->streams; i++)
		*ARRAY_PUSH(s->stream, s->streams, s->streams_cap) =
			(struct source_stream){ .name = mem_printf("of CPU %u", m->stream[i].cpu), .bytes = m->stream[i].bytes };
	return 0;
}

struct perfetto_worker {
	const struct source *source;
	const struct perfetto_file *file;
	int fd;
	struct string_cache names;
	struct perfetto_classes *classes;
	unsigned char *buf;
	size_t cap;
};

static void set_enabled(struct source *s, const struct perfetto_classes *classes, const struct perfetto_file *f)
{
	unsigned enabled = 0;
	for (size_t i = 0; i < f->machines; i++) {
		const struct strtab *names = &f->machine[i].enabled;
		for (uint32_t k = 1; k < names->len; k++) {
			const char *name = strtab_get(names, k), *slash = strchr(name, '/');
			enabled |= event_classes_enabled(classes, slash ? slash + 1 : name);
		}
	}
	atomic_store(&s->mapping.enabled_events, enabled);
}

static void *enter_file(struct source *s, struct error *err)
{
	const struct trace_location *p = s->location[0];
	const struct perfetto_part *part = p->data;
	const int fd = open(part->file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		error_read(err, "make it readable for you", "%s", part->file->path);
		return NULL;
	}
	struct perfetto_worker *w = mem_new(1, sizeof *w);
	w->source = s;
	w->file = part->file;
	w->fd = fd;
	string_cache_init(&w->names, s->mapping.names);
	w->classes = event_classes_new(&s->mapping, &w->names);
	set_enabled(s, w->classes, w->file);
	return w;
}

/* Adds an offset to the sum, unless an impossible clock makes it too large. */
static int64_t add_offset(int64_t sum, int64_t offset)
{
	int64_t total;
	const bool is_too_large = __builtin_add_overflow(sum, offset, &total) || total > OFFSET_MAX || total < -OFFSET_MAX;
	return is_too_large ? sum : total;
}

/* Returns the offset from the clock of the events to the epoch. */
static int64_t offset_of(const struct perfetto_worker *w, const struct perfetto_machine *m)
{
	const bool is_corrected = w->source->options->as_corrected && m->clock.has_host;
	const int64_t offset = add_offset(0, m->clock.boot);
	if (!is_corrected)
		return add_offset(offset, m->clock.epoch);
	return add_offset(add_offset(offset, m->clock.host), w->file->machine[0].clock.epoch);
}

/* Reads a bundle. Returns its bytes; NULL with *why set if the file became shorter, or with *why NULL and *err set. */
static const unsigned char *read_bundle(struct perfetto_worker *w, const struct perfetto_bundle *b, const char **why,
                                        struct error *err)
{
	if (b->len > w->cap) {
		w->cap = b->len;
		w->buf = mem_resize(w->buf, w->cap, 1);
	}
	*why = NULL;
	const int fd = b->is_scratch ? w->file->scratch : w->fd;
	for (size_t len = 0; len < b->len;) {
		const ssize_t got = pread(fd, w->buf + len, b->len - len, (off_t)(b->at + len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			error_read(err, NULL, "%s", w->file->path);
			return NULL;
		}
		if (got == 0) {
			*why = "the file became shorter";
			return NULL;
		}
		len += (size_t)got;
	}
	return w->buf ? w->buf : (const unsigned char *)"";
}

/* Returns an early bound of the time when the last flush of the machine's tracer began, on its CLOCK_BOOTTIME; 0: unknown.
 * The flush was recorded on the host's clock. */
static int64_t flush_time(const struct perfetto_file *f, const struct perfetto_machine *m)
{
	const struct clock_offsets *c = &m->clock;
	int64_t at = f->flushed_at;
	if (m == &f->machine[0] || !at)
		return at;
	if (!c->has_host || c->host_error > OFFSET_MAX || c->host > OFFSET_MAX || c->host < -OFFSET_MAX)
		return 0;
	at -= c->host;
	const int64_t elapsed = at > c->host_at ? at - c->host_at : c->host_at - at;
	return at - c->host_error - elapsed / DRIFT_MAX;
}

/* Reports the recorded interval of a CPU. At the end of tracing, all buffers are read after the last flush began. */
static int add_coverage(const struct perfetto_worker *w, const struct perfetto_stream *s, const struct bundle_decoder *d)
{
	const int64_t flush = add_offset(flush_time(w->file, d->machine), d->offset - d->machine->clock.boot);
	const int64_t begin = d->begin != INT64_MIN ? d->begin : s->is_complete ? 0 : d->first;
	if (d->first == INT64_MIN)
		return 0;
	return event_sink_add_coverage(d->out, s->cpu, begin > d->first ? d->first : begin,
	                               flush > d->last ? flush : d->last);
}

static int decode_part(void *state, const struct stream_part *part, struct event_sink *out)
{
	struct perfetto_worker *w = state;
	const struct perfetto_machine *m = machine_of(w->source->location[0]);
	const struct perfetto_stream *s = &m->stream[part->stream];
	struct bundle_decoder d = { .classes = w->classes, .names = &w->names, .machine = m, .out = out,
		.sequence = s->sequence, .cpu = s->cpu, .offset = offset_of(w, m) };
	const char *why = NULL;
	uint64_t bytes = 0;
	int status = 0;
	bundle_decoder_open(&d);
	for (size_t i = 0; i < s->bundles && !status && !why; i++) {
		const struct perfetto_bundle *b = &s->bundle[i];
		if (out->window && d.last != INT64_MIN && d.last > out->window->to &&
		    d.last - out->window->to > WINDOW_SLACK)
			break;
		const unsigned char *data = read_bundle(w, b, &why, out->err);
		if (!data) {
			status = why ? 0 : -1;
			break;
		}
		status = bundle_decode(&d, data, b->len, b->follows_loss);
		bytes += b->len;
		if (!status)
			status = event_sink_report_progress(out, bytes);
	}
	if (bundle_decoder_close(&d) || status)
		return -1;
	if (why)
		return event_sink_report_damage(out, why, false);
	return add_coverage(w, s, &d);
}

static void leave_file(void *state)
{
	struct perfetto_worker *w = state;
	close(w->fd);
	event_classes_free(w->classes);
	string_cache_release(&w->names);
	free(w->buf);
	free(w);
}

/* Returns true if VM exits of an x86 host are recorded: the message of kvm_exit has only the fields of arm64. */
static bool lacks_exit_reasons(const struct perfetto_file *f, const struct perfetto_machine *m)
{
	const struct strtab *enabled = &f->machine[0].enabled;  /* the configuration is that of the tracing service */
	bool has_exits = false;
	for (uint32_t i = 1; i < enabled->len; i++) {
		const char *name = strtab_get(enabled, i);
		has_exits |= strcmp(name, "kvm/*") == 0 || strcmp(name, "kvm/kvm_exit") == 0 || strcmp(name, "kvm_exit") == 0;
	}
	return has_exits && m == &f->machine[0] && strncmp(m->architecture, "x86", 3) == 0;
}

static void add_notes(const struct source *s, const char *machine, struct notes *notes)
{
	const struct perfetto_part *part = s->location[0]->data;
	const struct perfetto_file *f = part->file;
	const struct perfetto_machine *m = machine_of(s->location[0]);
	if (f->damages)
		note_add(notes, PERFETTO_DAMAGED, machine, (unsigned long long)f->damages, f->damage,
		         (unsigned long long)f->damaged_at, (unsigned long long)f->bytes);
	if (lacks_exit_reasons(f, m))
		note_add(notes, PERFETTO_EXIT_REASONS, machine);
	if (m->clock.ftrace == FTRACE_CLOCK_LOCAL || m->clock.ftrace == FTRACE_CLOCK_UNKNOWN)
		note_add(notes, CLOCK_LOCAL, machine);
	if (m->clock.has_host && s->options->as_corrected)
		note_add(notes, CLOCK_CORRECTED, machine);
}

const struct trace_reader perfetto_reader = {
	.name = "perfetto",
	IN_CHILD("the reader of Perfetto traces crashed or hung"),
	.is_whole_machine = true,
	.remedy = REMEDY,
	.unit = "bundle",
	.claims = claim_file,
	.describe = describe_file,
	.split = split_file,
	.forget = forget_file,
	.open = open_file,
	.enter = enter_file,
	.decode = decode_part,
	.leave = leave_file,
	.add_notes = add_notes,
};
