/* record/: whole recordings of a made-up host, whose guests are this machine's shells with a made-up tracefs. */
#include "record_runs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "record/proc.h"

/* ---- what is recorded */

static void run_shells(const char *first, const char *second)
{
	struct record_result r;
	struct error err;
	char *web = way_into("g1", first), *db = way_into("g2", second);
	const int rc = record("r", web, db, (struct record_options){ 0 }, &r, &err);
	if (rc)
		printf("%s\n", err.text);
	assert_int_equal(rc, 0);
	for (size_t i = 0; i < r.machines; i++)
		if (!r.machine[i].recorded || *r.machine[i].why.text)
			printf("%s: %s\n", r.machine[i].name, r.machine[i].why.text);
	assert_true(r.whole);
	assert_int_equal(r.machines, 3);
	assert_string_equal(r.machine[1].name, "web");
	assert_true(r.machine[1].recorded);
	assert_int_equal(r.machine[1].bytes, 2 * PAGES * 4096);
	record_release(&r);
	free(web);
	free(db);
}

static void test_whole(void **state)
{
	(void)state;
	run_shells("dash", "bash");
	check_pages("r/host/pages/cpu0", 'A');
	check_pages("r/host/pages/cpu1", 'B');
	check_pages("r/guest-web/pages/cpu1", 'B');
	check_pages("r/guest-db/pages/cpu0", 'A');
	assert_true(holds("r/session.yaml", "dir: guest-web\n  vcpus: {0: 310, 1: 311}\n"));
	assert_true(holds("r/session.yaml", "tsc: {offset: -1000, ratio: 1, bits: 0}\n  groups:\n    310: /machine.slice/machine"));
	assert_true(holds("r/session.yaml", "vcpus: {0: 410}"));
	assert_true(holds("r/session.yaml", "no_tsc: KVM does not tell its TSC"));
	assert_true(holds("r/session.yaml", "  weights:\n    /machine.slice: 1024\n"));
	assert_true(holds("r/session.yaml", "  groups:\n    300: /machine.slice/machine"));  /* the host's own */
	assert_true(holds("r/session.yaml", "policy: rr, nice: -5, priority: 1"));
	assert_true(holds("r/host/about.yaml", "clock: x86-tsc"));
	assert_true(holds("r/host/about.yaml", "- kvm/kvm_entry"));
#if defined(__x86_64__) || defined(__i386__)  /* the events that are asked for are those of the architecture */
	assert_true(holds("r/host/about.yaml", "- kvm/kvm_hypercall"));
#endif
	assert_true(holds("r/host/events/kvm/kvm_entry/format", "name: kvm_entry"));
	assert_true(holds("r/host/saved_cmdlines", "311 CPU 1/KVM"));
	assert_true(holds("r/host/saved_cmdlines", "4190077 short-lived"));
	assert_true(holds("r/host/saved_tgids", "311 300"));
	assert_true(holds("r/host/stats/cpu1", "now ts"));
	assert_true(holds("r/host/header_page", "commit"));
	assert_true(holds("r/guest-web/about.yaml", "started: {clock: 123456789"));
	assert_true(holds("r/guest-web/about.yaml", "- sched/sched_waking"));
	assert_true(holds("r/guest-web/events/sched/sched_wakeup/format", "ID: 301"));
	assert_true(holds("r/guest-web/saved_cmdlines", "1 "));
	assert_true(holds("r/guest-web/saved_tgids", "4190077 4190076"));
	assert_clean();
}

static void test_busybox(void **state)
{
	(void)state;
	if (access("/bin/busybox", X_OK) != 0 && access("/usr/bin/busybox", X_OK) != 0)
		skip();
	run_shells("busybox sh", "sh");
	check_pages("r/guest-web/pages/cpu1", 'B');
	assert_clean();
}

static void test_command(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	char *argv[] = { "sh", "-c", "sleep 0.2; exit 7", NULL }, *gone[] = { "/no/such/program", NULL };
	char *folder = output("c");
	assert_int_equal(record("c", "none", "none", (struct record_options){ .command = argv }, &r, &err), 0);
	assert_int_equal(WEXITSTATUS(r.command_status), 7);
	record_release(&r);
	assert_int_equal(record("d", "none", "none", (struct record_options){ .command = gone }, &r, &err), 0);
	assert_int_equal(WEXITSTATUS(r.command_status), 127);
	record_release(&r);
	free(folder);
	assert_true(holds("c/session.yaml", "vcpus: {0: 410}"));
	assert_clean();
}

/* ^C keeps what is there. */
static void test_stopped(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	pthread_t thread;
	char guest[] = "g1", *web = way_into(guest, "sh");
	pthread_create(&thread, NULL, stop_later, guest);
	assert_int_equal(record("r", web, "none", (struct record_options){ .duration = 3600000LL * MS }, &r, &err), 0);
	pthread_join(thread, NULL);
	assert_true(r.whole);
	check_pages("r/guest-web/pages/cpu0", 'A');
	record_release(&r);
	free(web);
	assert_clean();
}

static void test_host_only(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	assert_int_equal(record("r", NULL, NULL, (struct record_options){ .host_only = true, .clock = "mono" }, &r, &err), 0);
	assert_true(r.whole && !r.machine[1].asked && !r.machine[1].recorded);
	assert_true(holds("r/host/about.yaml", "clock: mono"));
	assert_true(holds("r/session.yaml", "name: web"));
	record_release(&r);
	assert_clean();
}

/* ---- what is not */

struct refusal { const char *transport, *why; };

static void check_refusal(const char *folder, const char *transport, const char *why)
{
	struct record_result r;
	struct error err;
	assert_int_equal(record(folder, transport, "none", (struct record_options){ 0 }, &r, &err), 0);
	if (!strstr(r.machine[1].why.text, why))
		printf("%s: %s, not: %s\n", transport, r.machine[1].why.text, why);
	assert_non_null(strstr(r.machine[1].why.text, why));
	assert_true(r.machine[1].asked && !r.machine[1].recorded && !r.whole && r.machine[0].recorded);
	assert_true(!strstr(why, "no shell answers") || strstr(r.machine[1].why.mend, "try it by hand: it must give a shell"));
	record_release(&r);
	assert_clean();
}

static void test_ways_that_lead_nowhere(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{ "cmd:exit 3", "no shell answers there" },
		{ "cmd:echo 'no such container' >&2; exit 1", "no shell answers there: no such container" },
		{ "cmd:true", "no shell answers there" },
		{ "cmd:yes", "something else than was asked for" },
		{ "cmd:read -r k _; k=${k#key=}; echo \"$k about 9999999999\"; cat", "nothing that was asked for" },
		{ "cmd:read -r k _; k=${k#key=}; printf '%s ready 3\\nabc' $k; cat >/dev/null", "buffers are not understood" },
		{ "cmd:read -r k _; k=${k#key=}; printf '%s refuse 5\\n\\033[2Jx' $k; cat >/dev/null", "it refuses: \\e[2Jx" },
		{ "cmd:read -r k _; k=${k#key=}; printf '%s pages/cpu0 4096\\n%4096s' $k x; cat >/dev/null", "there is room for" },
		{ "qga:/no/such/socket", "No such file" },
		{ "qga:", "has no guest agent" },
		{ "vsock::99", "has no vsock" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char folder[16];
		snprintf(folder, sizeof folder, "n%zu", i);
		if (cases[i].why)
			check_refusal(folder, cases[i].transport, cases[i].why);
	}
}

/* The script says why it cannot; each reason has its cure. */
static void test_guests_that_cannot(void **state)
{
	(void)state;
	static const struct { const char *remove, *put, *text, *why; } cases[] = {
		{ "g1/sys/kernel/tracing/trace_clock", NULL, NULL, "tracefs cannot be mounted there" },
		{ "g1/sys/kernel/tracing/trace_clock", "g1/sys/kernel/tracing/trace_clock", "[local] global\n", "no clock that is asked for: [local] global" },
		{ "g1/sys/kernel/tracing/events/sched/sched_switch/format", NULL, NULL, "cannot trace the scheduler" },
		{ "g1/sys/kernel/tracing/instances/.made/buffer_size_kb",
		  "g1/sys/kernel/tracing/instances/.made/buffer_size_kb/x", "", "no memory for buffers" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		end(NULL);
		begin(NULL);
		char *web = way_into("g1", "sh"), *path = output(cases[i].remove);
		assert_int_equal(unlink(path), 0);
		if (cases[i].text)
			tree_text(&tree, cases[i].put, cases[i].text);
		check_refusal("r", web, cases[i].why);
		free(path);
		free(web);
	}
}

/* A guest whose shell dies, or the way into it, costs that guest; its watchdog removes what it made. */
static void check_killed(const char *whom, const char *why)
{
	struct record_result r;
	struct error err;
	char *web = way_into("g1", "sh"), *db = way_into("g2", "sh");
	char *text = mem_printf("sleep 0.5; cd %s/g1/sys/kernel/tracing/instances; set -- *guest*; shell=${1#*guest-}; shell=${shell%%%%-*};"
	                        "around=$(cut -d' ' -f4 /proc/$shell/stat); way=$(pgrep -P $around cat); kill -9 %s; sleep 0.5",
	                        tree.root, whom);
	char *argv[] = { "sh", "-c", text, NULL };
	assert_int_equal(record("r", web, db, (struct record_options){ .command = argv }, &r, &err), 0);
	assert_false(r.machine[1].recorded);
	assert_non_null(strstr(r.machine[1].why.text, why));
	assert_true(r.machine[2].recorded && !r.whole);
	assert_true(holds("r/session.yaml", why));
	record_release(&r);
	free(text);
	free(web);
	free(db);
	assert_clean();
}

static void test_shell_killed(void **state)
{
	(void)state;
	check_killed("$shell $around", "its shell ended too early");
}

static void test_way_killed(void **state)
{
	(void)state;
	check_killed("$way", "its shell ended too early");
}

/* Its process has ended, or is dead and not yet waited for. */
static void test_vm_ended(void **state)
{
	(void)state;
	check_killed("$way; rm -r ../../../../../proc/300", "its virtual machine ended");
	end(state);
	begin(state);
	check_killed("$way; echo '300 (qemu) Z 1' >../../../../../proc/300/task/300/stat", "its virtual machine ended");
}

static void test_refused(void **state)
{
	(void)state;
	const struct record_wish nobody = { "wbe", NULL }, nowhere = { "web", "telnet:web" };
	static const char *const event[] = { "sched:$(reboot)" };
	check_error(&(struct record_options){ .wish = &nobody, .wishes = 1 }, STATUS_INPUT, "wbe: no virtual machine");
	check_error(&(struct record_options){ .wish = &nowhere, .wishes = 1 }, STATUS_USAGE, "telnet:web: no such way");
	check_error(&(struct record_options){ .host_only = true, .event = event, .events = 1 }, STATUS_USAGE, "not an event");
	check_error(&(struct record_options){ .host_only = true, .output = tree.root }, STATUS_USAGE, "not an empty folder");
	char *file = output("sys/kernel/tracing/events/kvm/kvm_entry/format");
	unlink(file);
	check_error(&(struct record_options){ .host_only = true }, STATUS_SYSTEM, "no event kvm/kvm_entry");
	free(file);
	tree_text(&tree, "sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet\n");
	check_error(&(struct record_options){ .host_only = true, .clock = "x86-tsc" }, STATUS_SYSTEM, "TSC of this host");
	file = output("sys/kernel/tracing/trace_clock");
	unlink(file);
	check_error(&(struct record_options){ .host_only = true }, STATUS_SYSTEM, "tracefs: is not mounted");
	free(file);
}

static void test_nobody_runs(void **state)
{
	(void)state;
	end(NULL);
	tree_begin(&tree);
	check_error(&(struct record_options){ 0 }, STATUS_INPUT, "no virtual machine runs here");
}

/* ---- looking, and cleaning */

static void test_check(void **state)
{
	(void)state;
	struct record_result r;
	struct error err = ERROR_INIT;
	char *web = way_into("g1", "sh");
	const struct record_wish wish = { "web", web };
	const struct record_options o = { .root = tree.root, .clock = "auto", .wish = &wish, .wishes = 1, .stop = &stop };
	assert_int_equal(record_check(&o, &r, &err), 0);
	assert_true(r.machine[0].recorded && r.machine[1].recorded && !r.machine[2].asked);
	assert_non_null(strstr(r.machine[1].about, "clock x86-tsc"));
	record_release(&r);
	assert_int_equal(record_check(&(struct record_options){ .root = tree.root, .clock = "auto", .stop = &stop }, &r, &err), 0);
	assert_true(r.machine[0].recorded && r.machine[1].asked && !r.machine[1].recorded);
	assert_string_equal(r.machine[1].why.text, "no way into it is known");
	assert_non_null(strstr(r.machine[1].why.mend, "ssh:"));
	record_release(&r);
	free(web);
	assert_clean();
}

/* What a recorder and a guest's shell and watchdog left that were killed at once. */
static void leave_something(const char *transport)
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
	char *web = way_into("g1", "sh");
	leave_something(web);
	assert_int_equal(record_cleanup(&(struct record_options){ .root = tree.root, .say = hear }, &err), 0);
	assert_non_null(strstr(said, "host: removed what 1 recording left"));
	assert_non_null(strstr(said, "web: removed what 1 recording left"));
	assert_clean();
	/* So it is where only the guest was left, and is named. */
	const struct record_wish wish = { "web", web };
	tree_text(&tree, "g1/sys/kernel/tracing/instances/stealscope-guest-999998-5/tracing_on", "1");
	const struct record_options named = { .root = tree.root, .clock = "auto", .wish = &wish, .wishes = 1, .say = hear };
	assert_int_equal(record_cleanup(&named, &err), 0);
	assert_clean();
	*said = '\0';
	assert_int_equal(record_cleanup(&named, &err), 0);
	assert_string_equal(said, "host: nothing was left there\nweb: nothing was left there\n");
	/* The next recording does the same, and does not touch what others made or what lives. */
	leave_something(web);
	char *alive = mem_printf("sys/kernel/tracing/instances/stealscope-%d-%llu/tracing_on", (int)getppid(),
	                         (unsigned long long)proc_begun("", (int32_t)getppid()));
	tree_text(&tree, "sys/kernel/tracing/instances/other-999999-5/tracing_on", "1");
	assert_int_equal(record("r", "none", "none", (struct record_options){ 0 }, &r, &err), 0);
	record_release(&r);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 1);
	assert_true(holds("sys/kernel/tracing/instances/other-999999-5/tracing_on", "1"));
	assert_int_equal(tree_count(&tree, "g1/sys/kernel/tracing/instances"), 0);
	free(alive);
	free(web);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole), TEST(test_busybox), TEST(test_command), TEST(test_stopped), TEST(test_host_only),
		TEST(test_ways_that_lead_nowhere), TEST(test_guests_that_cannot), TEST(test_shell_killed), TEST(test_way_killed),
		TEST(test_vm_ended),
		TEST(test_refused), TEST(test_nobody_runs), TEST(test_check), TEST(test_cleanup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
