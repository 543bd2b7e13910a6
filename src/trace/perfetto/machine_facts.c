/* Facts about a machine from packets without events: clocks, processes, configuration, counters. */
#include "base/base.h"
#include "trace/perfetto/perfetto_file.h"
#include "base/proto.h"

#define THREADS_MAX 4000000      /* threads with a name or process */
#define NAMES_BYTES_MAX (64U << 20)
#define ENABLED_MAX 10000        /* events in a configuration */
#define COMM_LENGTH_MAX 15       /* length of a thread's name in the kernel */

/* Copies a text field that may contain any bytes; to is terminated. */
static void copy_text(char *to, size_t size, const struct proto_field *f)
{
	const size_t n = f->len < size - 1 ? f->len : size - 1;
	if (n)
		memcpy(to, f->data, n);
	to[n] = '\0';
}

/* ---- clocks */

struct clock_times { uint64_t realtime, boottime; };  /* ns; 0: not in the snapshot */

static struct clock_times read_snapshot(const struct proto_field *snapshot)
{
	struct clock_times times = { 0 };
	struct proto_message m = proto_nested(snapshot);
	struct proto_field clock, f;
	while (proto_next(&m, &clock)) {
		uint64_t id = 0, ns = 0;
		struct proto_message c = proto_nested(&clock);
		while (clock.number == 1 && proto_next(&c, &f)) {
			id = f.number == 1 && f.type == WIRE_VARINT ? f.value : id;
			ns = f.number == 2 && f.type == WIRE_VARINT ? f.value : ns;
		}
		if (ns > INT64_MAX)
			continue;
		if (id == CLOCK_ID_REALTIME)
			times.realtime = ns;
		if (id == CLOCK_ID_BOOTTIME)
			times.boottime = ns;
	}
	return times;
}

/* The first snapshot counts: one constant offset keeps all durations exact. */
static void add_epoch(struct perfetto_machine *m, const struct clock_times *t)
{
	if (m->clock.has_epoch || !t->realtime || !t->boottime)
		return;
	m->clock.has_epoch = true;
	m->clock.epoch = (int64_t)t->realtime - (int64_t)t->boottime;
}

void perfetto_add_clocks(struct perfetto_machine *m, const struct proto_field *snapshot)
{
	const struct clock_times times = read_snapshot(snapshot);
	add_epoch(m, &times);
}

/* A round of synchronization has two pairs of snapshots, in the order client, host, client, host. The request takes the
 * time from a client's snapshot to the host's, the answer from the host's to the client's, so the mean of two
 * differences halves the error of different durations. */
void perfetto_add_remote_clocks(struct perfetto_machine *m, const struct proto_field *sync)
{
	struct proto_message all = proto_nested(sync);
	struct proto_field pair, f;
	struct clock_times host[2], client[2];
	size_t n = 0;
	while (n < 2 && proto_next(&all, &pair)) {
		struct proto_message p = proto_nested(&pair);
		host[n] = client[n] = (struct clock_times){ 0 };
		while (pair.number == 1 && proto_next(&p, &f)) {
			if (f.number == 2)
				client[n] = read_snapshot(&f);
			if (f.number == 3)
				host[n] = read_snapshot(&f);
		}
		if (client[n].boottime && host[n].boottime)
			n++;
	}
	if (!n)
		return;
	add_epoch(m, &client[0]);
	const int64_t before = (int64_t)client[0].boottime, after = (int64_t)client[n - 1].boottime;
	m->clock.has_host = true;
	m->clock.host_at = before;
	m->clock.host_error = n == 2 && after >= before ? (after - before) / 2 + 1 : INT64_MAX;
	m->clock.host = (int64_t)host[0].boottime - before - (after - before) / 2;  /* host[0] lies between both */
}

/* ---- threads */

static bool is_tid(uint64_t n)
{
	return n > 0 && n <= INT32_MAX;
}

static void set_name(struct perfetto_machine *m, uint64_t tid, const char *name)
{
	bool is_new;
	if (!*name || m->name_by_tid.len >= THREADS_MAX || m->names_bytes >= NAMES_BYTES_MAX)
		return;
	const size_t names = m->names.len;
	uint64_t *id = map_put(&m->name_by_tid, tid, &is_new);
	if (is_new)
		*id = strtab_put(&m->names, name);
	m->names_bytes += m->names.len > names ? strlen(name) + 32 : 0;
}

static void set_process(struct perfetto_machine *m, uint64_t tid, uint64_t pid)
{
	if (is_tid(tid) && is_tid(pid) && m->process_by_tid.len < THREADS_MAX)
		*map_put(&m->process_by_tid, tid, NULL) = pid;
}

static void add_thread(struct perfetto_machine *m, const struct proto_field *thread)
{
	struct proto_message t = proto_nested(thread);
	struct proto_field f;
	uint64_t tid = 0, pid = 0;
	char name[COMM_LENGTH_MAX + 1] = "";
	while (proto_next(&t, &f)) {
		tid = f.number == 1 && f.type == WIRE_VARINT ? f.value : tid;
		pid = f.number == 3 && f.type == WIRE_VARINT ? f.value : pid;
		if (f.number == 2 && f.type == WIRE_BYTES)
			copy_text(name, sizeof name, &f);
	}
	set_process(m, tid, pid);
	if (is_tid(tid))
		set_name(m, tid, name);
}

/* A process's name is that of its executable, unless the thread list contains the name of its main thread. */
static void add_process(struct perfetto_machine *m, const struct proto_field *process)
{
	struct proto_message p = proto_nested(process);
	struct proto_field f, command = { 0 };
	uint64_t pid = 0;
	bool is_comm = false, is_kernel = false;
	while (proto_next(&p, &f)) {
		pid = f.number == 1 && f.type == WIRE_VARINT ? f.value : pid;
		is_kernel |= f.number == 8 && f.type == WIRE_VARINT && f.value;
		is_comm |= f.number == 9 && f.type == WIRE_VARINT && f.value;
		if (f.number == 3 && f.type == WIRE_BYTES && !command.data)
			command = f;
	}
	if (!is_tid(pid))
		return;
	set_process(m, pid, pid);
	char path[4096], name[COMM_LENGTH_MAX + 1];
	copy_text(path, sizeof path, &command);
	const char *slash = is_comm || is_kernel || path[0] != '/' ? NULL : strrchr(path, '/');
	snprintf(name, sizeof name, "%.*s", COMM_LENGTH_MAX, slash ? slash + 1 : path);
	set_name(m, pid, name);
}

void perfetto_add_processes(struct perfetto_machine *m, const struct proto_field *tree)
{
	struct proto_field f;
	for (unsigned threads = 2; threads; threads--) {  /* threads first: their names are exact */
		struct proto_message all = proto_nested(tree);
		while (proto_next(&all, &f)) {
			if (f.number == 2 && threads == 2)
				add_thread(m, &f);
			else if (f.number == 1 && threads == 1)
				add_process(m, &f);
		}
	}
}

/* ---- system, counters, configuration */

void perfetto_add_system(struct perfetto_machine *m, const struct proto_field *info)
{
	struct proto_message all = proto_nested(info);
	struct proto_field f, name;
	while (proto_next(&all, &f)) {
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == 17)
			copy_text(m->name, sizeof m->name, &f);
		if (f.number == 4)
			copy_text(m->service, sizeof m->service, &f);
		struct proto_message uts = proto_nested(&f);
		while (f.number == 1 && proto_next(&uts, &name)) {
			if (name.number == 3 && name.type == WIRE_BYTES)
				copy_text(m->kernel, sizeof m->kernel, &name);
			if (name.number == 4 && name.type == WIRE_BYTES)
				copy_text(m->architecture, sizeof m->architecture, &name);
		}
	}
}

void perfetto_add_counters(struct perfetto_machine *m, const struct proto_field *stats)
{
	enum { PHASE_START = 1, PHASE_END = 2 };
	struct proto_message all = proto_nested(stats);
	struct proto_field f, counter;
	uint64_t phase = 0, lost = 0;
	while (proto_next(&all, &f)) {
		phase = f.number == 1 && f.type == WIRE_VARINT ? f.value : phase;
		struct proto_message cpu = proto_nested(&f);
		while (f.number == 2 && proto_next(&cpu, &counter))
			if ((counter.number == 3 || counter.number == 8) && counter.type == WIRE_VARINT && counter.value < INT64_MAX)
				lost += counter.value;
	}
	if (phase == PHASE_START && !m->counters.has_start) {
		m->counters.has_start = true;
		m->counters.lost_at_start = lost;
	}
	if (phase == PHASE_END) {
		m->counters.has_end = true;
		m->counters.lost_at_end = lost;
	}
}

bool perfetto_is_flush(const struct proto_field *service_event)
{
	enum { FLUSH_STARTED = 9 };
	struct proto_message m = proto_nested(service_event);
	struct proto_field f;
	while (proto_next(&m, &f))
		if (f.number == FLUSH_STARTED && f.type == WIRE_VARINT && f.value)
			return true;
	return false;
}

static void add_enabled(struct perfetto_machine *m, const struct proto_field *ftrace)
{
	struct proto_message all = proto_nested(ftrace);
	struct proto_field f;
	char name[128];
	while (proto_next(&all, &f)) {
		if (f.number != 1 || f.type != WIRE_BYTES || m->enabled.len >= ENABLED_MAX)
			continue;
		copy_text(name, sizeof name, &f);
		strtab_put(&m->enabled, name);
	}
}

void perfetto_add_config(struct perfetto_machine *m, const struct proto_field *config)
{
	enum { CONFIG_SOURCES = 2, SOURCE_CONFIG = 1, SOURCE_FTRACE = 100 };
	struct proto_message all = proto_nested(config);
	struct proto_field source, one, part;
	while (proto_next(&all, &source)) {
		struct proto_message s = proto_nested(&source);
		while (source.number == CONFIG_SOURCES && proto_next(&s, &one)) {
			struct proto_message c = proto_nested(&one);
			while (one.number == SOURCE_CONFIG && proto_next(&c, &part))
				if (part.number == SOURCE_FTRACE)
					add_enabled(m, &part);
		}
	}
	m->has_config |= m->enabled.len > 1;
}
