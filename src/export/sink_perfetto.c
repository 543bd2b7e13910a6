/* Sink perfetto: converts rows to slices and counters on tracks, and to flows from culprit to victim. Times are ns
 * since the epoch. */

#include "base/atomic_file.h"
#include "base/base.h"
#include "base/strtab.h"
#include "export/perfetto_packets.h"

#define TRACK_NAME 1100

struct sink {
	struct save save;
	const struct export_shape *table;
	int64_t begin, end;         /* time range of the run, ns */
	struct strtab machines;     /* ids 1, 2, ...; 0 is "" */
	uint64_t flows;             /* flow count */
	struct track lost;          /* track of the current counter */
	int64_t bucket, lost_ns;    /* second and value of the counter, ns; lost_ns < 0: none */
};

#define GROUP_NAME(code, name) name,
const char *const track_group_name[TRACK_GROUP_COUNT] = { TRACK_GROUPS(GROUP_NAME) };
#undef GROUP_NAME

static struct sink *open_perfetto(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	*s = (struct sink){ .begin = run->begin, .end = run->end, .lost_ns = -1 };
	if (atomic_file_begin(&s->save, target, err)) {
		free(s);
		return NULL;
	}
	strtab_init(&s->machines);
	return s;
}

static struct track make_track(struct sink *s, const struct table_cell *machine, enum track_group group,
                             int64_t number)
{
	return (struct track){ strtab_put(&s->machines, machine->text), group, number };
}

static void add_machine(struct sink *s, const struct table_cell *c)
{
	packet_machine(s->save.f, strtab_put(&s->machines, c[COL_MACHINE_NAME].text), c[COL_MACHINE_NAME].text);
}

static void add_cpu(struct sink *s, const struct table_cell *c)
{
	static const enum track_group vcpu[] = { GROUP_VCPU_STATE, GROUP_VCPU_GAP, GROUP_STEAL, GROUP_RUNNING };
	char name[TRACK_NAME];
	bool virtual = !c[COL_CPU_HOST_TID].absent;
	snprintf(name, sizeof name, "%sCPU%" PRId64, virtual ? "v" : "", c[COL_CPU_NUMBER].number);
	for (size_t i = virtual ? 0 : 3; i < sizeof vcpu / sizeof *vcpu; i++) {
		struct track t = make_track(s, &c[COL_CPU_MACHINE], vcpu[i], c[COL_CPU_NUMBER].number);
		packet_track(s->save.f, &t, name);
	}
}

static void add_thread(struct sink *s, const struct table_cell *c)
{
	static const enum track_group groups[] = { GROUP_THREAD, GROUP_THREAD_GAP };
	char name[TRACK_NAME];
	snprintf(name, sizeof name, "%s %" PRId64, c[COL_THREAD_TITLE].text, c[COL_THREAD_TID].number);
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		struct track t = make_track(s, &c[COL_THREAD_MACHINE], groups[i], c[COL_THREAD_TID].number);
		packet_track(s->save.f, &t, name);
	}
}

static void add_vcpu_state(struct sink *s, const struct table_cell *c)
{
	struct track t = make_track(s, &c[COL_VCPU_STATE_MACHINE], GROUP_VCPU_STATE, c[COL_VCPU_STATE_CPU].number);
	packet_slice(s->save.f, &t, c[COL_VCPU_STATE_TS].number, c[COL_VCPU_STATE_DUR].number, c[COL_VCPU_STATE_STATE].text,
	             NULL, 0);
}

static void add_thread_state(struct sink *s, const struct table_cell *c)
{
	struct track t = make_track(s, &c[COL_THREAD_STATE_MACHINE], GROUP_THREAD, c[COL_THREAD_STATE_TID].number);
	const struct slice_arg arg[] = { { "cpu", &c[COL_THREAD_STATE_CPU], FIELD_INT } };
	packet_slice(s->save.f, &t, c[COL_THREAD_STATE_TS].number, c[COL_THREAD_STATE_DUR].number,
	             c[COL_THREAD_STATE_STATE].text, arg, 1);
}

/* Adds a slice with the TID; the idle thread (TID 0) is not drawn. */
static void add_running(struct sink *s, const struct table_cell *c)
{
	char name[32];
	struct track t = make_track(s, &c[COL_RUNNING_MACHINE], GROUP_RUNNING, c[COL_RUNNING_CPU].number);
	if (c[COL_RUNNING_TID].number == 0)
		return;
	snprintf(name, sizeof name, "%" PRId64, c[COL_RUNNING_TID].number);
	packet_slice(s->save.f, &t, c[COL_RUNNING_TS].number, c[COL_RUNNING_DUR].number, name, NULL, 0);
}

static struct track gap_track(struct sink *s, const struct table_cell *machine, const struct table_cell *cpu,
                              const struct table_cell *tid)
{
	return tid->absent ? make_track(s, machine, GROUP_VCPU_GAP, cpu->number)
	                   : make_track(s, machine, GROUP_THREAD_GAP, tid->number);
}

static void add_gap(struct sink *s, const struct table_cell *c)
{
	struct track t = gap_track(s, &c[COL_GAP_MACHINE], &c[COL_GAP_CPU], &c[COL_GAP_TID]);
	const struct slice_arg arg[SLICE_ARGS] = {
		{ "culprit_kind", &c[COL_GAP_CULPRIT_KIND], FIELD_TEXT },
		{ "culprit_machine", &c[COL_GAP_CULPRIT_MACHINE], FIELD_TEXT },
		{ "culprit_tid", &c[COL_GAP_CULPRIT_TID], FIELD_INT },    { "culprit_name", &c[COL_GAP_CULPRIT_NAME], FIELD_TEXT },
		{ "culprit_ns", &c[COL_GAP_CULPRIT_NS], FIELD_INT },
	};
	packet_slice(s->save.f, &t, c[COL_GAP_START].number, c[COL_GAP_DURATION].number, c[COL_GAP_STATE].text, arg, 5);
}

/* Draws a flow from a preempting thread to the gap that it causes. */
static void add_flow(struct sink *s, const struct table_cell *c)
{
	bool thread = !c[COL_FLOW_CULPRIT_MACHINE].absent && !c[COL_FLOW_CULPRIT_TID].absent &&
	              c[COL_FLOW_CULPRIT_TID].number > 0;
	if (!thread || strcmp(c[COL_FLOW_KIND].text, "preempting") != 0)
		return;
	struct track from = make_track(s, &c[COL_FLOW_CULPRIT_MACHINE], GROUP_THREAD, c[COL_FLOW_CULPRIT_TID].number);
	struct track to = gap_track(s, &c[COL_FLOW_MACHINE], &c[COL_FLOW_CPU], &c[COL_FLOW_TID]);
	packet_flow(s->save.f, &from, &to, c[COL_FLOW_TS].number, ++s->flows);
}

/* Writes the counter of the current second. drops: the next second has no value, so the counter drops to 0. */
static void end_second(struct sink *s, bool drops)
{
	if (s->lost_ns < 0)
		return;
	int64_t next = s->bucket + STEAL_BUCKET_NS;
	packet_counter(s->save.f, &s->lost, s->bucket < s->begin ? s->begin : s->bucket, s->lost_ns);
	if (drops && next <= s->end)
		packet_counter(s->save.f, &s->lost, next, 0);
	s->lost_ns = -1;
}

static void add_steal(struct sink *s, const struct table_cell *c)
{
	if (c[COL_STEAL_CPU].absent)
		return;
	struct track t = make_track(s, &c[COL_STEAL_MACHINE], GROUP_STEAL, c[COL_STEAL_CPU].number);
	int64_t bucket = c[COL_STEAL_BUCKET].number;
	bool same = s->lost.machine == t.machine && s->lost.number == t.number;
	if (!same || bucket != s->bucket)
		end_second(s, !same || bucket != s->bucket + STEAL_BUCKET_NS);
	s->lost = t;
	s->bucket = bucket;
	s->lost_ns = (s->lost_ns < 0 ? 0 : s->lost_ns) + c[COL_STEAL_NS].number;
}

static int begin_perfetto(struct sink *s, const struct export_shape *t, struct error *err)
{
	(void)err;
	s->table = t;
	return 0;
}

static int write_row(struct sink *s, const struct table_cell *c, struct error *err)
{
	static void (*const add[TABLE_COUNT])(struct sink *, const struct table_cell *) = {
		[TABLE_MACHINE] = add_machine, [TABLE_CPU] = add_cpu, [TABLE_THREAD] = add_thread,
		[TABLE_VCPU_STATE] = add_vcpu_state, [TABLE_THREAD_STATE] = add_thread_state, [TABLE_RUNNING] = add_running,
		[TABLE_GAP] = add_gap, [TABLE_FLOW] = add_flow, [TABLE_STEAL] = add_steal,
	};
	add[table_code(s->table)](s, c);
	return ferror_unlocked(s->save.f) ? error_system(err, "free disk space", "%s", s->save.path) : 0;
}

static int end_perfetto(struct sink *s, struct error *err)
{
	(void)err;
	end_second(s, true);
	return 0;
}

static int close_perfetto(struct sink *s, int status, struct error *err)
{
	status = atomic_file_end(&s->save, status, err);
	strtab_release(&s->machines);
	free(s);
	return status;
}

#define PERFETTO_TABLES (TABLE_BIT(TABLE_MACHINE) | TABLE_BIT(TABLE_CPU) | TABLE_BIT(TABLE_THREAD) | \
	TABLE_BIT(TABLE_VCPU_STATE) | TABLE_BIT(TABLE_THREAD_STATE) | TABLE_BIT(TABLE_RUNNING) | TABLE_BIT(TABLE_GAP) | \
	TABLE_BIT(TABLE_FLOW) | TABLE_BIT(TABLE_STEAL))

const struct sink_ops sink_perfetto = {
	PERFETTO_TABLES, open_perfetto, begin_perfetto, write_row, end_perfetto, close_perfetto,
};
