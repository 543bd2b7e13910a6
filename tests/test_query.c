#include "query_answers.h"
#include "query_world.h"
#include "test.h"

#define WHOLE INT64_MIN, INT64_MAX

/* Flows of a host with two VMs. VM A has one vCPU (host thread 100), VM B one (host thread 200); a burner (host thread
 * 42) competes on CPU1. */
static void two_vms(struct world *w, bool b_traced)
{
	world_open(w);
	world_has(w, "host/42", .status = "0 BLOCKED", .name = "0 burnP6");
	world_has(w, "host/43", .status = "0 BLOCKED", .name = "0 qemu-io");
	world_has(w, "host/100", .name = "0 CPU 0/KVM", .vm = "0 A/0");
	world_has(w, "host/200", .name = "0 CPU 0/KVM", .vm = "0 B/0");
	world_has(w, "A/CPU0", .host_thread = "0 100");
	world_has(w, "B/CPU0", .host_thread = "0 200");
	world_has(w, "A/5", .cpu = "0 0", .name = "0 alpha");
	world_has(w, "A/6", .cpu = "0 0", .name = "0 beta");
	if (b_traced)
		world_has(w, "B/7", .name = "0 cc");
	else
		world_has(w, "B/CPU0", .status = "0 RUNNING");
}

/* The paper's Fig. 8: A yields to B and C; the flow is one busy CPU. */
static void fig8(void **state)
{
	struct world w;
	(void)state;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 1; 10 2; 20 1; 30 3; 45 1");
	for (int tid = 1; tid <= 3; tid++)
		world_rowf(&w, "0 0", "/Host/Threads/%d/CPU", tid);
	world_has(&w, "host/1", .status = "5 RUNNING; 10 PREEMPTED; 20 RUNNING; 30 PREEMPTED; 45 RUNNING; 60 -", .name = "0 A");
	world_has(&w, "host/2", .name = "0 B");
	world_has(&w, "host/3", .name = "0 C");
	world_close(&w, 0, 99);
	world_check_flow(&w, "host/1", WHOLE,
	                 "5-9 running host/1 A @0; 10-19 preempting host/2 B @0; 20-29 running host/1 A @0; "
	                 "30-44 preempting host/3 C @0; 45-59 running host/1 A @0");
	world_check_flow(&w, "host/1", 7, 30, "7-9 running host/1 A @0; 10-19 preempting host/2 B @0; "
	                 "20-29 running host/1 A @0; 30-30 preempting host/3 C @0");
	struct flow f;
	struct error err = ERROR_INIT;
	struct target s = world_target(&w, "host/A");
	assert_int_equal(query_answer(flow_open(&w.catalog, &s, WHOLE, NULL, &err), &f, &err), 0);
	assert_int_equal(f.entries, 3);
	assert_int_equal(f.entry[0].duration, 30);
	assert_true(f.entry[0].share == 30.0 / 55.0);
	flow_release(&f);
	assert_int_equal(query_answer(flow_open(&w.catalog, &s, 60, 99, NULL, &err), &f, &err), -1);
	assert_non_null(strstr(err.text, "not alive"));
	world_release(&w);
}

/* The guest preempts the thread, then the host preempts the vCPU for VM B's thread, then for B's swapper (Fig. 15). */
static void culprits(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/5", .status = "0 RUNNING; 10 PREEMPTED; 30 RUNNING; 40 VIRT_PREEMPTED; 90 RUNNING");
	world_has(&w, "A/CPU0", .pcpu = "0 1",
	          .status = "0 RUNNING; 20 VMM; 22 PREEMPTED; 25 VMM; 26 RUNNING; 40 VMM; 42 PREEMPTED; 88 VMM; 90 RUNNING",
	          .current = "0 5; 10 6; 30 5");
	world_has(&w, "B/CPU0", .current = "0 0; 60 7; 70 0");
	world_has(&w, "host/CPU1", .current = "0 100; 22 42; 25 100; 42 42; 50 200; 80 0; 88 100",
	          .interrupt = "0 -; 44 irq/46-iwlwifi; 47 -; 82 softirq/7-SCHED; 84 -; 92 irq/1-x; 93 -");
	world_close(&w, 0, 99);
	world_check_flow(&w, "A/5", WHOLE,
	                 "0-9 running A/5 alpha @1; 10-19 preempting A/6 beta @1; 20-21 hypervisor A/6 beta @1; "
	                 "22-24 preempting host/42 burnP6 @1; 25-25 hypervisor A/6 beta @1; 26-29 preempting A/6 beta @1; "
	                 "30-39 running A/5 alpha @1; 40-41 hypervisor A/5 alpha @1; 42-43 preempting host/42 burnP6 @1; "
	                 "44-46 irq host/-1 irq/46-iwlwifi @1; 47-49 preempting host/42 burnP6 @1; "
	                 "50-59 preempting B/0 swapper @1; 60-69 preempting B/7 cc @1; 70-79 preempting B/0 swapper @1; "
	                 "80-81 idle-cpu @1; 82-83 irq host/-1 softirq/7-SCHED @1; 84-87 idle-cpu @1; "
	                 "88-89 hypervisor A/5 alpha @1; 90-91 running A/5 alpha @1; 92-92 irq host/-1 irq/1-x @1; "
	                 "93-99 running A/5 alpha @1");
	world_check_flow(&w, "A/CPU0", 40, 60, "40-41 hypervisor A/5 alpha @1; 42-43 preempting host/42 burnP6 @1; "
	                 "44-46 irq host/-1 irq/46-iwlwifi @1; 47-49 preempting host/42 burnP6 @1; "
	                 "50-59 preempting B/0 swapper @1; 60-60 preempting B/7 cc @1");
	world_release(&w);
}

/* The culprits are the guest's own interrupt handlers, and a thread in a guest without a trace. */
static void guest_irq_and_untraced(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, false);
	world_has(&w, "A/5", .status = "0 RUNNING; 20 VIRT_PREEMPTED; 30 RUNNING; 40 PREEMPTED");
	world_has(&w, "A/CPU0", .pcpu = "0 1", .status = "0 RUNNING; 20 PREEMPTED; 30 RUNNING", .current = "0 5; 40 6",
	          .interrupt = "0 -; 5 irq/27-virtio0; 8 -; 44 softirq/1-TIMER; 46 -");
	world_has(&w, "host/CPU1", .current = "0 100; 20 200; 30 100");
	world_close(&w, 0, 49);
	world_check_flow(&w, "A/5", WHOLE,
	                 "0-4 running A/5 alpha @1; 5-7 irq A/-1 irq/27-virtio0 @1; 8-19 running A/5 alpha @1; "
	                 "20-29 preempting B/-1 vCPU0 @1; 30-39 running A/5 alpha @1; 40-43 preempting A/6 beta @1; "
	                 "44-45 irq A/-1 softirq/1-TIMER @1; 46-49 preempting A/6 beta @1");
	world_check_flow(&w, "B/CPU0", 0, 9, "0-9 running B/-1 vCPU0");
	world_release(&w);
}

/* The vCPU moves to the queue of another pCPU; that pCPU idles (throttled); then the vCPU's host thread sleeps. */
static void migration_throttle_block(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/5",
	          .status = "0 RUNNING; 10 VIRT_PREEMPTED; 60 RUNNING; 70 BLOCKED; 80 PREEMPTED; 83 RUNNING; 90 BLOCKED",
	          .woken_by = "80 A/6; 85 host/42", .woken_in = "80 thread");
	world_has(&w, "A/CPU0", .pcpu = "0 1; 20 2",
	          .status = "0 RUNNING; 10 PREEMPTED; 40 HOST_BLOCKED; 55 PREEMPTED; 60 RUNNING; 70 IDLE; 80 WAKING; 82 VMM; "
	                    "83 RUNNING; 90 IDLE", .current = "0 5; 70 0; 83 5; 90 0");
	world_has(&w, "host/100",
	          .status = "0 RUNNING; 10 PREEMPTED; 40 BLOCKED; 55 PREEMPTED; 60 RUNNING; 70 BLOCKED; 80 PREEMPTED; "
	                    "82 RUNNING; 90 BLOCKED", .cpu = "0 1; 20 2", .woken_by = "55 host/43",
	          .woken_in = "55 thread");
	world_has(&w, "host/CPU1", .current = "0 100; 10 42");
	world_has(&w, "host/CPU2", .current = "0 43; 25 0; 50 43; 60 100; 70 43; 82 100; 90 0");
	world_has(&w, "B/CPU0", .current = "0 0");
	world_close(&w, 0, 99);
	world_check_flow(&w, "A/5", WHOLE,
	                 "0-9 running A/5 alpha @1; 10-19 preempting host/42 burnP6 @1; 20-24 preempting host/43 qemu-io @2; "
	                 "25-39 idle-cpu @2; 40-54 waiting host/43 qemu-io; 55-59 preempting host/43 qemu-io @2; "
	                 "60-69 running A/5 alpha @2; 70-79 waiting A/6 beta; 80-81 preempting host/43 qemu-io @2; "
	                 "82-82 hypervisor A/0 swapper @2; 83-89 running A/5 alpha @2; 90-99 waiting");
	world_check_flow(&w, "host/100", 0, 59,
	                 "0-9 running host/100 CPU 0/KVM @1; 10-19 preempting host/42 burnP6 @1; "
	                 "20-24 preempting host/43 qemu-io @2; 25-39 idle-cpu @2; 40-54 waiting host/43 qemu-io; "
	                 "55-59 preempting host/43 qemu-io @2");
	world_release(&w);
}

/* If no event shows whether the waker was the current thread or a handler, the waker is unknown. The idle task of an
 * idle CPU is no waker. */
static void untold_context(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/5",
	          .status = "0 BLOCKED; 10 RUNNING; 20 BLOCKED; 30 RUNNING; 40 BLOCKED; 50 RUNNING; 60 BLOCKED; 70 RUNNING",
	          .woken_by = "10 A/6; 30 A/6; 50 A/6; 70 A/0", .woken_in = "10 thread; 30 -; 50 timer; 70 -");
	world_has(&w, "A/CPU0", .status = "0 RUNNING", .current = "0 0; 10 5; 20 0; 30 5; 40 0; 50 5; 60 0; 70 5");
	world_close(&w, 0, 79);
	world_check_flow(&w, "A/5", 0, 79,
	                 "0-9 waiting A/6 beta; 10-19 running A/5 alpha; 20-29 waiting; 30-39 running A/5 alpha; "
	                 "40-49 waiting A/-1 timer; 50-59 running A/5 alpha; 60-69 waiting A/0 swapper; 70-79 "
	                 "running A/5 alpha");
	world_release(&w);
}

/* A limit has no culprit, whichever thread has the CPU; this holds for the guest's thread and for the vCPU's. */
static void limited(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/5", .status = "0 VIRT_PREEMPTED");
	world_has(&w, "A/CPU0", .pcpu = "0 1", .status = "0 PREEMPTED; 60 HOST_BLOCKED; 80 PREEMPTED", .current = "0 5",
	          .out_by = "10 quota; 50 -; 60 pause; 90 -");
	world_has(&w, "host/100", .status = "0 PREEMPTED; 60 BLOCKED; 80 PREEMPTED", .cpu = "0 1");
	world_has(&w, "host/CPU1", .current = "0 42; 30 0; 40 43; 70 42");
	world_has(&w, "B/CPU0", .current = "0 0");
	world_close(&w, 0, 99);
	world_check_flow(&w, "A/5", WHOLE,
	                 "0-9 preempting host/42 burnP6 @1; 10-49 limited quota @1; 50-59 preempting host/43 qemu-io @1; "
	                 "60-89 limited pause @1; 90-99 preempting host/42 burnP6 @1");
	world_check_flow(&w, "host/100", WHOLE,
	                 "0-9 preempting host/42 burnP6 @1; 10-49 limited quota @1; 50-59 preempting host/43 qemu-io @1; "
	                 "60-79 waiting; 80-89 limited pause @1; 90-99 preempting host/42 burnP6 @1");
	struct steal s;
	struct error err = ERROR_INIT;
	const int64_t want[] = { 40, 30, 30 };  /* cases: quota, pause, limit of the host */
	assert_int_equal(steal_matrix(&w.catalog, STEAL_BY_MACHINE, NULL, 0, 99, &s, &err), 0);
	for (size_t i = 0; i < s.cells; i++) {
		const struct steal_cell *c = &s.cell[i];
		if (c->victim.machine != catalog_find_machine(&w.catalog, "A"))
			continue;
		const char *name = s.name[c->culprit.name];
		assert_int_equal(c->ns, want[c->culprit.kind == FLOW_PREEMPTING ? 2 : strcmp(name, "pause") == 0]);
		assert_int_equal(c->culprit.kind == FLOW_LIMITED, c->culprit.machine < 0);
	}
	steal_release(&s);
	world_release(&w);
}

/* With the paper's states, HOST_BLOCKED is folded into PREEMPTED: the status of the host thread distinguishes them. */
static void paper_states(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/5", .status = "0 VIRT_PREEMPTED");
	world_has(&w, "A/CPU0", .pcpu = "0 1", .status = "0 PREEMPTED", .current = "0 5");
	world_has(&w, "host/100", .status = "0 BLOCKED; 7 PREEMPTED");
	world_has(&w, "host/CPU1", .current = "0 42");
	world_has(&w, "B/CPU0", .current = "0 0");
	world_close(&w, 0, 9);
	world_check_flow(&w, "A/5", WHOLE, "0-6 waiting; 7-9 preempting host/42 burnP6 @1");
	world_release(&w);
}

/* Lost events and contradictions have no culprit. */
static void lost(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/5",
	          .status = "0 VIRT_PREEMPTED; 40 UNKNOWN; 50 PREEMPTED; 60 RUNNING; 70 BLOCKED; 80 UNKNOWN; 90 -; 95 RUNNING",
	          .woken_by = "0 A/6");
	world_has(&w, "A/CPU0", .pcpu = "0 1; 35 -", .status = "0 PREEMPTED; 10 UNKNOWN; 20 PREEMPTED; 45 RUNNING",
	          .current = "0 5; 55 -");
	world_has(&w, "host/CPU1", .current = "0 42; 20 -; 25 100; 30 42");
	world_has(&w, "B/CPU0", .current = "0 0");
	world_close(&w, 0, 99);
	/* 20: events of the pCPU lost; 25: the vCPU waits for itself; 35: no pCPU; 50: waits for itself; 55: events of the
	 * guest lost */
	world_check_flow(&w, "A/5", WHOLE,
	                 "0-9 preempting host/42 burnP6 @1; 10-19 unknown; 20-29 unknown @1; 30-34 preempting "
	                 "host/42 burnP6 @1; "
	                 "35-59 unknown; 60-69 running A/5 alpha; 70-79 waiting; 80-89 unknown; 90-94 unknown not alive; "
	                 "95-99 running A/5 alpha");
	world_release(&w);
}

/* Host only: containers; a TID that is not in the host's history. */
static void containers(void **state)
{
	struct world w;
	(void)state;
	world_open(&w);
	world_has(&w, "host/1", .status = "0 RUNNING; 10 PREEMPTED; 30 RUNNING", .cpu = "0 0", .name = "0 one");
	world_has(&w, "host/2", .name = "0 two");
	world_row(&w, "/Containers/web/Threads/2/Status", "0 RUNNING; 5 PREEMPTED; 10 RUNNING");
	world_row(&w, "/Containers/web/Threads/2/CPU", "0 0");
	world_has(&w, "host/CPU0", .current = "0 1; 10 2; 20 99; 30 1");
	world_close(&w, 0, 39);
	world_check_flow(&w, "host/1", WHOLE, "0-9 running host/1 one @0; 10-19 preempting web/2 two @0; "
	                 "20-29 preempting host/99 @0; 30-39 running host/1 one @0");
	world_check_flow(&w, "web/two", WHOLE,
	                 "0-4 running web/2 two @0; 5-9 preempting host/1 one @0; 10-39 running web/2 two @0");
	world_release(&w);
}

/* Nested guests: N is a VM inside A; A's thread 8 executes its vCPU. */
static void nested(void **state)
{
	struct world w;
	(void)state;
	two_vms(&w, true);
	world_row(&w, "/Virtual Machines/N/Parent", "0 A");
	world_has(&w, "A/8", .status = "0 RUNNING; 10 VIRT_PREEMPTED; 20 RUNNING; 30 PREEMPTED; 50 RUNNING", .cpu = "0 0",
	          .name = "0 CPU 0/KVM", .vm = "0 N/0");
	world_has(&w, "A/5", .status = "0 BLOCKED; 20 PREEMPTED; 30 RUNNING; 50 BLOCKED");
	world_has(&w, "A/CPU0", .pcpu = "0 1", .status = "0 RUNNING; 10 PREEMPTED; 20 RUNNING; 40 PREEMPTED; 45 RUNNING",
	          .current = "0 8; 30 5; 50 8");
	world_has(&w, "B/CPU0", .current = "0 7");
	world_has(&w, "host/CPU1", .current = "0 100; 10 200; 20 100; 40 42; 45 100");
	world_has(&w, "N/CPU0", .pcpu = "0 0", .status = "0 RUNNING; 30 PREEMPTED; 50 VMM; 52 RUNNING", .current = "0 9");
	world_has(&w, "N/9", .status = "0 RUNNING; 30 VIRT_PREEMPTED; 52 RUNNING", .cpu = "0 0", .name = "0 inner");
	world_close(&w, 0, 59);
	world_check_flow(&w, "N/9", WHOLE,
	                 "0-9 running N/9 inner @1; 10-19 preempting B/7 cc @1; 20-29 running N/9 inner @1; "
	                 "30-39 preempting A/5 alpha @1; 40-44 preempting host/42 burnP6 @1; 45-49 preempting A/5 alpha @1; "
	                 "50-51 hypervisor N/9 inner @1; 52-59 running N/9 inner @1");
	/* and nested guests as culprits: the nested guest preempts A's thread 5 */
	world_check_flow(&w, "A/5", 20, 29, "20-29 preempting N/9 inner @1");
	world_release(&w);
}

/* One TID is A's vCPU, then an ordinary thread, then B's vCPU. */
static void lives_of_a_tid(void **state)
{
	struct world w;
	(void)state;
	world_open(&w);
	world_has(&w, "host/100", .name = "0 CPU 0/KVM; 20 make; 30 CPU 0/KVM", .vm = "0 A/0; 20 -; 30 B/0");
	world_has(&w, "host/42", .status = "0 PREEMPTED", .cpu = "0 1");
	world_has(&w, "host/CPU1", .current = "0 100");
	world_has(&w, "A/CPU0", .host_thread = "0 100; 20 -; 35 101", .current = "0 5");
	world_has(&w, "B/CPU0", .host_thread = "0 101; 30 100", .current = "0 7");
	world_has(&w, "host/101", .vm = "0 B/0; 30 -");
	world_has(&w, "A/5", .name = "0 alpha");
	world_has(&w, "B/7", .name = "0 cc");
	world_close(&w, 0, 39);
	world_check_flow(&w, "host/42", WHOLE, "0-19 preempting A/5 alpha @1; 20-29 preempting host/100 make @1; "
	                 "30-39 preempting B/7 cc @1");
	world_release(&w);
}

/* Paths with values of unexpected types, and machines that are each other's guest: nothing is found, and no query hangs. */
static void hostile(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	struct flow f;
	(void)state;
	world_open(&w);
	for (int i = 0; i < 2; i++) {
		const char *me = i ? "B" : "A";
		world_rowf(&w, i ? "0 A/0" : "0 B/0", "/Virtual Machines/%s/Threads/5/VM", me);
		world_rowf(&w, "0 0", "/Virtual Machines/%s/Threads/5/CPU", me);
		world_rowf(&w, "0 RUNNING; 10 PREEMPTED; 20 VIRT_PREEMPTED; 30 BLOCKED", "/Virtual Machines/%s/Threads/5/Status",
		           me);
		world_rowf(&w, "0 RUNNING; 5 PREEMPTED; 15 VMM; 25 WAKING", "/Virtual Machines/%s/CPUs/CPU0/Status", me);
		world_rowf(&w, "0 5", "/Virtual Machines/%s/CPUs/CPU0/Current Thread", me);
		world_rowf(&w, "0 0; 12 -7", "/Virtual Machines/%s/CPUs/CPU0/pCPU", me);
	}
	world_has(&w, "A/6", .vm = "0 A/0");
	world_has(&w, "A/7", .vm = "0 /");
	world_has(&w, "A/8", .vm = "0 B/99999999999999999999");
	world_has(&w, "A/99999999999999999999", .name = "0 far");
	world_row(&w, "/Virtual Machines/A/Threads/x/Name", "0 no tid");
	world_has(&w, "host/1", .status = "0 RUNNING; 20 PREEMPTED; 40 BLOCKED; 45 RUNNING", .cpu = "0 99999999999; 25 0",
	          .woken_by = "0 A/99999999999; 45 /");
	world_has(&w, "host/CPU0", .current = "0 -5; 30 99999999999");
	uint32_t wrong = history_attribute(w.b, "/Host/CPUs/CPU0/Interrupt", HISTORY_INT, 0, &err);
	assert_int_equal(history_set(w.b, 0, wrong, 77, &err), 0);
	wrong = history_attribute(w.b, "/Host/Threads/2/Status", HISTORY_STRING, 0, &err);
	assert_int_equal(history_set_string(w.b, 0, wrong, "RUNNING", &err), 0);
	world_close(&w, 0, 49);
	for (uint32_t i = 0; i < w.catalog.threads; i++)
		if (query_answer(flow_open(&w.catalog, &(struct target){ TARGET_THREAD, i }, WHOLE, NULL, &err), &f, &err) == 0) {
			world_check_tiling(&f);
			flow_release(&f);
		}
	world_check_flow(&w, "host/1", WHOLE, "0-19 running host/1; 20-24 unknown; 25-39 unknown @0; 40-44 waiting; "
	                 "45-49 running host/1 @0");
	struct target second = world_target(&w, "host/2");
	assert_int_equal(query_answer(flow_open(&w.catalog, &second, WHOLE, NULL, &err), &f, &err), -1);
	struct steal s;
	assert_int_equal(steal_matrix(&w.catalog, STEAL_BY_MACHINE, NULL, WHOLE, &s, &err), 0);
	steal_release(&s);
	world_release(&w);
}

static void gaps(void **state)
{
	struct world w;
	struct gap g;
	struct error err = ERROR_INIT;
	(void)state;
	two_vms(&w, true);
	world_has(&w, "A/CPU0",
	          .status = "0 RUNNING; 10 PREEMPTED; 20 HOST_BLOCKED; 50 PREEMPTED; 55 RUNNING; 60 PREEMPTED; 62 IDLE; "
	                    "70 WAKING; 75 PREEMPTED");
	world_has(&w, "A/5", .status = "0 PREEMPTED; 5 VIRT_PREEMPTED; 9 RUNNING; 90 PREEMPTED; 91 -");
	world_has(&w, "B/CPU0",
	          .status = "0 RUNNING; 10 HOST_BLOCKED; 20 PREEMPTED; 25 HOST_BLOCKED; 30 PREEMPTED; 40 RUNNING");
	world_close(&w, 0, 99);
	struct target cpu = world_target(&w, "A/vCPU0"), th = world_target(&w, "A/alpha"), vm = world_target(&w, "A");
	assert_int_equal(gap_find(&w.catalog, &cpu, 0, 1, &g, &err), 1);
	assert_int_equal(g.start, 10);
	assert_int_equal(g.end, 54);
	assert_string_equal(history_state_name(w.h, w.catalog.cpu[cpu.index].status, (unsigned)g.state), "HOST_BLOCKED");
	struct target b = world_target(&w, "B/vCPU0");
	assert_int_equal(gap_at(&w.catalog, &b, 25, &g, &err), 1);  /* 15 ns in each of the two states */
	assert_int_equal(g.end, 39);
	assert_string_equal(history_state_name(w.h, w.catalog.cpu[b.index].status, (unsigned)g.state), "PREEMPTED");
	for (int64_t t = 10; t < 60; t++) {
		assert_int_equal(gap_find(&w.catalog, &cpu, t, 1, &g, &err), 1);
		assert_int_equal(g.start, 60);
		assert_int_equal(g.end, 61);
	}
	assert_int_equal(gap_find(&w.catalog, &cpu, 60, 1, &g, &err), 1);
	assert_int_equal(g.start, 70);
	assert_int_equal(g.end, 99);
	assert_int_equal(gap_find(&w.catalog, &cpu, 80, 1, &g, &err), 0);
	for (int64_t t = 71; t < 100; t++) {
		assert_int_equal(gap_find(&w.catalog, &cpu, t, -1, &g, &err), 1);
		assert_int_equal(g.start, 60);
	}
	assert_int_equal(gap_find(&w.catalog, &cpu, 54, -1, &g, &err), 0);
	assert_int_equal(gap_at(&w.catalog, &cpu, 30, &g, &err), 1);
	assert_int_equal(g.start, 10);
	assert_int_equal(gap_at(&w.catalog, &cpu, 55, &g, &err), 0);
	assert_int_equal(gap_find(&w.catalog, &th, 9, -1, &g, &err), 1);
	assert_int_equal(g.start, 0);
	assert_int_equal(g.end, 8);
	int64_t ns;
	assert_int_equal(steal_time(&w.catalog, &cpu, 0, 99, &ns, &err), 0);
	assert_int_equal(ns, 45 + 2 + 30);
	assert_int_equal(steal_time(&w.catalog, &cpu, 50, 60, &ns, &err), 0);
	assert_int_equal(ns, 6);
	assert_int_equal(steal_time(&w.catalog, &vm, 0, 99, &ns, &err), 0);
	assert_int_equal(ns, 77);
	assert_int_equal(steal_time(&w.catalog, &th, 0, 99, &ns, &err), 0);
	assert_int_equal(ns, 10);
	world_release(&w);
}

static void targets(void **state)
{
	struct world w;
	struct target s;
	struct error err = ERROR_INIT;
	char text[256];
	(void)state;
	world_open(&w);
	world_row(&w, "/Virtual Machines/a%2fb/Threads/7/Name", "0 x\033[2J; 1 kworker/0:1");
	world_row(&w, "/Virtual Machines/a%2fb/Threads/8/Name", "0 twin");
	world_row(&w, "/Virtual Machines/a%2fb/Threads/9/Name", "0 was; 5 twin");
	world_row(&w, "/Virtual Machines/a%2fb/CPUs/CPU10/Status", "0 IDLE");
	world_row(&w, "/Virtual Machines/a%2fb/CPUs/CPU9/Status", "0 IDLE");
	world_row(&w, "/Virtual Machines/a%2fb/CPUs/CPUx/Status", "0 IDLE");
	world_close(&w, 0, 9);
	assert_int_equal(w.catalog.machines, 1);
	assert_int_equal(w.catalog.cpus, 2);
	assert_int_equal(w.catalog.cpu[0].number, 9);
	s = world_target(&w, "a/b/kworker/0:1");
	assert_string_equal(catalog_target_text(&w.catalog, &s, text, sizeof text), "a/b/7 kworker/0:1");
	assert_int_equal(world_target(&w, "a/b/x\\e[2J").index, s.index);
	s = world_target(&w, "a/b/vCPU10");
	assert_string_equal(catalog_target_text(&w.catalog, &s, text, sizeof text), "a/b/vCPU10");
	assert_int_equal(catalog_parse_target(&w.catalog, "a/b/twin", &s, &err), -1);
	assert_string_equal(err.remedy, "name one of these: a/b/8, a/b/9");
	assert_int_equal(world_target(&w, "kworker/0:1").index, world_target(&w, "a/b/7").index);  /* of any machine */
	assert_int_equal(world_target(&w, "a/b/kwo").index, world_target(&w, "a/b/7").index);
	assert_int_equal(world_target(&w, "a/?/*:1").index, world_target(&w, "a/b/7").index);
	assert_int_equal(world_target(&w, "a/b/wa*").index, world_target(&w, "a/b/9").index);
	assert_int_equal(world_target(&w, "a/").kind, TARGET_MACHINE);
	assert_int_equal(catalog_parse_target(&w.catalog, "a/b/tw*", &s, &err), -1);
	assert_string_equal(err.remedy, "name one of these: a/b/8, a/b/9");
	assert_string_equal(err.text, "a/b/tw*: 2 threads have that name");
	assert_int_equal(catalog_parse_target(&w.catalog, "a/b/tiwn", &s, &err), -1);
	assert_non_null(strstr(err.remedy, "did you mean a/b/twin?"));
	assert_int_equal(catalog_parse_target(&w.catalog, "a/b/*", &s, &err), -1);
	assert_string_equal(err.text, "a/b/*: 5 targets match");
	assert_int_equal(catalog_parse_target(&w.catalog, "c/1", &s, &err), -1);
	assert_non_null(strstr(err.remedy, "a/b"));
	assert_int_equal(catalog_parse_target(&w.catalog, "a/b/77", &s, &err), -1);
	assert_int_equal(catalog_parse_target(&w.catalog, "a/b/CPUx", &s, &err), -1);
	assert_int_equal(catalog_parse_target(&w.catalog, "", &s, &err), -1);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fig8),
		cmocka_unit_test(culprits),
		cmocka_unit_test(guest_irq_and_untraced),
		cmocka_unit_test(migration_throttle_block),
		cmocka_unit_test(untold_context),
		cmocka_unit_test(limited),
		cmocka_unit_test(paper_states),
		cmocka_unit_test(lost),
		cmocka_unit_test(containers),
		cmocka_unit_test(nested),
		cmocka_unit_test(lives_of_a_tid),
		cmocka_unit_test(hostile),
		cmocka_unit_test(gaps),
		cmocka_unit_test(targets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
