/* Tests of the control groups and of the topology in session.yaml (record/cgroups.c, record/topology_facts.c). */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/control_groups.h"
#include "record/control_group.h"
#include "record/session_facts.h"
#include "record/topology_facts.h"
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

static void check_name(const char *path, const char *want)
{
	char *name = control_group_name(tree.root, path);
	assert_string_equal(name, want);
	free(name);
}

#define ID_A "3f2a5c0912abdeadbeef00112233445566778899aabbccddeeff001122334455"
#define ID_B "77aa5c0912abdeadbeef00112233445566778899aabbccddeeff001122334455"
#define ID_C "01dd5c0912abdeadbeef00112233445566778899aabbccddeeff001122334455"
#define ID_NONE "99995c0912abdeadbeef00112233445566778899aabbccddeeff001122334455"
#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34.slice"

/* Names of units, of containers by the state files of their runtimes, and of pods; without state files the id remains. */
static void test_names(void **state)
{
	(void)state;
	tree_begin(&tree);
	tree_text(&tree, "var/lib/docker/containers/" ID_A "/config.v2.json", "{\"Name\": \"/api\", \"Config\": {}}");
	tree_text(&tree, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID_B "/config.json",
	          "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"web\", \"io.kubernetes.cri.sandbox-name\": "
	          "\"shop-1\", \"io.kubernetes.cri.sandbox-namespace\": \"prod\"}}");
	tree_text(&tree, "run/containers/storage/overlay-containers/" ID_C "/userdata/config.json",
	          "{\"annotations\": {\"io.kubernetes.pod.name\": \"db-0\", \"io.kubernetes.pod.namespace\": \"prod\"}}");
	tree_text(&tree, "var/lib/containers/storage/overlay-containers/containers.json",
	          "[7, {\"id\": \"" ID_NONE "0\"}, {\"id\": \"0123456789abcdef\", \"names\": [\"cache\"]}]");
	check_name("/system.slice/web.service", "web.service");
	check_name("/system.slice/web.service/worker", "web.service/worker");
	check_name("/user.slice/user-1000.slice/session-4.scope", "session-4.scope");
	check_name("/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope", "app-x.scope");
	check_name("/system.slice", "system.slice");
	check_name("/docker/" ID_A, "api");
	check_name("/system.slice/docker-" ID_A ".scope", "api");
	check_name("/docker/" ID_NONE, "docker/99995c0912ab");
	check_name(POD "/cri-containerd-" ID_B ".scope", "prod/shop-1/web");
	check_name("/kubepods/burstable/pod12ab-34/" ID_B "/nested", "prod/shop-1/web/nested");
	check_name(POD "/crio-" ID_C ".scope", "prod/db-0/sandbox");
	check_name(POD "/crio-" ID_NONE ".scope", "crio/99995c0912ab");
	check_name("/kubepods/burstable/pod12ab-34/" ID_NONE, "kubepods/99995c0912ab");
	check_name(POD, "kubepods-burstable-pod12ab_34.slice");
	check_name("/kubepods.slice/kubepods-pod12ab_34.slice/cri-containerd-" ID_B ".scope", "prod/shop-1/web");
	check_name("/kubepods/pod12ab-34/" ID_B, "prod/shop-1/web");
	check_name("/kubepods/besteffort/pod12ab-34/" ID_C, "prod/db-0/sandbox");
	check_name("/system.slice/containerd.service/kubepods-burstable-pod12ab_34.slice:cri-containerd:" ID_B, "prod/shop-1/web");
	check_name("/system.slice/containerd.service/kubepods-pod12ab_34.slice:cri-containerd:" ID_NONE, "containerd/99995c0912ab");
	check_name("/kubepods.slice/kubepods-pod12ab_34.slice/docker-" ID_A ".scope", "api");
	check_name("/machine.slice/libpod-0123456789abcdef.scope", "cache");
	check_name("/machine.slice/machine-my\\x2dbox.scope", "my-box");
	check_name("/lxc.payload.ct1/init.scope", "ct1/init.scope");
	check_name("/batch/night", "batch/night");
	check_name("/", "/");
	tree_end(&tree);
}

static void check_tree(const char *lines, const char *dir, const char *path)
{
	struct cgroup_tree t;
	tree_text(&tree, "proc/self/cgroup", lines);
	tree_text(&tree, "proc/7/task/7/cgroup", lines);
	cgroup_tree_find(&t, tree.root);
	assert_string_equal(t.dir, dir);
	char *found = cgroup_tree_path(&t, tree.root, 7, 7);
	assert_true(!path == !found);
	if (path)
		assert_string_equal(found, path);
	free(found);
}

/* The hierarchy that limits CPU time, on v2, v1 and hybrid systems, and its quotas. */
static void test_hierarchies(void **state)
{
	(void)state;
	struct cgroup_tree t;
	struct cgroup_stat stat;
	tree_begin(&tree);
	tree_text(&tree, "sys/fs/cgroup/a/cpu.max", "20000 100000\n");
	tree_text(&tree, "sys/fs/cgroup/b/cpu.max", "max 100000\n");
	tree_text(&tree, "sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_periods 12\nnr_throttled 7\nthrottled_usec 345\n");
	check_tree("0::/a\n", "/sys/fs/cgroup", "/a");
	cgroup_tree_find(&t, tree.root);
	assert_true(t.is_v2);
	assert_int_equal(cgroup_quota_read(&t, tree.root, "/a").quota, 20000000);
	assert_int_equal(cgroup_quota_read(&t, tree.root, "/a").period, 100000000);
	assert_int_equal(cgroup_quota_read(&t, tree.root, "/b").quota, 0);
	assert_true(cgroup_stat_read(&t, tree.root, "/a", &stat));
	assert_true(stat.periods == 12 && stat.throttled == 7 && stat.throttled_ns == 345000);
	assert_false(cgroup_stat_read(&t, tree.root, "/none", &stat));
	check_tree("0::/../other\n", "/sys/fs/cgroup", NULL);
	tree_text(&tree, "sys/fs/cgroup/unified/x", "");
	check_tree("3:cpuset:/no\n0::/a\n", "/sys/fs/cgroup/unified", "/a");
	check_tree("3:cpuset:/no\n1:cpu:/b\n0::/a\n", "", NULL);  /* not mounted where it belongs */
	tree_text(&tree, "sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "5000\n");
	tree_text(&tree, "sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "50000\n");
	tree_text(&tree, "sys/fs/cgroup/cpu/b/cpu.stat", "nr_periods 2\nnr_throttled 1\nthrottled_time 77\n");
	check_tree("3:cpuset:/no\n11:cpu,cpuacct:/b\n0::/a\n", "/sys/fs/cgroup/cpu", "/b");
	check_tree("3:cpuset:/no\n11:cpuacct,cpu:/b\n0::/a\n", "/sys/fs/cgroup/cpu", "/b");
	cgroup_tree_find(&t, tree.root);
	assert_true(!t.is_v2 && t.hierarchy == 11);
	assert_int_equal(cgroup_quota_read(&t, tree.root, "/b").quota, 5000000);
	assert_true(cgroup_stat_read(&t, tree.root, "/b", &stat) && stat.throttled_ns == 77 && stat.periods == 2);
	tree_end(&tree);
}

/* session.yaml lists each group with its name and threads; threads that came, moved or slept have no weight. */
static void test_list(void **state)
{
	(void)state;
	size_t n, hidden;
	tree_begin(&tree);
	tree_text(&tree, "sys/fs/cgroup/api/cpu.max", "10000 100000\n");
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	struct cgroups *c[2];
	for (unsigned sample = 0; sample < 2; sample++) {
		tree_text(&tree, "sys/fs/cgroup/api/cpu.stat", sample ? "nr_periods 9\nnr_throttled 5\nthrottled_usec 4\n"
		                                                      : "nr_periods 3\nnr_throttled 1\nthrottled_usec 1\n");
		put_thread(52, 52, "/api", 7 + sample, 0);
		put_thread(53, 53, "/api", 7, 0);                            /* sleeps all the time */
		put_thread(54, 54, sample ? "/" : "/api", 7 + sample, 0);    /* moved */
		if (sample)
			put_thread(55, 55, "/new.service", 7, 0);
		c[sample] = cgroups_read_host(tree.root, vm, n);
	}
	struct yaml_out *o = yaml_out_new();
	cgroups_put_threads(o, YAML_OUT_ROOT, c[0], c[1]);
	cgroups_put_list(o, YAML_OUT_ROOT, c[0], c[1], false);
	char *text = yaml_out_end(o);
	assert_string_equal(text, "groups:\n  52: /api\n"
	                          "control_groups:\n- path: /api\n  name: api\n  quota_ns: 10000000\n  period_ns: 100000000\n"
	                          "  before: {periods: 0, throttled: 0, throttled_ns: 0}\n"
	                          "  after: {periods: 6, throttled: 4, throttled_ns: 3000}\n"
	                          "  threads: 52 53 54\n- path: /new.service\n  name: new.service\n  threads: 55\n");
	/* The reader of session files accepts the text, and writes it again. */
	struct yaml_file file;
	struct control_groups read = { 0 };
	struct error err = ERROR_INIT;
	assert_int_equal(yaml_file_parse(&file, text, strlen(text), "x", "", &err), 0);
	assert_int_equal(control_groups_read(&read, &file, yaml_member(&file, yaml_root(&file), "control_groups"), &err), 0);
	assert_true(read.groups == 2 && read.members == 4 && read.group[0].throttled_ns == 3000 && read.group[0].periods == 6);
	assert_int_equal(read.member[2].tid, 54);
	const uint64_t hash = control_groups_hash(&read);
	yaml_file_release(&file);
	free(text);
	o = yaml_out_new();
	control_groups_write(o, YAML_OUT_ROOT, &read);
	control_groups_release(&read);
	text = yaml_out_end(o);
	assert_int_equal(yaml_file_parse(&file, text, strlen(text), "x", "", &err), 0);
	assert_int_equal(control_groups_read(&read, &file, yaml_member(&file, yaml_root(&file), "control_groups"), &err), 0);
	assert_true(control_groups_hash(&read) == hash);
	control_groups_release(&read);
	yaml_file_release(&file);
	free(text);
	cgroups_free(c[0]);
	cgroups_free(c[1]);
	vms_free(vm, n);
	tree_end(&tree);
}

/* The group of a pod, which has its limits, has the name of its containers; that of a pod without names has none. */
static void test_pods(void **state)
{
	static const char unnamed[] = "/kubepods/podff-1/" ID_NONE;
	(void)state;
	size_t n, hidden;
	tree_begin(&tree);
	tree_text(&tree, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID_B "/config.json",
	          "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"web\", \"io.kubernetes.cri.sandbox-name\": "
	          "\"shop-1\", \"io.kubernetes.cri.sandbox-namespace\": \"prod\"}}");
	tree_text(&tree, "sys/fs/cgroup" POD "/cpu.max", "20000 100000\n");
	put_thread(61, 61, POD "/cri-containerd-" ID_B ".scope", 7, 0);
	put_thread(62, 62, unnamed, 7, 0);
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	struct cgroups *c = cgroups_read_host(tree.root, vm, n);
	struct yaml_out *o = yaml_out_new();
	cgroups_put_list(o, YAML_OUT_ROOT, c, NULL, false);
	char *text = yaml_out_end(o);
	struct yaml_file file;
	struct control_groups read = { 0 };
	struct error err = ERROR_INIT;
	assert_int_equal(yaml_file_parse(&file, text, strlen(text), "x", "", &err), 0);
	assert_int_equal(control_groups_read(&read, &file, yaml_member(&file, yaml_root(&file), "control_groups"), &err), 0);
	const int32_t pod = control_groups_find(&read, POD), web = control_groups_find(&read, POD "/cri-containerd-" ID_B ".scope");
	assert_true(pod >= 0 && web >= 0 && read.group[pod].quota_ns == 20000000);
	assert_string_equal(read.group[pod].name, "prod/shop-1");
	assert_string_equal(read.group[web].name, "prod/shop-1/web");
	assert_string_equal(read.group[control_groups_find(&read, unnamed)].name, "kubepods/99995c0912ab");
	control_groups_release(&read);
	yaml_file_release(&file);
	free(text);
	cgroups_free(c);
	vms_free(vm, n);
	tree_end(&tree);
}

static void put_cpu_file(int cpu, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/%s", cpu, name);
	tree_text(&tree, path, text);
}

static char *topology_text(struct topology *t)
{
	struct yaml_out *o = yaml_out_new();
	topology_put(o, YAML_OUT_ROOT, t);
	topology_put_memory(o, YAML_OUT_ROOT, t, "web");
	return yaml_out_end(o);
}

/* Cores by the lowest CPU of each list, the cache of the highest level, both sources of the base frequency; an offline CPU
 * is omitted; impossible values are unknown. The memory is the sum of the pages of all sizes. */
static void test_topology(void **state)
{
	(void)state;
	struct topology t;
	tree_begin(&tree);
	tree_text(&tree, "sys/devices/system/cpu/online", "0-2,9,40000\n");
	tree_text(&tree, "sys/devices/system/cpu/smt/control", "on\n");
	for (int cpu = 0; cpu < 3; cpu++) {
		put_cpu_file(cpu, "topology/thread_siblings_list", cpu == 1 ? "1\n" : "0,2\n");
		put_cpu_file(cpu, "cache/index0/level", "1\n");
		put_cpu_file(cpu, "cache/index0/shared_cpu_list", "0\n");
		put_cpu_file(cpu, "cache/index1/level", "3\n");
		put_cpu_file(cpu, "cache/index1/shared_cpu_list", "0-2\n");
		put_cpu_file(cpu, cpu ? "node1/x" : "node0/x", "");
		put_cpu_file(cpu, "cpufreq/cpuinfo_max_freq", cpu == 2 ? "99999999999\n" : "3500000\n");
	}
	put_cpu_file(0, "cpufreq/base_frequency", "2600000\n");
	put_cpu_file(1, "acpi_cppc/nominal_freq", "2100\n");
	put_cpu_file(2, "acpi_cppc/nominal_freq", "-7\n");
	put_cpu_file(9, "topology/thread_siblings_list", "nonsense\n");
	topology_facts_read(&t, tree.root);
	tree_text(&tree, "proc/300/numa_maps",
	          "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n"
	          "7f10 default file=/N1=9 huge anon=2 N1=2 kernelpagesize_kB=2048\n"
	          "7f20 default stack N0=99999999999 kernelpagesize_kB=4\n");
	topology_facts_read_memory(&t, tree.root, 300, "web");
	assert_int_equal(t.memories, 0);  /* a machine with one node */
	tree_text(&tree, "sys/devices/system/node/node0/x", "");
	tree_text(&tree, "sys/devices/system/node/node1/x", "");
	topology_facts_read_memory(&t, tree.root, 300, "web");
	char *text = topology_text(&t);
	assert_string_equal(text, "topology:\n  smt: on\n  cpus:\n"
	                          "    0: {core: 0, llc: 0, node: 0, base_khz: 2600000, max_khz: 3500000}\n"
	                          "    1: {core: 1, llc: 0, node: 1, base_khz: 2100000, max_khz: 3500000}\n"
	                          "    2: {core: 0, llc: 0, node: 1}\n    9: {}\nmemory: {0: 4, 1: 4104}\n");
	/* The reader of session files accepts the text. */
	struct yaml_file file;
	struct topology again = { 0 };
	struct error err = ERROR_INIT;
	assert_int_equal(yaml_file_parse(&file, text, strlen(text), "x", "", &err), 0);
	assert_int_equal(topology_read(&again, &file, yaml_member(&file, yaml_root(&file), "topology"), &err), 0);
	assert_int_equal(topology_read_memory(&again, &file, yaml_member(&file, yaml_root(&file), "memory"), "web", &err), 0);
	assert_true(topology_hash(&again) == topology_hash(&t));
	yaml_file_release(&file);
	topology_release(&again);
	topology_release(&t);
	free(text);
	topology_facts_read(&t, "/nonexistent");
	assert_true(t.cpus == 0 && t.smt == SMT_UNKNOWN && topology_hash(&t) == 0);
	tree_end(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups), cmocka_unit_test(test_host),
	                                    cmocka_unit_test(test_names), cmocka_unit_test(test_hierarchies),
	                                    cmocka_unit_test(test_list), cmocka_unit_test(test_pods), cmocka_unit_test(test_topology) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
