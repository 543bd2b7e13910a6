/* Tests of complete recordings of a fake host; the guests are shells of this machine with a fake tracefs. */
#include "record_runs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "record/proc.h"

/* ---- successful recordings */

static void run_shells(const char *first, const char *second)
{
	struct record_result r;
	struct error err;
	char *web = transport_into("g1", first), *db = transport_into("g2", second);
	const int rc = run_recording("r", web, db, (struct record_options){ 0 }, &r, &err);
	if (rc)
		printf("%s\n", err.text);
	assert_int_equal(rc, 0);
	for (size_t i = 0; i < r.machines; i++)
		if (!r.machine[i].recorded || *r.machine[i].why.text)
			printf("%s: %s\n", r.machine[i].name, r.machine[i].why.text);
	assert_true(r.complete);
	assert_int_equal(r.machines, 3);
	assert_string_equal(r.machine[1].name, "web");
	assert_true(r.machine[1].recorded);
	assert_int_equal(r.machine[1].bytes, 2 * PAGES * 4096);
	record_release(&r);
	free(web);
	free(db);
}

static void test_complete_recording(void **state)
{
	(void)state;
	run_shells("dash", "bash");
	check_pages("r/host/pages/cpu0", 'A');
	check_pages("r/host/pages/cpu1", 'B');
	check_pages("r/guest-web/pages/cpu1", 'B');
	check_pages("r/guest-db/pages/cpu0", 'A');
	assert_true(file_contains("r/session.yaml", "dir: guest-web\n  vcpus: {0: 310, 1: 311}\n"));
	assert_true(file_contains("r/session.yaml",
	                          "tsc: {offset: -1000, ratio: 1, bits: 0}\n  groups:\n    310: /machine.slice/machine"));
	assert_true(file_contains("r/session.yaml", "vcpus: {0: 410}"));
	assert_true(file_contains("r/session.yaml", "no_tsc: "));
	assert_true(file_contains("r/session.yaml", "  weights:\n    /machine.slice: 1024\n"));
	/* groups of host threads */
	assert_true(file_contains("r/session.yaml", "  groups:\n    300: /machine.slice/machine"));
	assert_true(file_contains("r/session.yaml", "policy: rr, nice: -5, priority: 1"));
	assert_true(file_contains("r/host/about.yaml", "clock: x86-tsc"));
	assert_true(file_contains("r/host/about.yaml", "- kvm/kvm_entry"));
#if defined(__x86_64__) || defined(__i386__)  /* the requested events depend on the architecture */
	assert_true(file_contains("r/host/about.yaml", "- kvm/kvm_hypercall"));
#endif
	assert_true(file_contains("r/host/events/kvm/kvm_entry/format", "name: kvm_entry"));
	assert_true(file_contains("r/host/saved_cmdlines", "311 CPU 1/KVM"));
	assert_true(file_contains("r/host/saved_cmdlines", "4190077 short-lived"));
	assert_true(file_contains("r/host/saved_tgids", "311 300"));
	assert_true(file_contains("r/host/stats/cpu1", "now ts"));
	assert_true(file_contains("r/host/header_page", "commit"));
	assert_true(file_contains("r/guest-web/about.yaml", "started: {clock: 123456789"));
	assert_true(file_contains("r/guest-web/about.yaml", "- sched/sched_waking"));
	assert_true(file_contains("r/guest-web/events/sched/sched_wakeup/format", "ID: 301"));
	assert_true(file_contains("r/guest-web/saved_cmdlines", "1 "));
	assert_true(file_contains("r/guest-web/saved_tgids", "4190077 4190076"));
	assert_no_remains();
}

static void test_busybox(void **state)
{
	(void)state;
	if (access("/bin/busybox", X_OK) != 0 && access("/usr/bin/busybox", X_OK) != 0)
		skip();
	run_shells("busybox sh", "sh");
	check_pages("r/guest-web/pages/cpu1", 'B');
	assert_no_remains();
}

static void test_command(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	char *argv[] = { "sh", "-c", "sleep 0.2; exit 7", NULL }, *missing[] = { "/no/such/program", NULL };
	char *dir = output_path("c");
	assert_int_equal(run_recording("c", "none", "none", (struct record_options){ .command = argv }, &r, &err), 0);
	assert_int_equal(WEXITSTATUS(r.command_status), 7);
	record_release(&r);
	assert_int_equal(run_recording("d", "none", "none", (struct record_options){ .command = missing }, &r, &err), 0);
	assert_int_equal(WEXITSTATUS(r.command_status), 127);
	record_release(&r);
	free(dir);
	assert_true(file_contains("c/session.yaml", "vcpus: {0: 410}"));
	assert_no_remains();
}

/* ^C ends the recording and keeps its data. */
static void test_stopped(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	pthread_t thread;
	char guest[] = "g1", *web = transport_into(guest, "sh");
	pthread_create(&thread, NULL, stop_when_recording, guest);
	assert_int_equal(run_recording("r", web, "none", (struct record_options){ .duration = 3600000LL * MS }, &r, &err), 0);
	pthread_join(thread, NULL);
	assert_true(r.complete);
	check_pages("r/guest-web/pages/cpu0", 'A');
	record_release(&r);
	free(web);
	assert_no_remains();
}

static void test_host_only(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	const struct record_options o = { .host_only = true, .clock = "mono" };
	assert_int_equal(run_recording("r", NULL, NULL, o, &r, &err), 0);
	assert_true(r.complete && !r.machine[1].requested && !r.machine[1].recorded);
	assert_true(file_contains("r/host/about.yaml", "clock: mono"));
	assert_true(file_contains("r/session.yaml", "name: web"));
	record_release(&r);
	assert_no_remains();
}

/* ---- failures */

#define NO_SHELL "shell"

struct refusal { const char *transport, *key; };

static void check_refusal(const char *dir, const char *transport, const char *key)
{
	struct record_result r;
	struct error err;
	assert_int_equal(run_recording(dir, transport, "none", (struct record_options){ 0 }, &r, &err), 0);
	if (!strstr(r.machine[1].why.text, key))
		fail_msg("%s: \"%s\" does not contain \"%s\"", transport, r.machine[1].why.text, key);
	assert_true(r.machine[1].requested && !r.machine[1].recorded && !r.complete && r.machine[0].recorded);
	assert_true(strcmp(key, NO_SHELL) != 0 || *r.machine[1].why.remedy);
	record_release(&r);
	assert_no_remains();
}

static void test_broken_transports(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{ "cmd:exit 3", NO_SHELL },
		{ "cmd:echo 'no such container' >&2; exit 1", "no such container" },
		{ "cmd:true", NO_SHELL },
		{ "cmd:yes", "the guest sent" },
		{ "cmd:read -r k _; k=${k#key=}; echo \"$k about 9999999999\"; cat", "protocol error" },
		{ "cmd:read -r k _; k=${k#key=}; printf '%s about 0\\n%s ready 3\\nabc' $k $k; cat >/dev/null", "buffer sizes" },
		{ "cmd:read -r k _; k=${k#key=}; printf '%s refuse 5\\n\\033[2Jx' $k; cat >/dev/null", "\\e[2Jx" },
		{ "cmd:read -r k _; k=${k#key=}; printf '%s pages/cpu0 4096\\n%4096s' $k x; cat >/dev/null", "out of order" },
		{ "qga:/no/such/socket", "No such file" },
		{ "qga:", "guest agent" },
		{ "vsock::99", "vsock" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char dir[16];
		snprintf(dir, sizeof dir, "n%zu", i);
		check_refusal(dir, cases[i].transport, cases[i].key);
	}
}

/* The guest script reports different reasons why it cannot record. */
static void test_guest_refusals(void **state)
{
	(void)state;
	static const struct { const char *remove, *put, *text, *key; } cases[] = {
		{ "g1/sys/kernel/tracing/trace_clock", NULL, NULL, "mount" },
		{ "g1/sys/kernel/tracing/trace_clock", "g1/sys/kernel/tracing/trace_clock", "[local] global\n",
		  "[local] global" },
		{ "g1/sys/kernel/tracing/events/sched/sched_switch/format", NULL, NULL, "scheduler" },
		{ "g1/sys/kernel/tracing/instances/.made/buffer_size_kb", "g1/sys/kernel/tracing/instances/.made/buffer_size_kb/x",
		  "", "memory" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		tear_down(NULL);
		set_up(NULL);
		char *web = transport_into("g1", "sh"), *path = output_path(cases[i].remove);
		assert_int_equal(unlink(path), 0);
		if (cases[i].text)
			tree_text(&tree, cases[i].put, cases[i].text);
		check_refusal("r", web, cases[i].key);
		free(path);
		free(web);
	}
}

/* If the shell of a guest or its transport is killed, other machines are recorded, and the guest's watchdog removes the
 * instance. */
static void check_killed(const char *victims, const char *key)
{
	struct record_result r;
	struct error err;
	char *web = transport_into("g1", "sh"), *db = transport_into("g2", "sh");
	char *text = mem_printf(
		"sleep 0.5; cd %s/g1/sys/kernel/tracing/instances; set -- *guest*; shell=${1#*guest-}; shell=${shell%%%%-*};"
		"around=$(cut -d' ' -f4 /proc/$shell/stat); relay=$(pgrep -P $around cat); kill -9 %s; sleep 0.5",
		tree.root, victims);
	char *argv[] = { "sh", "-c", text, NULL };
	assert_int_equal(run_recording("r", web, db, (struct record_options){ .command = argv }, &r, &err), 0);
	assert_false(r.machine[1].recorded);
	if (!strstr(r.machine[1].why.text, key))
		fail_msg("\"%s\" does not contain \"%s\"", r.machine[1].why.text, key);
	assert_true(r.machine[2].recorded && !r.complete);
	assert_true(file_contains("r/session.yaml", key));
	record_release(&r);
	free(text);
	free(web);
	free(db);
	assert_no_remains();
}

static void test_shell_killed(void **state)
{
	(void)state;
	check_killed("$shell $around", "ended too early");
}

static void test_transport_killed(void **state)
{
	(void)state;
	check_killed("$relay", "ended too early");
}

/* The process of the VM has ended, or is a zombie. */
static void test_vm_ended(void **state)
{
	(void)state;
	check_killed("$relay; rm -r ../../../../../proc/300", "virtual machine ended");
	tear_down(state);
	set_up(state);
	check_killed("$relay; echo '300 (qemu) Z 1' >../../../../../proc/300/task/300/stat", "virtual machine ended");
}

static void test_host_refusals(void **state)
{
	(void)state;
	const struct record_request no_such_vm = { "wbe", NULL }, no_such_transport = { "web", "telnet:web" };
	static const char *const event[] = { "sched:$(reboot)" };
	check_record_error(&(struct record_options){ .requested = &no_such_vm, .n_requested = 1 }, STATUS_INPUT, "wbe");
	check_record_error(&(struct record_options){ .requested = &no_such_transport, .n_requested = 1 }, STATUS_USAGE,
	                   "telnet:web");
	check_record_error(&(struct record_options){ .host_only = true, .event = event, .events = 1 }, STATUS_USAGE, "event");
	check_record_error(&(struct record_options){ .host_only = true, .output = tree.root }, STATUS_USAGE, tree.root);
	char *file = output_path("sys/kernel/tracing/events/kvm/kvm_entry/format");
	unlink(file);
	check_record_error(&(struct record_options){ .host_only = true }, STATUS_SYSTEM, "kvm/kvm_entry");
	free(file);
	tree_text(&tree, "sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet\n");
	check_record_error(&(struct record_options){ .host_only = true, .clock = "x86-tsc" }, STATUS_SYSTEM, "TSC");
	file = output_path("sys/kernel/tracing/trace_clock");
	unlink(file);
	check_record_error(&(struct record_options){ .host_only = true }, STATUS_SYSTEM, "tracefs");
	free(file);
}

static void test_no_vm(void **state)
{
	(void)state;
	tear_down(NULL);
	tree_begin(&tree);
	check_record_error(&(struct record_options){ 0 }, STATUS_INPUT, "virtual machine");
}

/* ---- check and cleanup */

static void test_check(void **state)
{
	(void)state;
	struct record_result r;
	struct error err = ERROR_INIT;
	char *web = transport_into("g1", "sh");
	const struct record_request request = { "web", web };
	const struct record_options o = {
		.root = tree.root, .clock = "auto", .requested = &request, .n_requested = 1, .stop = &stop
	};
	assert_int_equal(record_check(&o, &r, &err), 0);
	assert_true(r.machine[0].recorded && r.machine[1].recorded && !r.machine[2].requested);
	assert_non_null(strstr(r.machine[1].about, "clock x86-tsc"));
	record_release(&r);
	const struct record_options no_request = { .root = tree.root, .clock = "auto", .stop = &stop };
	assert_int_equal(record_check(&no_request, &r, &err), 0);
	assert_true(r.machine[0].recorded && r.machine[1].requested && !r.machine[1].recorded);
	assert_int_equal(r.machine[1].why.status, STATUS_INPUT);
	assert_non_null(strstr(r.machine[1].why.remedy, "ssh:"));
	record_release(&r);
	free(web);
	assert_no_remains();
}

/* Creates the remains of a recorder and of a guest's shell and watchdog that were all killed. */
static void make_remains(const char *transport)
{
	char *text = mem_printf("folder /x\nguest web\ntransport %s\n", transport);
	tree_text(&tree, "run/stealscope/999999-5", text);
	tree_text(&tree, "sys/kernel/tracing/instances/stealscope-999999-5/tracing_on", "1");
	tree_text(&tree, "g1/sys/kernel/tracing/instances/stealscope-guest-999998-5/tracing_on", "1");
	free(text);
}

static void test_cleanup(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct record_result r;
	char *web = transport_into("g1", "sh");
	make_remains(web);
	assert_int_equal(record_cleanup(&(struct record_options){ .root = tree.root, .on_message = append_message }, &err), 0);
	assert_non_null(strstr(messages, "host: removed the remains of 1 "));
	assert_non_null(strstr(messages, "web: removed the remains of 1 "));
	assert_no_remains();
	/* Remains only in a guest that the user names. */
	const struct record_request request = { "web", web };
	tree_text(&tree, "g1/sys/kernel/tracing/instances/stealscope-guest-999998-5/tracing_on", "1");
	const struct record_options named = { .root = tree.root, .clock = "auto", .requested = &request, .n_requested = 1,
		.on_message = append_message };
	assert_int_equal(record_cleanup(&named, &err), 0);
	assert_no_remains();
	*messages = '\0';
	assert_int_equal(record_cleanup(&named, &err), 0);
	assert_null(strstr(messages, "removed"));
	assert_true(strstr(messages, "host: ") && strstr(messages, "web: "));
	/* The next recording also removes remains, but not tracefs instances of other programs or of live recorders. */
	make_remains(web);
	tree_text(&tree, "proc/4242/task/4242/stat", "4242 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0");
	tree_text(&tree, "sys/kernel/tracing/instances/stealscope-4242-77/tracing_on", "1");
	tree_text(&tree, "sys/kernel/tracing/instances/stealscope-4242-76/tracing_on", "1");  /* before its PID was used again */
	tree_text(&tree, "sys/kernel/tracing/instances/other-999999-5/tracing_on", "1");
	assert_int_equal(run_recording("r", "none", "none", (struct record_options){ 0 }, &r, &err), 0);
	record_release(&r);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 2);
	assert_true(file_contains("sys/kernel/tracing/instances/other-999999-5/tracing_on", "1"));
	assert_true(file_contains("sys/kernel/tracing/instances/stealscope-4242-77/tracing_on", "1"));
	assert_int_equal(tree_count(&tree, "g1/sys/kernel/tracing/instances"), 0);
	free(web);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_complete_recording), TEST(test_busybox), TEST(test_command), TEST(test_stopped), TEST(test_host_only),
		TEST(test_broken_transports), TEST(test_guest_refusals), TEST(test_shell_killed), TEST(test_transport_killed),
		TEST(test_vm_ended),
		TEST(test_host_refusals), TEST(test_no_vm), TEST(test_check), TEST(test_cleanup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
