#include "model_conserve.h"

#include <inttypes.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/states.h"
#include "model/model.h"
#include "test.h"

/* ---- indexing */

static void add_window(struct indexed *x, const char *name, const struct trace *t, const struct clock_map *clock)
{
	struct machine_window *s = &x->machine[x->machines++];
	assert_true(x->machines < COUNT(x->machine));
	*s = (struct machine_window){ .begin = 1, .end = 0 };
	snprintf(s->name, sizeof s->name, "%s", name);
	if (!t || trace_info(t)->begin > trace_info(t)->end)
		return;
	s->begin = clock ? clock_map_at(clock, trace_info(t)->begin) : trace_info(t)->begin;
	s->end = clock ? clock_map_at(clock, trace_info(t)->end) : trace_info(t)->end;
	s->cpus = trace_info(t)->cpus;
}

static void index_synced(const struct sync_result *sync, const char *file, struct indexed *out)
{
	struct error err = ERROR_INIT;
	struct model_options options = { .paper_states = false };
	struct model_interval span;
	struct history_builder *b = history_create(file, NULL, &err);
	if (!b || model_run(sync, &options, b, &span, NULL, &err) < 0 ||
	    history_finish(b, span.begin, span.end, &err) < 0)
		fail_msg("%s", err.text);
	out->events = span.events;
	add_window(out, "host", sync->host, NULL);
	for (size_t i = 0; i < sync->vms; i++) {
		add_window(out, sync->vm[i].name, sync->vm[i].guest, &sync->vm[i].clock);
		out->machine[i + 1].parent = sync->vm[i].parent;
	}
	out->h = history_open(file, &err);
	if (!out->h)
		fail_msg("%s", err.text);
}

/* Reads the VMs from the simulator's truth/vcpus.csv (vm,vcpu,host_tid,host_pid,traced,parent); all clocks are perfect. */
static void sync_from_truth(const char *dir, struct trace *const *trace, size_t n, struct sync_result *out)
{
	char file[400], line[200], name[64], parent[64];
	size_t vm_cap = 0, vcpu_cap = 0;
	unsigned number;
	int tid, pid;
	*out = (struct sync_result){ .host = NULL };
	for (size_t i = 0; i < n; i++)
		if (!strcmp(trace_info(trace[i])->machine, "hypervisor"))
			out->host = trace[i];
	snprintf(file, sizeof file, "%s/truth/vcpus.csv", dir);
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	while (fgets(line, sizeof line, f) &&
	       sscanf(line, "%63[^,],%u,%d,%d,%*d,%63[^,\n]", name, &number, &tid, &pid, parent) == 5) {
		struct sync_vm *vm = out->vms ? &out->vm[out->vms - 1] : NULL;
		if (!vm || strcmp(vm->name, name)) {
			vm = ARRAY_PUSH(out->vm, out->vms, vm_cap);
			*vm = (struct sync_vm){ .name = mem_dup(name), .host_pid = out->host ? pid : -1 };
			vcpu_cap = 0;
			for (size_t i = 0; i < n; i++)
				if (!strcmp(trace_info(trace[i])->machine, name))
					vm->guest = trace[i];
			for (size_t i = 0; i + 1 < out->vms; i++)
				if (!strcmp(out->vm[i].name, parent))
					vm->parent = i + 1;
		}
		*ARRAY_PUSH(vm->vcpu, vm->vcpus, vcpu_cap) = (struct sync_vcpu){ .number = number, .host_tid = tid };
	}
	fclose(f);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Returns the trace without bursts of lost events, per CPU, and with the loss records that a reader makes: from the
 * first lost event to the last. With seed NO_CONTEXT: returns the trace without the context of events. */
static struct trace *lose_events(const struct trace *t, uint64_t seed, uint64_t *lost)
{
	enum { STRINGS = 4096 };
	struct error err = ERROR_INIT;
	const struct trace_info *info = trace_info(t);
	const char *string[STRINGS];
	struct event ev, *kept = NULL;
	size_t n = 0, cap = 0, *record = mem_new(info->cpus, sizeof *record);
	int64_t *until = mem_new(info->cpus, sizeof *until);
	struct trace_cursor *c = trace_cursor_open(t, ALL_KINDS, -1, &err);
	assert_non_null(c);
	for (size_t i = 0; i < STRINGS; i++)
		string[i] = trace_string(t, (int64_t)i);
	while (trace_cursor_next(c, &ev, &err) > 0) {
		if (seed == NO_CONTEXT) {
			ev.tid = ev.pid = -1;
			ev.comm = 0;
			*ARRAY_PUSH(kept, n, cap) = ev;
			++*lost;
			continue;
		}
		bool starts = until[ev.cpu] < ev.ts && next_random(&seed) % 300 == 0;
		if (starts) {
			until[ev.cpu] = ev.ts + (int64_t)(next_random(&seed) % 4000000);
			record[ev.cpu] = n;
			*ARRAY_PUSH(kept, n, cap) = (struct event){
				.ts = ev.ts, .kind = EV_LOST, .cpu = ev.cpu, .tid = -1, .pid = -1, .lost = { ev.ts, 0 } };
		}
		if (ev.ts > until[ev.cpu]) {
			*ARRAY_PUSH(kept, n, cap) = ev;
			continue;
		}
		kept[record[ev.cpu]].lost.end = ev.ts;
		kept[record[ev.cpu]].lost.count++;
		++*lost;
	}
	trace_cursor_close(c);
	struct trace *left = trace_from_events(info->machine, info->role, kept, n, string, STRINGS);
	free(kept);
	free(record);
	free(until);
	return left;
}

void index_traces(const char *dir, const char *file, bool perfect, uint64_t lossy, struct indexed *out)
{
	struct error err = ERROR_INIT;
	struct trace_spec *spec = NULL;
	size_t n = 0;
	struct trace_options load = { .workers = 1 };
	struct sync_options how = { .method = SYNC_AUTO };
	struct sync_result sync;
	*out = (struct indexed){ .h = NULL };
	if (trace_discover(dir, &spec, &n, NULL, &err) < 0)
		fail_msg("%s", err.text);
	struct trace **trace = mem_new(n, sizeof *trace);
	for (size_t i = 0; i < n; i++)  /* without kvm events the host cannot be recognized */
		spec[i].role = strstr(spec[i].dir, "/host") ? ROLE_HOST : ROLE_GUEST;
	if (trace_load(spec, n, &load, trace, NULL, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < n && lossy; i++) {
		struct trace *whole = trace[i];
		trace[i] = lose_events(whole, lossy == NO_CONTEXT ? lossy : lossy + i, &out->lost);
		trace_free(whole);
	}
	if (perfect)
		sync_from_truth(dir, trace, n, &sync);
	else if (sync_run(trace, n, &how, &sync, NULL, &err) < 0)
		fail_msg("%s", err.text);
	index_synced(&sync, file, out);
	sync_result_release(&sync);
	for (size_t i = 0; i < n; i++)
		trace_free(trace[i]);
	free(trace);
	trace_specs_free(spec, n);
}

void indexed_release(struct indexed *x)
{
	history_close(x->h);
}

/* ---- reading */

struct interval *all_intervals(const struct history *h, uint32_t attr, size_t *n)
{
	struct error err = ERROR_INIT;
	struct history_cursor c;
	struct interval *all = NULL, iv;
	size_t cap = 0;
	int got;
	*n = 0;
	if (attr == HISTORY_NONE)
		return NULL;
	if (history_range(&c, h, attr, history_begin(h), history_end(h), &err) < 0)
		fail_msg("%s", err.text);
	while ((got = history_range_next(&c, &iv, &err)) > 0)
		*ARRAY_PUSH(all, *n, cap) = iv;
	if (got < 0)
		fail_msg("%s", err.text);
	return all;
}

uint32_t below(const struct history *h, uint32_t parent, const char *first, const char *second)
{
	uint32_t attr = parent == HISTORY_NONE ? HISTORY_NONE : history_child_named(h, parent, first);
	return attr == HISTORY_NONE || !second ? attr : history_child_named(h, attr, second);
}

/* ---- conservation */

/* Adds to sum[value of b] the time in which a has a value of `mask`; a and b tile the same interval. Returns the time in
 * which a had such a value and b had none. */
static int64_t overlap(struct map *sum, const struct interval *a, size_t na, uint64_t mask, const struct interval *b,
                       size_t nb)
{
	int64_t missing = 0;
	for (size_t i = 0, k = 0; i < na && k < nb; ) {
		int64_t from = a[i].start > b[k].start ? a[i].start : b[k].start;
		int64_t to = a[i].end < b[k].end ? a[i].end : b[k].end;
		bool counts = a[i].value != HISTORY_NULL && (mask >> a[i].value & 1);
		if (counts && b[k].value == HISTORY_NULL)
			missing += to - from + 1;
		else if (counts)
			*map_put(sum, (uint64_t)b[k].value, NULL) += (uint64_t)(to - from + 1);
		if (a[i].end <= to)
			i++;
		if (b[k].end <= to)
			k++;
	}
	return missing;
}

/* Keys of the sums of both sides: TID << 16 | CPU. */
static void sum_cpu(const struct history *h, uint32_t c, bool guest, uint64_t vcpu_mask, struct map *sum)
{
	struct interval always = { history_begin(h), history_end(h), 0 }, *status = &always;
	uint64_t number = strtoul(history_name(h, c) + 3, NULL, 10), tid, ns;
	size_t n, m = 1;
	struct map mine = MAP_INIT;
	struct interval *current = all_intervals(h, below(h, c, "Current Thread", NULL), &n);
	if (guest)
		status = all_intervals(h, below(h, c, "Status", NULL), &m);
	overlap(&mine, status, m, vcpu_mask, current, n);
	for (size_t at = 0; map_each(&mine, &at, &tid, &ns); )
		if (tid)
			*map_put(sum, tid << 16 | number, NULL) += ns;
	map_release(&mine);
	free(current);
	if (guest)
		free(status);
}

static void sum_thread(const struct history *h, uint32_t th, uint64_t mask, struct map *sum, const char *what)
{
	uint64_t tid = strtoul(history_name(h, th), NULL, 10), cpu, ns;
	size_t n, m;
	struct map mine = MAP_INIT;
	struct interval *status = all_intervals(h, below(h, th, "Status", NULL), &n);
	struct interval *where = all_intervals(h, below(h, th, "CPU", NULL), &m);
	if (overlap(&mine, status, n, mask, where, m))
		fail_msg("%s: thread %" PRIu64 " runs on no CPU", what, tid);
	for (size_t at = 0; map_each(&mine, &at, &cpu, &ns); )
		*map_put(sum, tid << 16 | cpu, NULL) += ns;
	map_release(&mine);
	free(status);
	free(where);
}

static size_t compare(const struct map *cpus, const struct map *threads, const char *what)
{
	uint64_t key, value;
	for (size_t at = 0; map_each(cpus, &at, &key, &value); ) {
		uint64_t *other = map_find(threads, key);
		if (!other || *other != value)
			fail_msg("%s: CPU %d has thread %d for %" PRIu64 " ns, but the thread runs for %" PRIu64, what,
			         (int)(key & 0xffff), (int)(key >> 16), value, other ? *other : 0);
	}
	for (size_t at = 0; map_each(threads, &at, &key, &value); )
		if (!map_find(cpus, key))
			fail_msg("%s: thread %d runs for %" PRIu64 " ns on CPU %d, but not current there", what, (int)(key >> 16),
			         value, (int)(key & 0xffff));
	return cpus->len;
}

static size_t check_machine(const struct history *h, uint32_t node, bool guest, const char *what)
{
	static const struct { uint64_t thread, vcpu; } pair[] = {
		{ 1 << THREAD_RUNNING, 1 << VCPU_RUNNING },
		{ 1 << THREAD_VIRT_PREEMPTED, 1 << VCPU_VMM | 1 << VCPU_PREEMPTED | 1 << VCPU_HOST_BLOCKED },
	};
	size_t compared = 0;
	uint32_t cpus = below(h, node, "CPUs", NULL), threads = below(h, node, "Threads", NULL);
	for (size_t i = 0; i < (guest ? 2 : 1); i++) {
		struct map a = MAP_INIT, b = MAP_INIT;
		uint32_t k = HISTORY_NONE;
		while (cpus != HISTORY_NONE && (k = history_child(h, cpus, k)) != HISTORY_NONE)
			sum_cpu(h, k, guest, guest ? pair[i].vcpu : 1, &a);
		k = HISTORY_NONE;
		while (threads != HISTORY_NONE && (k = history_child(h, threads, k)) != HISTORY_NONE)
			sum_thread(h, k, pair[i].thread, &b, what);
		compared += compare(&a, &b, what);
		map_release(&a);
		map_release(&b);
	}
	return compared;
}

/* Checks that a vCPU has a status exactly while it has a host thread, or while its guest is traced and the host is not. */
static void check_vcpu_life(const struct history *h, uint32_t vcpu, const char *what)
{
	struct error err = ERROR_INIT;
	int64_t sums[HISTORY_STATES], alive = 0;
	size_t n;
	uint32_t status = below(h, vcpu, "Status", NULL);
	struct interval *host = all_intervals(h, below(h, vcpu, "Host Thread", NULL), &n);
	if (history_sums(h, status, history_begin(h), history_end(h), sums, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < HISTORY_STATES - 1; i++)
		alive += sums[i];
	assert_int_equal(alive + sums[HISTORY_STATES - 1], history_end(h) - history_begin(h) + 1);
	for (size_t i = 0; i < n; i++) {
		int64_t in[HISTORY_STATES];
		if (host[i].value == HISTORY_NULL)
			continue;
		if (history_sums(h, status, host[i].start, host[i].end, in, &err) < 0)
			fail_msg("%s", err.text);
		if (in[HISTORY_STATES - 1])
			fail_msg("%s: a vCPU with thread %" PRId64 " has no status for %" PRId64 " ns", what, host[i].value,
			         in[HISTORY_STATES - 1]);
	}
	free(host);
}

/* Checks that a vCPU executes, or the hypervisor does for it, only while its thread runs on the parent machine (the host
 * or a VM), and that the vCPU is not preempted while the thread runs. */
static void check_vcpu_thread(const struct history *h, uint32_t vm, uint32_t vcpu, const char *what)
{
	const uint64_t in = 1 << VCPU_RUNNING | 1 << VCPU_VMM;
	const uint64_t out = 1 << VCPU_PREEMPTED | 1 << VCPU_HOST_BLOCKED | 1 << VCPU_WAKING;
	struct interval run = { 0, 0, HISTORY_NULL };
	size_t hosts, n, m;
	uint32_t parent = below(h, vm, "Parent", NULL);
	if (parent == HISTORY_NONE || history_stab(h, parent, history_begin(h), &run, NULL) < 0 || run.value == HISTORY_NULL)
		return;
	const char *name = history_string(h, run.value);
	uint32_t below_it = strcmp(name, "host") ? below(h, history_find(h, "/Virtual Machines"), name, NULL)
	                                         : history_find(h, "/Host");
	struct interval *host = all_intervals(h, below(h, vcpu, "Host Thread", NULL), &hosts);
	struct interval *status = all_intervals(h, below(h, vcpu, "Status", NULL), &n);
	for (size_t i = 0; i < hosts; i++) {
		char tid[24];
		snprintf(tid, sizeof tid, "%" PRId64, host[i].value);
		uint32_t thread = below(h, below(h, below_it, "Threads", NULL), tid, "Status");
		if (host[i].value == HISTORY_NULL)
			continue;
		struct interval *of = all_intervals(h, thread, &m);
		for (size_t k = 0; k < m; k++)
			for (size_t v = 0; v < n; v++) {
				bool meets = of[k].start <= status[v].end && status[v].start <= of[k].end &&
					of[k].start <= host[i].end && host[i].start <= of[k].end &&
					status[v].start <= host[i].end && host[i].start <= status[v].end;
				bool runs = of[k].value == THREAD_RUNNING;
				if (meets && status[v].value != HISTORY_NULL && ((runs ? out : in) >> status[v].value & 1))
					fail_msg("%s: a vCPU is %d while its thread %s/%s is %d, at %" PRId64, what, (int)status[v].value, name,
					         tid, (int)of[k].value, of[k].start > status[v].start ? of[k].start : status[v].start);
			}
		free(of);
	}
	free(host);
	free(status);
}

size_t check_conservation(const struct history *h, const char *what)
{
	size_t compared = 0;
	uint32_t host = history_find(h, "/Host"), vms = history_find(h, "/Virtual Machines");
	if (host != HISTORY_NONE)
		compared += check_machine(h, host, false, what);
	for (uint32_t vm = HISTORY_NONE; vms != HISTORY_NONE && (vm = history_child(h, vms, vm)) != HISTORY_NONE; ) {
		uint32_t cpus = below(h, vm, "CPUs", NULL);
		compared += check_machine(h, vm, true, what);
		for (uint32_t c = HISTORY_NONE; (c = history_child(h, cpus, c)) != HISTORY_NONE; ) {
			check_vcpu_life(h, c, what);
			check_vcpu_thread(h, vm, c, what);
		}
	}
	return compared;
}
