/* Nested guests with given clocks: which machine runs which guest, if nested guests fit outer VMs as well. */
#include "test.h"

#include "sync/sync.h"
#include "trace/trace.h"

enum { PERIOD = 100000, SETTLED = 64, BRIEF = 3 };  /* PERIOD: ns; SETTLED, BRIEF: numbers of periods that do and do not
                                                     * identify the VM by its window edges */

struct machine {
	const char *name;
	struct event ev[16 * SETTLED];
	size_t len;
};

static void add_event(struct machine *m, int64_t ts, enum event_kind kind, unsigned cpu, int tid)
{
	struct event *ev = &m->ev[m->len++];
	assert_true(m->len <= COUNT(m->ev));
	*ev = (struct event){ .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = tid, .pid = tid / 10 * 10 };
	for (int i = 0; i < 6; i++)
		ev->arg[i] = EVENT_ABSENT;
}

/* Adds events of a thread that runs a vCPU during [from, to]. */
static void run_vcpu(struct machine *m, unsigned cpu, int tid, int64_t from, int64_t to)
{
	add_event(m, from, EV_VCPU_ENTRY, cpu, tid);
	add_event(m, to, EV_VCPU_EXIT, cpu, tid);
}

/* Returns the machine that runs machine n - 1 - `back` ("": unknown), and the process there. The first machine is the
 * host. */
static const char *parent_of(struct machine *machine, size_t n, size_t back, int32_t *pid)
{
	struct trace *trace[4];
	const struct sync_options options = { .method = SYNC_NONE, .workers = 1 };
	struct sync_result result;
	struct error err = ERROR_INIT;
	const char *parent = "";
	*pid = -1;
	for (size_t i = 0; i < n; i++)
		trace[i] = trace_from_events(machine[i].name, i == 0 ? ROLE_HOST : ROLE_GUEST, machine[i].ev, machine[i].len,
		                             (const char *const[]){ "" }, 1);
	assert_int_equal(sync_run(trace, n, &options, &result, NULL, &err), 0);
	for (size_t i = 0; i < result.vms; i++) {
		const struct sync_vm *vm = &result.vm[i];
		if (!vm->guest || strcmp(vm->name, machine[n - 1 - back].name) != 0 || vm->vcpus == 0)
			continue;
		*pid = vm->host_pid;
		for (size_t k = 0; k < n; k++)
			if (strcmp(machine[k].name, vm->parent == 0 ? machine[0].name : result.vm[vm->parent - 1].name) == 0)
				parent = machine[k].name;
	}
	sync_result_release(&result);
	for (size_t i = 0; i < n; i++)
		trace_free(trace[i]);
	return parent;
}

/* Middle has one vCPU more than its VM on the host, and Inner's vCPU thread moves from one of Middle's vCPUs to the
 * other: of the outer VMs, Inner fits only the two VMs of the host, which run at the same times. */
static void test_deep(void **state)
{
	static struct machine m[4];
	int32_t pid;
	(void)state;
	memset(m, 0, sizeof m);
	m[0].name = "host";
	m[1].name = "Outer";
	m[2].name = "Middle";
	m[3].name = "Inner";
	for (int turn = 0; turn < BRIEF; turn++) {
		const int64_t t = turn * PERIOD;
		add_event(&m[0], t - 100, EV_VCPU_ENTRY, 1, 41);
		run_vcpu(&m[0], 0, 11, t, t + 9000);
		add_event(&m[0], t + 9100, EV_VCPU_EXIT, 1, 41);
		add_event(&m[1], t + 500, EV_OTHER, 0, 1);
		for (unsigned cpu = 0; cpu < 2; cpu++) {
			const int64_t at = t + 1000 + 4000 * cpu;
			run_vcpu(&m[1], 0, 21 + (int)cpu, at, at + 3000);
			add_event(&m[2], at + 200, EV_OTHER, cpu, 1);
			if (turn % 2 == (int)cpu) {
				run_vcpu(&m[2], cpu, 31, at + 1000, at + 2000);
				add_event(&m[3], at + 1500, EV_OTHER, 0, 1);
			}
			add_event(&m[2], at + 2800, EV_OTHER, cpu, 1);
		}
		add_event(&m[1], t + 8500, EV_OTHER, 0, 1);
	}
	assert_string_equal(parent_of(m, 4, 0, &pid), "Middle");
	assert_int_equal(pid, 30);
	assert_string_equal(parent_of(m, 4, 1, &pid), "Outer");
	assert_int_equal(pid, 20);
	assert_string_equal(parent_of(m, 4, 2, &pid), "host");
	assert_int_equal(pid, 10);
}

/* Inner is outside guest mode whenever Outer has an event, and these events lie where Inner runs a VM of its own. Either
 * one event outside, or the fact that Inner fits no VM of the host, shows that Outer does not run inside Inner. */
static void check_reversed(bool outlier)
{
	static struct machine m[3];
	int32_t pid;
	memset(m, 0, sizeof m);
	m[0].name = "host";
	m[1].name = "Outer";
	m[2].name = "Inner";
	for (int turn = 0; turn < SETTLED; turn++) {
		const int64_t t = turn * PERIOD;
		run_vcpu(&m[0], 0, 11, t, t + 9000);
		add_event(&m[1], t + 500, EV_OTHER, 0, 1);
		for (unsigned cpu = 0; cpu < (outlier ? 1 : 2); cpu++) {
			const int64_t at = t + 1000 + 3000 * cpu;
			add_event(&m[1], at, EV_VCPU_ENTRY, 0, 21 + (int)cpu);
			if (turn > 0 || cpu > 0)
				add_event(&m[2], at + 500, EV_VCPU_EXIT, cpu, 31);
			add_event(&m[2], at + 700, EV_OTHER, cpu, 1);
			if (outlier && turn == SETTLED / 2)
				add_event(&m[1], at + 1000, EV_OTHER, 0, 1);
			add_event(&m[2], at + 2000, EV_VCPU_ENTRY, cpu, 31);
			add_event(&m[1], at + 2500, EV_VCPU_EXIT, 0, 21 + (int)cpu);
		}
		add_event(&m[1], t + 8500, EV_OTHER, 0, 1);
	}
	assert_string_equal(parent_of(m, 3, 0, &pid), "Outer");
	assert_int_equal(pid, 20);
	assert_string_equal(parent_of(m, 3, 1, &pid), "host");
	assert_int_equal(pid, 10);
}

static void test_reversed(void **state)
{
	(void)state;
	check_reversed(true);
	check_reversed(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_deep), cmocka_unit_test(test_reversed) };
	return cmocka_run_group_tests_name("sync inside", tests, NULL, NULL);
}
