/* Tests of the control groups in session.yaml (record/cgroups.c). */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "record/session_facts.h"
#include "record_tree.h"

#define LINE(text) text, sizeof(text)

static struct record_tree tree;

static char *groups_text(struct cgroups *const *before, struct cgroups *const *after, size_t n)
{
	struct yaml_out *o = yaml_out_new();
	cgroups_put_weights(o, YAML_OUT_ROOT, before, after, n);
	for (size_t i = 0; i < n; i++)
		cgroups_put_threads(o, yaml_out_map(o, YAML_OUT_ROOT, i ? "b" : "a"), before[i], after[i]);
	return yaml_out_end(o);
}

/* Groups of vCPU threads; the weight of each group is listed once, in scheduler shares. Threads are omitted if their
 * group changed during the recording, or if one of the snapshots is missing. */
static void test_groups(void **state)
{
	(void)state;
	tree_begin(&tree);
	size_t n, hidden;
	tree_vm(&tree, 300, LINE("qemu\0-name\0web"), 2);
	tree_vm(&tree, 400, LINE("qemu\0-name\0db"), 2);
	tree_text(&tree, "proc/300/task/310/cgroup", "0::/vms/web/vcpu0\n");
	tree_text(&tree, "proc/300/task/311/cgroup", "0::/vms/web/vcpu1\n");
	tree_text(&tree, "proc/400/task/410/cgroup", "0::/vms/db\n");
	tree_text(&tree, "proc/400/task/411/cgroup", "0::/idle\n");
	tree_text(&tree, "sys/fs/cgroup/vms/cpu.weight", "100\n");
	tree_text(&tree, "sys/fs/cgroup/vms/web/cpu.weight", "39\n");
	tree_text(&tree, "sys/fs/cgroup/vms/db/cpu.weight", "10000\n");
	tree_text(&tree, "sys/fs/cgroup/vms/web/vcpu1/cpu.weight", "1\n");
	tree_text(&tree, "sys/fs/cgroup/idle/cpu.weight", "0\n");
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(n, 2);
	struct cgroups *before[2], *after[2];
	for (int i = 0; i < 2; i++)
		before[i] = cgroups_read_vm(tree.root, &vm[i]);
	for (int i = 0; i < 2; i++)
		after[i] = cgroups_read_vm(tree.root, &vm[i]);
	char *text = groups_text(before, after, 2);
	assert_string_equal(text,
	                    "weights:\n  /vms/web: 399\n  /vms: 1024\n  /vms/web/vcpu1: 10\n  /vms/db: 102400\n  /idle: 3\n"
	                    "a:\n  groups:\n    310: /vms/web/vcpu0\n    311: /vms/web/vcpu1\n"
	                    "b:\n  groups:\n    410: /vms/db\n    411: /idle\n");
	free(text);
	tree_text(&tree, "sys/fs/cgroup/vms/web/cpu.weight", "40\n");
	tree_text(&tree, "proc/400/task/411/cgroup", "0::/vms\n");
	cgroups_free(after[0]);
	cgroups_free(after[1]);
	for (int i = 0; i < 2; i++)
		after[i] = cgroups_read_vm(tree.root, &vm[i]);
	text = groups_text(before, after, 2);
	assert_string_equal(text, "weights:\n  /vms/db: 102400\n  /vms: 1024\na: {}\nb:\n  groups:\n    410: /vms/db\n");
	free(text);
	text = groups_text(before, (struct cgroups *[]){ NULL, NULL }, 2);
	assert_string_equal(text, "a: {}\nb: {}\n");
	free(text);
	for (int i = 0; i < 2; i++) {
		cgroups_free(before[i]);
		cgroups_free(after[i]);
	}
	vms_free(vm, n);
	tree_end(&tree);
}

/* Creates a host thread. runs: number of times it was scheduled; policy: scheduling policy (5: SCHED_IDLE). */
static void put_thread(int pid, int tid, const char *group, unsigned runs, unsigned policy)
{
	char path[64], text[256];
	snprintf(path, sizeof path, "proc/%d/task/%d/cgroup", pid, tid);
	snprintf(text, sizeof text, "0::%s\n", group);
	tree_text(&tree, path, text);
	snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", pid, tid);
	snprintf(text, sizeof text, "123456789 2345 %u\n", runs);
	tree_text(&tree, path, text);
	snprintf(path, sizeof path, "proc/%d/task/%d/stat", pid, tid);
	snprintf(text, sizeof text,
	         "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %u\n", tid, policy);
	tree_text(&tree, path, text);
}

/* Groups of host threads that are no vCPUs and ran during the recording; a SCHED_IDLE thread gets a synthetic group
 * below its own. */
static void test_host(void **state)
{
	(void)state;
	tree_begin(&tree);
	size_t n, hidden;
	tree_vm(&tree, 300, LINE("qemu\0-name\0web"), 1);
	tree_text(&tree, "sys/fs/cgroup/vms/cpu.weight", "100\n");
	tree_text(&tree, "sys/fs/cgroup/vms/web/cpu.weight", "50\n");
	tree_text(&tree, "sys/fs/cgroup/cron/cpu.weight", "200\n");
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(n, 1);
	struct cgroups *c[2];
	for (unsigned sample = 0; sample < 2; sample++) {
		put_thread(52, 52, "/cron", 7 + sample, 0);
		put_thread(52, 60, "/cron", 7 + sample, 5);
		put_thread(53, 53, "/cron", 7, 0);                             /* sleeps all the time */
		put_thread(54, 54, sample ? "/vms" : "/cron", 7 + sample, 0);  /* moved */
		put_thread(55, 55, "/", 7 + sample, 5);                        /* in no group */
		put_thread(56, 56, "/", 7 + sample, 0);
		put_thread(300, 300, "/vms/web", 4 + sample, 0);
		c[sample] = cgroups_read_host(tree.root, vm, n);
	}
	struct yaml_out *o = yaml_out_new();
	cgroups_put_weights(o, YAML_OUT_ROOT, &c[0], &c[1], 1);
	cgroups_put_threads(o, YAML_OUT_ROOT, c[0], c[1]);
	char *text = yaml_out_end(o);
	assert_string_equal(text, "weights:\n  /cron: 2048\n  /cron/sched_idle:60: 3\n  /sched_idle:55: 3\n"
	                          "  /vms/web: 512\n  /vms: 1024\n"
	                          "groups:\n  52: /cron\n  55: /sched_idle:55\n  60: /cron/sched_idle:60\n  300: /vms/web\n");
	free(text);
	cgroups_free(c[0]);
	cgroups_free(c[1]);
	vms_free(vm, n);
	tree_end(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups), cmocka_unit_test(test_host) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
