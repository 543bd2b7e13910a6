/* Sources of stolen time on fake kernels, and the TSC frequency from clock samples. The tracefs of these tests is a
 * directory: definitions of probes are appended to a plain file. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/guest_only.h"
#include "record/probe_definitions.h"
#include "record/proc.h"
#include "record_tree.h"

#define TRACEFS "sys/kernel/tracing"

static struct record_tree tree;
static const struct guest_platform kvm = { .is_guest = true, .kind = HYPERVISOR_KVM, .steal = OFFERED_YES };

static int set_up(void **state)
{
	(void)state;
	tree_host(&tree, 1);
	tree_text(&tree, TRACEFS "/per_cpu/cpu0/stats", "");
	tree_text(&tree, TRACEFS "/per_cpu/cpu1/stats", "");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

static char *own_group(void)
{
	return mem_printf("stealscope_%d_%llu", (int)getpid(), (unsigned long long)proc_start_time("", getpid()));
}

/* Creates the files of an event that a probe defines. */
static void add_event(const char *suffix, const char *name)
{
	char *group = own_group(), *path = mem_printf(TRACEFS "/events/%s%s/%s/format", group, suffix, name);
	tree_text(&tree, path, "name: x\n");
	free(group);
	free(path);
}

/* Adds what a kernel with event probes or with kernel probes has. */
static void add_kernel(const char *readme, const char *symbols)
{
	tree_text(&tree, TRACEFS "/README", readme);
	tree_text(&tree, TRACEFS "/dynamic_events", "");
	tree_text(&tree, TRACEFS "/kprobe_events", "");
	tree_text(&tree, "proc/kallsyms", symbols);
	add_event("", "steal_switch");
	add_event("", "steal_timer");
	add_event("", "steal");
}

static void open_probes(struct steal_probes *p, const struct guest_platform *h)
{
	char *tracefs = mem_printf("%s/" TRACEFS, tree.root);
	steal_probes_open(p, tree.root, tracefs, h, 0, STEAL_NONE);
	free(tracefs);
}

static void assert_defined(const char *text)
{
	char *all = tree_read(&tree, TRACEFS "/dynamic_events");
	if (!strstr(all, text))
		printf("missing '%s' in:\n%s", text, all);
	assert_non_null(strstr(all, text));
	free(all);
}

static bool is_x86(void)
{
	struct utsname name;
	uname(&name);
	return strcmp(name.machine, "x86_64") == 0;
}

static const char old_symbols[] = "0000000000033080 d steal_time\nffffffff82a0 D __per_cpu_offset\n"
	"ffffffff81000000 t kvm_steal_clock\nffffffff81000100 t finish_task_switch.isra.0\nffffffff81000200 T hrtimer_interrupt\n";

static void event_probes_read_the_counter_of_each_cpu(void **state)
{
	struct steal_probes p;
	(void)state;
	add_kernel("  e[:[<group>/][<event>]] <attached-group>", old_symbols);
	open_probes(&p, &kvm);
	assert_int_equal(p.source, STEAL_EVENT_PROBES);
	assert_int_equal(p.events, 2);
	assert_defined("/steal_switch sched.sched_switch cpu0=+0x33080(@__per_cpu_offset+0):u64 "
	               "cpu1=+0x33080(@__per_cpu_offset+8):u64\n");
	assert_defined("/steal_timer timer.hrtimer_expire_entry cpu0=+0x33080(");
	steal_probes_close(&p);
	assert_defined("-:stealscope_");
}

static void addresses_of_variables_are_signed(void **state)
{
	struct steal_probes p;
	(void)state;
	add_kernel("  e[:[<group>/][<event>]] <attached-group>", "ffffffff83a1c080 d steal_time\nffffffff82a0 D __per_cpu_offset\n");
	open_probes(&p, &kvm);
	assert_int_equal(p.source, STEAL_EVENT_PROBES);
	assert_defined("cpu1=-0x7c5e3f80(@__per_cpu_offset+8):u64");
	steal_probes_close(&p);
}

static void xen_has_two_fields_per_cpu(void **state)
{
	const struct guest_platform xen = { .is_guest = true, .kind = HYPERVISOR_XEN, .steal = OFFERED_YES };
	struct steal_probes p;
	(void)state;
	add_kernel("  e[:[<group>/][<event>]] <attached-group>", "0000000000001000 d xen_runstate\nffffffff82a0 D __per_cpu_offset\n");
	open_probes(&p, &xen);
	assert_int_equal(p.source, STEAL_EVENT_PROBES);
	assert_defined("cpu0=+0x1018(@__per_cpu_offset+0):u64 offline0=+0x1028(@__per_cpu_offset+0):u64");
	steal_probes_close(&p);
}

static void kernel_probes_replace_event_probes(void **state)
{
	struct steal_probes p;
	(void)state;
	add_kernel("  p[:[<group>/][<event>]] [<module>:]<symbol>", old_symbols);
	open_probes(&p, &kvm);
	assert_int_equal(p.source, STEAL_KERNEL_PROBES);
	assert_non_null(p.not_used[STEAL_EVENT_PROBES]);
	assert_defined("/steal_switch finish_task_switch.isra.0 cpu0=+0x33080(");
	assert_defined("/steal_timer hrtimer_interrupt cpu0=+0x33080(");
	steal_probes_close(&p);
}

static void runtime_needs_a_kernel_that_subtracts_stolen_time(void **state)
{
	struct steal_probes p;
	struct utsname name;
	char *config;
	(void)state;
	uname(&name);
	config = mem_printf("boot/config-%s", name.release);
	add_kernel("", "ffffffff81000000 t kvm_steal_clock\n");
	tree_text(&tree, TRACEFS "/events/sched/sched_stat_runtime/format", "name: sched_stat_runtime\n");
	tree_text(&tree, config, "#\nCONFIG_HZ=250\nCONFIG_PARAVIRT_TIME_ACCOUNTING=y\n");
	open_probes(&p, &kvm);
	assert_int_equal(p.source, STEAL_RUNTIME);
	assert_string_equal(p.event[0], "sched/sched_stat_runtime");
	steal_probes_close(&p);
	tree_text(&tree, config, "#\nCONFIG_HZ=250\n# CONFIG_PARAVIRT_TIME_ACCOUNTING is not set\n");
	open_probes(&p, &kvm);
	assert_int_equal(p.source, STEAL_RETURN_PROBE);
	assert_defined("/steal kvm_steal_clock ret=$retval\n");
	steal_probes_close(&p);
	free(config);
}

static void no_source_without_a_counter(void **state)
{
	const struct guest_platform hyperv = { .is_guest = true, .kind = HYPERVISOR_HYPERV, .steal = OFFERED_NO, .why = "none" };
	struct steal_probes p;
	(void)state;
	add_kernel("  e[:[<group>/][<event>]] <attached-group>", old_symbols);
	open_probes(&p, &hyperv);
	assert_int_equal(p.source, STEAL_NONE);
	assert_int_equal(p.events, 0);
	assert_string_equal(p.not_used[STEAL_EVENT_PROBES], "none");
	steal_probes_close(&p);
	char *all = tree_read(&tree, TRACEFS "/dynamic_events");
	assert_string_equal(all, "");
	free(all);
}

static void many_cpus_have_events_of_their_own(void **state)
{
	struct steal_probes p;
	(void)state;
	for (int i = 0; i < 6; i++) {
		char *path = mem_printf(TRACEFS "/per_cpu/cpu%d/stats", i), suffix[16];
		snprintf(suffix, sizeof suffix, "_c%d", i);
		tree_text(&tree, path, "");
		add_event(suffix, "steal_switch");
		add_event(suffix, "steal_timer");
		free(path);
	}
	add_kernel("  e[:[<group>/][<event>]] <attached-group>", old_symbols);
	open_probes(&p, &kvm);
	assert_int_equal(p.events, 12);
	assert_defined("_c5/steal_switch sched.sched_switch cpu5=+0x33080(@__per_cpu_offset+40):u64\n");
	steal_probes_close(&p);
}

static void probes_of_dead_recorders_are_removed(void **state)
{
	size_t failed;
	(void)state;
	add_kernel("", "");
	tree_text(&tree, TRACEFS "/events/stealscope_4190000_77/steal_switch/format", "");
	tree_text(&tree, TRACEFS "/events/stealscope_4190001_78/steal_switch/format", "");
	tree_text(&tree, "proc/4190001/task/4190001/stat", "4190001 (a zombie) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 78 0 0\n");
	char *tracefs = mem_printf("%s/" TRACEFS, tree.root);
	char *stat = mem_printf("proc/%d/stat", (int)getpid()), *own = proc_text("", NULL, "/proc/%d/stat", (int)getpid());
	char *task = mem_printf("proc/%d/task/%d/stat", (int)getpid(), (int)getpid());
	tree_text(&tree, stat, own);
	tree_text(&tree, task, own);
	assert_int_equal(probes_clean(tree.root, tracefs, &failed), 2);
	assert_int_equal(failed, 0);
	assert_defined("-:stealscope_4190000_77/steal_switch\n");
	assert_defined("-:stealscope_4190001_78/steal_switch\n");
	char *const all[] = { tracefs, stat, own, task };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void a_guest_without_vms_is_recorded_alone(void **state)
{
	struct record_options o = { .root = tree.root };
	(void)state;
	assert_false(guest_only_is_wanted(&o, 0, 0));  /* not a guest */
	tree_text(&tree, "proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc hypervisor\n");
	assert_true(guest_only_is_wanted(&o, 0, 0));
	assert_false(guest_only_is_wanted(&o, 1, 0));  /* a VM runs here */
	assert_false(guest_only_is_wanted(&o, 0, 1));  /* a process that may be a VM */
	o.host_only = true;
	assert_false(guest_only_is_wanted(&o, 0, 0));
	o.host_only = false;
	o.n_requested = 1;
	assert_false(guest_only_is_wanted(&o, 0, 0));
	o.guest_only = true;
	assert_true(guest_only_is_wanted(&o, 1, 1));
}

static void dom0_is_no_guest(void **state)
{
	const struct record_options o = { .root = tree.root };
	(void)state;
	tree_text(&tree, "proc/cpuinfo", "flags\t\t: fpu tsc hypervisor\n");
	tree_text(&tree, "sys/hypervisor/type", "xen\n");
	assert_true(guest_only_is_wanted(&o, 0, 0));
	tree_text(&tree, "proc/xen/capabilities", "control_d\n");
	assert_false(guest_only_is_wanted(&o, 0, 0));
}

static void frequency_excludes_a_pause(void **state)
{
	struct clock_sample s[6] = { { 0 } };
	size_t segments, excluded;
	(void)state;
	for (size_t i = 0; i < 6; i++)  /* 2.5 GHz; CLOCK_MONOTONIC stood still for 0.4 s in the third second */
		s[i] = (struct clock_sample){ true, 1000 + i * 2500000000 + (i > 2 ? 1000000000 : 0), 1 + (int64_t)i * 1000000000, 1, 0 };
	assert_int_equal(guest_only_frequency(s, 6, &segments, &excluded), 2500000000000);
	assert_int_equal(segments, 5);
	assert_int_equal(excluded, 1);
	assert_int_equal(guest_only_frequency(s, 1, &segments, &excluded), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(event_probes_read_the_counter_of_each_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(addresses_of_variables_are_signed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(xen_has_two_fields_per_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernel_probes_replace_event_probes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(runtime_needs_a_kernel_that_subtracts_stolen_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_source_without_a_counter, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_cpus_have_events_of_their_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(probes_of_dead_recorders_are_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_guest_without_vms_is_recorded_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dom0_is_no_guest, set_up, tear_down),
		cmocka_unit_test(frequency_excludes_a_pause),
	};
	if (!is_x86()) {
		printf("the counters of these tests exist on x86_64 only\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
