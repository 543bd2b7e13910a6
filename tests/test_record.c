/* Tests of the discovery of VMs, and of the functions of record/ that need neither a recording nor a guest. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/events.h"
#include "record/recording_dir.h"
#include "record/buffer_sizing.h"
#include "record/clock_sample.h"
#include "record/proc.h"
#include "record/record.h"
#include "record/journal.h"
#include "record/tracer.h"
#include "record/transport.h"
#include "record_tree.h"

#define LINE(text) text, sizeof(text)

static struct record_tree tree;

static int make_tree(void **state)
{
	(void)state;
	tree_begin(&tree);
	return 0;
}

static int remove_tree(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

/* ---- virtual machines */

static void test_vms_are_found(void **state)
{
	(void)state;
	size_t n, hidden;
	tree_text(&tree, "proc/7/comm", "bash\n");
	tree_link(&tree, "proc/7/fd/0", "/dev/null");
	tree_vm(&tree, 300,
	        LINE("qemu\0-name\0guest=we,,b,debug-threads=on\0-uuid\0abc-1\0-device\0vhost-vsock-pci,guest-cid=7"), 2);
	tree_vm(&tree, 100, LINE("qemu\0-name\0db"), 1);
	tree_debugfs(&tree, 300, 2, -5);
	/* A process without vCPUs, which has opened KVM to query its features. */
	tree_vm(&tree, 50, LINE("libvirtd"), 0);
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(n, 2);
	assert_string_equal(vm[0].name, "db");
	assert_string_equal(vm[0].mapped_by, "thread names");
	assert_int_equal(vm[0].vcpu[0].tid, 110);
	assert_string_equal(vm[1].name, "we,b");
	assert_string_equal(vm[1].dir, "we_b");
	assert_string_equal(vm[1].uuid, "abc-1");
	assert_string_equal(vm[1].vmm, "qemu-system-x86_64");
	assert_string_equal(vm[1].mapped_by, "debugfs");
	assert_int_equal(vm[1].cid, 7);
	assert_int_equal(vm[1].vcpus, 2);
	assert_int_equal(vm[1].vcpu[1].number, 1);
	assert_int_equal(vm[1].vcpu[1].tid, 311);
	assert_int_equal(vm[1].unmapped, 0);
	struct vm_tsc tsc[2];
	assert_true(vm_read_tsc(tree.root, &vm[1], tsc));
	assert_int_equal(tsc[1].offset, -5);
	assert_int_equal(tsc[1].ratio, 1);
	assert_false(vm_read_tsc(tree.root, &vm[0], tsc));
	vms_free(vm, n);
}

/* The thread that created a VM may have exited, or may not be the main thread; another process may use the same
 * descriptor number. */
static void test_vms_by_debugfs_of_another_thread(void **state)
{
	(void)state;
	size_t n, hidden;
	tree_vm(&tree, 300, LINE("cloud-hypervisor\0--api-socket\0path=/run/ch/web.sock"), 1);
	tree_vm(&tree, 400, LINE("cloud-hypervisor\0--api-socket\0/run/ch/db.sock"), 1);
	tree_text(&tree, "proc/300/task/310/comm", "renamed\n");
	tree_text(&tree, "sys/kernel/debug/kvm/999-15/vcpu0/pid", "410\n");
	tree_text(&tree, "sys/kernel/debug/kvm/301-15/vcpu0/pid", "310\n");
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(n, 2);
	assert_string_equal(vm[0].name, "web");
	assert_int_equal(vm[0].vcpu[0].tid, 310);
	assert_string_equal(vm[0].debugfs, "301-15");
	assert_string_equal(vm[1].name, "db");
	assert_string_equal(vm[1].debugfs, "999-15");
	vms_free(vm, n);
}

static void test_vm_threads_unknown(void **state)
{
	(void)state;
	size_t n, hidden;
	tree_vm(&tree, 300, LINE("qemu\0-name\0web"), 2);
	tree_text(&tree, "proc/300/task/310/comm", "qemu\n");
	tree_text(&tree, "proc/300/task/311/comm", "CPU 1/KVMx\n");
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(vm[0].unmapped, 2);
	vms_free(vm, n);
}

static void test_vm_names(void **state)
{
	(void)state;
	static const struct { const char *cmdline; size_t len; const char *libvirt, *cgroup, *expected, *source; } cases[] = {
		{ LINE("q\0-name\0a"), "virt-1", NULL, "virt-1", "libvirt" },
		{ LINE("q\0-name\0guest=a,b=c"), NULL, NULL, "a", "its command line" },
		{ LINE("q\0-name\0a,debug-threads=on"), NULL, NULL, "a", "its command line" },
		{ LINE("q\0--name=z"), NULL, NULL, "z", "its command line" },
		{ LINE("firecracker\0--id\0fc7"), NULL, NULL, "fc7", "its command line" },
		{ LINE("q\0-m\0512"), NULL, "0::/machine.slice/machine-qemu\\x2d3\\x2dw\\x2db.scope/libvirt", "w-b",
		  "its systemd scope" },
		{ LINE("q"), NULL, "1:name=systemd:/\n0::/machine.slice/machine-box.scope", "box", "its systemd scope" },
		{ LINE("crosvm\0run\0-s\0/tmp/c.socket"), NULL, NULL, "c", "its socket" },
		{ LINE("q\0-name\0\033[2Jevil"), NULL, NULL, "\\e[2Jevil", "its command line" },
		{ LINE("q\0-name"), NULL, NULL, "qemu-system-x86_64-300", "its process" },
		{ "", 0, NULL, NULL, "qemu-system-x86_64-300", "its process" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t n, hidden;
		struct record_tree t;
		tree_begin(&t);
		tree_vm(&t, 300, cases[i].cmdline, cases[i].len, 1);
		if (cases[i].libvirt) {
			tree_text(&t, "run/libvirt/qemu/other.pid", "299");
			tree_text(&t, "run/libvirt/qemu/virt-1.pid", "300\n");
		}
		if (cases[i].cgroup)
			tree_text(&t, "proc/300/cgroup", cases[i].cgroup);
		struct vm *vm = vms_find(t.root, &n, &hidden);
		assert_int_equal(n, 1);
		assert_string_equal(vm[0].name, cases[i].expected);
		assert_string_equal(vm[0].named_by, cases[i].source);
		vms_free(vm, n);
		tree_end(&t);
	}
}

#define SANDBOX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Names that orchestrators give, and their ways to keep them. */
static void test_vm_orchestrators(void **state)
{
	(void)state;
	static const struct { const char *cmdline; size_t len; const char *path, *text, *expected, *source; } cases[] = {
		{ LINE("q\0-name\0guest=instance-0000001a"), "run/libvirt/qemu/instance-0000001a.xml",
		  "<domstatus><nova:name>web &amp; db</nova:name></domstatus>", "web & db", "OpenStack" },
		{ LINE("q\0-name\0guest=instance-0000001a"), "run/libvirt/qemu/instance-0000001a.xml", "<nova:name></nova:name>",
		  "instance-0000001a", "libvirt" },
		{ LINE("q\0-name\0guest=shop_web"), "proc/300/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-1.scope\n",
		  "shop/web", "KubeVirt" },
		{ LINE("q\0-name\0guest=shop_web"), "proc/300/cgroup", "0::/machine.slice\n", "shop_web", "its command line" },
		{ LINE("q\0-name\0sandbox-" SANDBOX ",debug-threads=on"),
		  "run/containerd/io.containerd.runtime.v2.task/k8s.io/" SANDBOX "/config.json",
		  "{\"annotations\":{\"io.kubernetes.cri.sandbox-name\":\"web-1\",\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}",
		  "shop/web-1", "its pod" },
		{ LINE("containerd-shim-kata-v2\0-id\0" SANDBOX),
		  "run/containers/storage/overlay-containers/" SANDBOX "/userdata/config.json",
		  "{\"annotations\":{\"io.kubernetes.pod.name\":\"db\",\"io.kubernetes.pod.namespace\":\"a\"}}", "a/db", "its pod" },
		{ LINE("shim\0-id\0" SANDBOX), "run/containers/storage/overlay-containers/" SANDBOX "/userdata/config.json",
		  "{\"annotations\":[1]", SANDBOX, "its command line" },
		{ LINE("lkvm\0run\0--name\0web"), NULL, NULL, "web", "its command line" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t n, hidden;
		struct record_tree t;
		tree_begin(&t);
		tree_vm(&t, 300, cases[i].cmdline, cases[i].len, 1);
		if (cases[i].path)
			tree_text(&t, cases[i].path, cases[i].text);
		if (cases[i].path && strstr(cases[i].path, "libvirt"))
			tree_text(&t, "run/libvirt/qemu/instance-0000001a.pid", "300\n");
		struct vm *vm = vms_find(t.root, &n, &hidden);
		assert_int_equal(n, 1);
		assert_string_equal(vm[0].name, cases[i].expected);
		assert_string_equal(vm[0].named_by, cases[i].source);
		assert_true((vm[0].domain != NULL) == (cases[i].path && strstr(cases[i].path, "libvirt")));
		vms_free(vm, n);
		tree_end(&t);
	}
}

/* VirtualBox has no file descriptors of vCPUs; gVisor has them, but no threads of its own for them. */
static void test_vm_others(void **state)
{
	(void)state;
	size_t n, hidden;
	struct record_tree t;
	tree_begin(&t);
	tree_link(&t, "proc/300/exe", "/usr/lib/virtualbox/VBoxHeadless");
	tree_bytes(&t, "proc/300/cmdline", LINE("VBoxHeadless\0--comment\0web\0--startvm\0x"));
	tree_link(&t, "proc/300/fd/9", "/dev/vboxdrv");
	tree_text(&t, "proc/300/task/300/comm", "VBoxHeadless\n");
	tree_text(&t, "proc/300/task/301/comm", "EMT-0\n");
	tree_text(&t, "proc/300/task/302/comm", "EMT-1\n");
	tree_link(&t, "proc/400/exe", "/usr/bin/runsc");
	tree_link(&t, "proc/400/fd/9", "anon_inode:kvm-vm");
	tree_link(&t, "proc/400/fd/10", "anon_inode:kvm-vcpu:0");
	struct vm *vm = vms_find(t.root, &n, &hidden);
	assert_int_equal(n, 1);
	assert_string_equal(vm[0].name, "web");
	assert_int_equal(vm[0].vcpus, 2);
	assert_int_equal(vm[0].vcpu[1].tid, 302);
	assert_true(vms_have_gvisor(t.root));
	vms_free(vm, n);
	tree_end(&t);
}

/* Directory names stay below the recording's directory and are unique. */
static void test_vm_dirs(void **state)
{
	(void)state;
	static const struct { int pid; const char *cmdline; size_t len; const char *name, *dir; } vms[] = {
		{ 10, LINE("q\0-name\0../../etc/passwd"), "../../etc/passwd", "_._.._etc_passwd" },
		{ 20, LINE("q\0-name\0web"), "web-20", "web-20" },
		{ 30, LINE("q\0-name\0web"), "web-30", "web-30" },
		{ 40, LINE("q\0-name\0a b"), "a b", "a_b" },
		{ 50, LINE("q\0-name\0a_b"), "a_b", "a_b-50" },
		{ 60, LINE("q\0-name\0host"), "host-60", "host-60" },
		{ 70, LINE("q\0-name\0.."), "..", "_." },
	};
	size_t n, hidden;
	for (size_t i = 0; i < COUNT(vms); i++)
		tree_vm(&tree, vms[i].pid, vms[i].cmdline, vms[i].len, 1);
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(n, COUNT(vms));
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(vm[i].name, vms[i].name);
		assert_string_equal(vm[i].dir, vms[i].dir);
	}
	vms_free(vm, n);
}

static void test_vm_agent(void **state)
{
	(void)state;
	size_t n, hidden;
	tree_vm(&tree, 10, LINE("q\0-chardev\0socket,path=/x,id=other\0-chardev\0socket,path=/run/w.qga,server=on,id=q0\0"
	                        "-device\0virtserialport,chardev=q0,name=org.qemu.guest_agent.0"), 1);
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_string_equal(vm[0].agent, "/run/w.qga");
	struct transport t = transport_default(&vm[0]);
	assert_int_equal(t.kind, TRANSPORT_QGA);
	assert_int_equal(transport_resolve(&t, &vm[0], "/tree", NULL), 0);
	assert_string_equal(t.argument, "/tree/run/w.qga");
	transport_release(&t);
	vms_free(vm, n);
}

/* ---- arithmetic and small texts */

static void test_disk_reserve(void **state)
{
	const uint64_t mb = 1 << 20;
	(void)state;
	assert_int_equal(forecast_disk_reserve(1ULL << 40, mb), 256 * mb);
	assert_int_equal(forecast_disk_reserve(160 * mb, mb), 20 * mb);
	assert_int_equal(forecast_disk_reserve(160 * mb, 50 * mb), 50 * mb);
	assert_int_equal(forecast_disk_reserve(160 * mb, UINT64_MAX), 256 * mb);
	assert_int_equal(forecast_disk_reserve(UINT64_MAX, 0), 256 * mb);
}

static void test_forecast(void **state)
{
	(void)state;
	const uint64_t bytes[] = { 300000, 30000 };
	const int64_t s = 1000000000, measured_ns = s * 3 / 10;
	struct forecast f = forecast_make(bytes, 2, measured_ns, 10 * s, false, 1ULL << 33);
	assert_int_equal(f.rate, 1100000);
	assert_int_equal(f.busiest, 1000000);
	assert_true(f.complete);
	assert_int_equal(f.kilobytes, 4 * 10000000 / 1024);
	assert_int_equal(f.bytes, 11000000);
	/* A recording too long for the buffers: buffers for four times the data between two reads, at least
	 * FORECAST_KB_DEFAULT. */
	f = forecast_make((uint64_t[]){ 3000000, 30000 }, 2, measured_ns, 1000 * s, false, 1ULL << 33);
	assert_false(f.complete);
	assert_int_equal(f.kilobytes, 4 * 5000000 / 1024);
	assert_int_equal(forecast_make(bytes, 2, measured_ns, 1000 * s, false, 1ULL << 33).kilobytes, FORECAST_KB_DEFAULT);
	/* Little memory, no events, unknown duration, test of 0 ns, overwrite mode. */
	assert_int_equal(forecast_make(bytes, 2, measured_ns, 10 * s, false, 16 << 20).kilobytes, 2048);
	assert_int_equal(forecast_make(bytes, 2, measured_ns, 10 * s, false, 12 << 20).kilobytes, 1536);
	assert_int_equal(forecast_make((uint64_t[]){ 0, 0 }, 2, measured_ns, 10 * s, false, 0).kilobytes, FORECAST_KB_DEFAULT);
	assert_int_equal(forecast_make((uint64_t[]){ 0, 0 }, 2, measured_ns, 10 * s, false, 1 << 20).kilobytes,
	                 FORECAST_KB_MIN);
	assert_false(forecast_make(bytes, 2, measured_ns, 0, false, 0).complete);
	assert_int_equal(forecast_make(bytes, 2, 0, 10 * s, false, 0).kilobytes, FORECAST_KB_MAX);
	assert_true(forecast_make(bytes, 2, measured_ns, 1000 * s, true, 0).complete);
	assert_int_equal(forecast_pause(FORECAST_KB_MIN), 50000000);
	assert_int_equal(forecast_pause(FORECAST_KB_DEFAULT), 200000000);
	assert_int_equal(forecast_pause(FORECAST_KB_MAX), FORECAST_CYCLE);
}

static void test_clock_samples(void **state)
{
	(void)state;
	struct clock_sample m = clock_sample_parse("realtime 1795152647842459259\nentries: 1\nnow ts: 81234567890123\nx: 1\n");
	assert_true(m.known);
	assert_true(m.clock == 81234567890123 && m.realtime == 1795152647842459259);
	assert_true(m.error == 0);
	m = clock_sample_parse("realtime 1795152647842459259\nnow ts: 81234567890123\nrealtime_after 1795152647844459259\n");
	assert_true(m.realtime == 1795152647843459259 && m.error == 1001000);
	m = clock_sample_parse("realtime 1795152647%N\nnow ts: 1.5\nrealtime_after 1795152648%N\n");
	assert_true(m.realtime == 1795152647500000000 && m.error == 1500000000);
	m = clock_sample_parse("realtime 1795152647%N\nnow ts:   711.269235\n");
	assert_true(m.known && m.clock == 711269235000 && m.realtime == 1795152647000000000);
	assert_false(clock_sample_parse("realtime 17\n").known);
	assert_false(clock_sample_parse("now ts: 1\n").known);
	assert_false(clock_sample_parse("realtime x\nnow ts: 1\n").known);
	const struct clock_sample a = clock_sample_now(true), b = { true, a.clock + 2500000000, a.monotonic + 1000000000, 0, 0 };
	assert_int_equal(clock_sample_frequency(&a, &b), 2500000000000);
	assert_int_equal(clock_sample_frequency(&b, &a), 0);
	const struct clock_sample c = clock_sample_now(false);
	assert_true(c.known && c.clock == (uint64_t)c.monotonic && c.monotonic >= a.monotonic && c.realtime >= a.realtime);
}

static void test_events(void **state)
{
	(void)state;
	static const char *const extra[] = { "block:block_plug" };
	size_t n, m;
	char **host = events_wanted(SIDE_HOST, "x86_64", extra, 1, &n);
	char **guest = events_wanted(SIDE_GUEST, "aarch64", NULL, 0, &m);
	bool entry = false, hypercall = false, wfx = false;
	assert_string_equal(host[n - 1], "block/block_plug");
	for (size_t i = 0; i < n; i++) {
		entry |= strcmp(host[i], "kvm/kvm_entry") == 0;
		hypercall |= strcmp(host[i], "kvm/kvm_hypercall") == 0;
		wfx |= strcmp(host[i], "kvm/kvm_wfx_arm64") == 0;
		assert_true(event_is_name(host[i]));
	}
	assert_true(entry && hypercall && !wfx);
	for (size_t i = 0; i < m; i++)
		assert_null(strstr(guest[i], "kvm"));
	events_free(host, n);
	events_free(guest, m);
	static const char *const bad[] = { "", "sched", "sched:", ":x", "a:b:c", "a:b c", "a:$(x)", "../a:b", "a:..", "a:b'" };
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(event_is_name(bad[i]));
	assert_true(event_is_name("sched:sched_switch"));
	static const char *const probe[] = { "stealscope_113_495/steal_switch", "stealscope_1_2_c63/steal_timer" };
	static const char *const no_probe[] = { "", "stealscope_", "stealscope_113_495/steal", "stealscope_113/steal_timer",
		"stealscope_1_2_c3/../steal_timer", "stealscope_1_2/steal_timer/x", "sched/steal_timer",
		"stealscope_1_2_d3/steal_timer", "stealscope_x_2/steal_timer" };
	for (size_t i = 0; i < COUNT(probe); i++)
		assert_true(event_is_steal_probe(probe[i]));
	for (size_t i = 0; i < COUNT(no_probe); i++)
		assert_false(event_is_steal_probe(no_probe[i]));
}

/* Every recorded event must be used by the layout, since on a busy host each event costs the guests CPU time. */
static void test_events_are_used(void **state)
{
	(void)state;
	static const char *const exceptions[] = { "irq_vectors/", "ipi/", "kvm/kvm_write_tsc_offset" };
	static const char *const arch[] = { "x86_64", "aarch64" };
	char text[65536], *file = mem_printf("%s/src/trace/layouts/ftrace.yaml", getenv("srcdir") ? getenv("srcdir") : ".");
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	free(file);
	for (size_t k = 0; k < 4; k++) {
		size_t n;
		const enum event_side side = k / 2 ? SIDE_GUEST : SIDE_HOST;
		char **event = events_wanted(side, arch[k % 2], NULL, 0, &n);
		for (size_t i = 0; i < n; i++) {
			char *alone = mem_printf("[%s]", strchr(event[i], '/') + 1);
			char *first = mem_printf("[%s,", strchr(event[i], '/') + 1);
			char *later = mem_printf(" %s]", strchr(event[i], '/') + 1);
			bool used = strstr(text, alone) || strstr(text, first) || strstr(text, later);
			for (size_t o = 0; o < COUNT(exceptions); o++)
				used |= strncmp(event[i], exceptions[o], strlen(exceptions[o])) == 0 && (o == 2 || side == SIDE_GUEST);
			if (!used)
				printf("%s\n", event[i]);
			assert_true(used);
			free(alone);
			free(first);
			free(later);
		}
		events_free(event, n);
	}
}

static void test_stats(void **state)
{
	(void)state;
	const struct cpu_stats s = cpu_stats_parse(
		"entries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 400\ndropped events: 2\n");
	assert_true(s.entries == 5 && s.bytes == 400);
	assert_int_equal(cpu_stats_lost(&s), 10);
	assert_int_equal(cpu_stats_lost(&(struct cpu_stats){ .overrun = UINT64_MAX, .dropped = 5 }), UINT64_MAX);
}

/* ---- files */

static void test_threads_merged(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	char *path = mem_printf("%s/m", tree.root);
	bool created;
	int top = dir_make(path, &created, &err);
	assert_true(top >= 0);
	int dir = dir_make_machine(top, "host", &err);
	assert_true(dir >= 0);
	assert_int_equal(dir_put_threads(dir, "1 1 systemd\n12 10 my name\n5 x\n-3 4 y\nrubbish\n13 10\n99999999999 1 z\n",
	                                    "12 later\n77 short\n<...>\n78 <...>\n", "77 76\n12 11\nx\n", &err), 0);
	char *names = tree_read(&tree, "m/host/saved_cmdlines"), *groups = tree_read(&tree, "m/host/saved_tgids");
	assert_string_equal(names, "1 systemd\n12 my name\n77 short\n");
	assert_string_equal(groups, "1 1\n12 10\n13 10\n77 76\n");
	free(names);
	free(groups);
	assert_int_equal(dir_put_format(dir, "sched/sched_switch", "name: x\n", 8, &err), 0);
	char *format = tree_read(&tree, "m/host/events/sched/sched_switch/format");
	assert_string_equal(format, "name: x\n");
	free(format);
	close(dir);
	close(top);
	/* A directory that is not empty; a file; a link. */
	assert_int_equal(dir_make(path, &created, &err), -1);
	free(path);
	tree_text(&tree, "file", "");
	tree_link(&tree, "link", ".");
	static const char *const bad[] = { "file", "link", "no/such" };
	for (size_t i = 0; i < COUNT(bad); i++) {
		path = mem_printf("%s/%s", tree.root, bad[i]);
		assert_int_equal(dir_make(path, &created, &err), -1);
		free(path);
	}
}

static void test_journal(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct journal s = { .dir = mem_dup("/var/tmp/x y") };
	size_t n;
	journal_add_guest(&s, "web", "cmd:docker exec -i web sh");
	journal_add_guest(&s, "db", "ssh:root@db");
	assert_int_equal(journal_write(tree.root, &s, &err), 0);
	/* The journal of a live process is not stale. */
	struct journal *stale = journal_stale(tree.root, &n);
	assert_int_equal(n, 0);
	free(stale);
	char *text = tree_read(&tree, strstr(s.path, "run/"));
	tree_text(&tree, "run/stealscope/1-99", text);
	tree_text(&tree, "run/stealscope/x-1", text);
	free(text);
	stale = journal_stale(tree.root, &n);
	assert_int_equal(n, 1);
	assert_string_equal(stale[0].dir, "/var/tmp/x y");
	assert_int_equal(stale[0].guests, 2);
	assert_string_equal(stale[0].guest[0].transport, "cmd:docker exec -i web sh");
	assert_string_equal(stale[0].guest[1].name, "db");
	journal_release(&stale[0]);
	free(stale);
	journal_remove(&s);
	assert_null(tree_read(&tree, strstr(s.path, "run/")));
	/* If others can write to the directory, its contents are not trusted. */
	char *dir = mem_printf("%s/run/stealscope", tree.root);
	chmod(dir, 0777);
	free(dir);
	assert_null(journal_stale(tree.root, &n));
	assert_int_equal(journal_write(tree.root, &s, &err), -1);
	journal_release(&s);
}

static void test_proc(void **state)
{
	(void)state;
	int64_t n;
	tree_text(&tree, "n", "-12 x\n");
	tree_text(&tree, "empty", "");
	assert_true(proc_number(tree.root, &n, "/n"));
	assert_int_equal(n, -12);
	assert_false(proc_number(tree.root, &n, "/empty"));
	assert_null(proc_line(tree.root, "/no%s", "where"));
	assert_true(proc_start_time("", (int32_t)getpid()) > 0);
	assert_int_equal(proc_start_time(tree.root, 1), 0);
	char *field = proc_field("a: 1\nab:  two words\n", "ab");
	assert_string_equal(field, "two words");
	free(field);
	assert_null(proc_field("ab: 1", "a"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vms_are_found), TEST(test_vms_by_debugfs_of_another_thread), TEST(test_vm_threads_unknown),
		TEST(test_vm_names), TEST(test_vm_orchestrators), TEST(test_vm_others), TEST(test_vm_dirs), TEST(test_vm_agent), TEST(test_disk_reserve), TEST(test_clock_samples),
		TEST(test_vm_names), TEST(test_vm_orchestrators), TEST(test_vm_others), TEST(test_vm_dirs), TEST(test_vm_agent), TEST(test_forecast), TEST(test_clock_samples),
		TEST(test_events), TEST(test_events_are_used), TEST(test_stats), TEST(test_threads_merged), TEST(test_journal),
		TEST(test_proc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
