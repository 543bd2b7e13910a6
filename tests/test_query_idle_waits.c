/* query/: wakers of idle vCPUs. */
#include "test.h"

#include "base/vcpu_name.h"
#include "query_world.h"

#define H "/Host/Threads/"

static void thread(struct world *w, int tid, const char *name, const char *pid)
{
	world_rowf(w, "0 BLOCKED", H "%d/Status", tid);
	world_rowf(w, name, H "%d/Name", tid);
	world_rowf(w, pid, H "%d/PID", tid);
}

static void make(struct world *w)
{
	world_open(w);
	world_has(w, "host/40",
	          .status = "0 RUNNING; 10 BLOCKED; 20 RUNNING; 30 BLOCKED; 50 PREEMPTED; 53 RUNNING; 60 BLOCKED; 70 RUNNING; "
	                    "80 BLOCKED; 90 RUNNING; 100 BLOCKED; 110 RUNNING; 120 BLOCKED; 130 RUNNING; 140 "
	                    "BLOCKED; 150 RUNNING; "
	                    "160 BLOCKED", .pid = "0 39",
	          .woken_by = "20 host/0; 50 host/41; 70 host/42; 90 host/43; 110 host/44; 130 host/7",
	          .woken_in = "20 timer; 50 thread; 130 irq/3-nvme; 150 -");
	thread(w, 41, "0 io", "0 39");
	thread(w, 42, "0 vhost-39", "0 42");
	thread(w, 43, "0 kvm", "0 39");
	thread(w, 44, "0 systemd", "0 1");
	world_has(w, "A/CPU0", .host_thread = "0 40",
	          .status = "0 RUNNING; 10 IDLE; 20 VMM; 25 RUNNING; 30 IDLE; 50 WAKING; 53 VMM; 55 RUNNING; 60 IDLE; 70 VMM; "
	                    "75 RUNNING; 80 IDLE; 90 VMM; 95 RUNNING; 100 IDLE; 110 VMM; 115 RUNNING; 120 IDLE; 130 VMM; "
	                    "135 RUNNING; 140 IDLE; 150 RUNNING; 160 HOST_BLOCKED");
	world_has(w, "A/CPU1", .host_thread = "0 43", .status = "0 IDLE");
	world_close(w, 0, 199);
}

static void check(const struct world *w, int64_t from, int64_t to, const char *want)
{
	struct wait_list l;
	struct error err = ERROR_INIT;
	char text[1000] = "";
	struct target s = world_target(w, "A/CPU0");
	assert_int_equal(query_answer(waits_open(&w->catalog, &s, from, to), &l, &err), 0);
	double share = 0;
	for (size_t i = 0; i < l.rows; i++) {
		const struct wait_row *r = &l.row[i];
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, "%s%s %d %s %d*%d", i ? "; " : "", wait_kind_name[r->kind],
		         (int)r->by.tid, l.name[r->by.name], (int)r->count, (int)r->total);
		share += r->share;
	}
	assert_string_equal(text, want);
	assert_true(!l.rows || (share > 0.999 && share < 1.001));
	waits_release(&l);
}

static void test_waits(void **state)
{
	(void)state;
	struct world w;
	make(&w);
	check(&w, 0, 35, "timer -1 timer 1*10; device 41 io 1*6");
	check(&w, 30, 75, "device 41 io 1*20; net 42 vhost-39 1*10");
	check(&w, 76, 112, "ipi 43 kvm 1*10; task 44 systemd 1*10");
	check(&w, 120, 139, "device -1 irq/3-nvme 1*10");
	check(&w, 140, 199, "unknown -1  1*10");  /* a sleep that is not an idle vCPU's */
	world_release(&w);
}

/* Recordings without processes: a thread that wakes a halted vCPU raises an interrupt for it. */
static void test_no_processes(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_has(&w, "host/40", .status = "0 RUNNING; 10 BLOCKED; 20 RUNNING; 30 BLOCKED; 40 RUNNING; 50 BLOCKED; 60 RUNNING",
	          .woken_by = "20 host/41; 40 host/42; 60 host/43", .woken_in = "20 thread");
	thread(&w, 41, "0 IO io0", "0 -");
	thread(&w, 42, "0 vhost-39", "0 -");
	thread(&w, 43, "0 ksoftirqd/0", "0 -");
	world_has(&w, "A/CPU0", .host_thread = "0 40",
	          .status = "0 RUNNING; 10 IDLE; 20 VMM; 25 RUNNING; 30 IDLE; 40 VMM; 45 RUNNING; 50 IDLE; 60 RUNNING");
	world_close(&w, 0, 99);
	check(&w, 0, 25, "device 41 IO io0 1*10");
	check(&w, 26, 45, "net 42 vhost-39 1*10");
	check(&w, 46, 99, "unknown 43 ksoftirqd/0 1*10");
	world_release(&w);
}

/* No event shows that a vCPU is kicked out. If its monitor woke the vCPU, and the vCPU slept again without having
 * entered its guest, it was kicked out and then resumed; after an interrupt of a device it would have entered. */
static void test_called_back(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_has(&w, "host/40", .pid = "0 39",
	          .status = "0 RUNNING; 10 BLOCKED; 20 RUNNING; 25 BLOCKED; 50 RUNNING; 60 BLOCKED; 80 RUNNING",
	          .woken_by = "20 host/41", .woken_in = "20 thread");
	thread(&w, 41, "0 io", "0 39");
	world_has(&w, "A/CPU0", .host_thread = "0 40",
	          .status = "0 RUNNING; 8 VMM; 10 IDLE; 20 VMM; 25 IDLE; 50 VMM; 52 IDLE; 55 RUNNING; 58 VMM; 60 IDLE; 80 VMM; "
	                    "85 RUNNING");
	world_close(&w, 0, 99);
	check(&w, 0, 22, "unknown 41 io 1*10");
	check(&w, 22, 55, "unknown 41 io 1*25");
	check(&w, 56, 99, "device 41 io 1*20");
	world_release(&w);
}

/* Kernel threads that work for a VM, by their names. */
static void test_vm_worker_names(void **state)
{
	(void)state;
	static const struct { const char *comm; int64_t pid; } cases[] = {
		{ "vhost-39", 39 }, { "kvm-pit/12345", 12345 }, { "vhost-2147483647", INT32_MAX },
		{ "", -1 }, { "vhost-", -1 }, { "vhost-0", -1 }, { "vhost-039", -1 }, { "vhost--3", -1 }, { "vhost-39x", -1 },
		{ "kvm-pit/", -1 }, { "kvm-pit-7", -1 }, { "vhost-2147483648", -1 }, { "vhost-99999999999999999999", -1 },
		{ "kvm-nx-lpage-re", -1 }, { "CPU 39/KVM", -1 },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(vm_worker_pid(cases[i].comm), cases[i].pid);
	assert_true(vm_worker_has_no_pid("kvm-nx-lpage-re"));
	assert_false(vm_worker_has_no_pid("kvm-pit/7"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_waits), cmocka_unit_test(test_no_processes),
	                                    cmocka_unit_test(test_called_back), cmocka_unit_test(test_vm_worker_names) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
