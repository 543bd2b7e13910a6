/* record/: whole recordings of a made-up host, whose guests are this machine's shells with a made-up tracefs. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/proc.h"
#include "record/record.h"
#include "record/tracer.h"
#include "record_tree.h"

#define MS 1000000
#define PAGES 3

static struct record_tree tree;
static volatile int stop;
static char said[4096];

static void hear(void *arg, const char *line)
{
	(void)arg;
	const size_t n = strlen(said);
	snprintf(said + n, sizeof said - n, "%s\n", line);
}

static int begin(void **state)
{
	static const char web[] = "qemu\0-name\0web", db[] = "qemu\0-name\0db";
	(void)state;
	tree_host(&tree, PAGES);
	tree_vm(&tree, 300, web, sizeof web, 2);
	tree_debugfs(&tree, 300, 2, -1000);
	tree_vm(&tree, 400, db, sizeof db, 1);
	tree_guest(&tree, "g1", PAGES);
	tree_guest(&tree, "g2", PAGES);
	stop = 0;
	*said = '\0';
	return 0;
}

static int end(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

/* A way into a guest: that shell, with the made-up machine below that folder. */
static char *way_into(const char *guest, const char *shell)
{
	return mem_printf("cmd:{ IFS= read -r h; printf '%%s\\n' \"$h\" '. %s/%s/machine.sh'; exec cat; } | "
	                  "PATH=%s/%s/bin:$PATH exec %s", tree.root, guest, tree.root, guest, shell);
}

static char *output(const char *name)
{
	return mem_printf("%s/%s", tree.root, name);
}

static bool holds(const char *path, const char *what)
{
	char *text = tree_read(&tree, path);
	const bool found = text && strstr(text, what);
	if (!found)
		printf("%s: %s\n", path, text ? text : "(not there)");
	free(text);
	return found;
}

/* Nothing is left of any recording; guests may take a moment. */
static void assert_clean(void)
{
	for (int i = 0; i < 1200 && tree_count(&tree, "g1/sys/kernel/tracing/instances") +
	                               tree_count(&tree, "g2/sys/kernel/tracing/instances") > 0; i++)
		usleep(50000);
	assert_int_equal(tree_count(&tree, "g1/sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "g2/sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "run/stealscope"), 0);
}

/* Records; wishes with NULL names end early. */
static int record(const char *folder, const char *web, const char *db, struct record_options more,
                  struct record_result *r, struct error *err)
{
	char *path = output(folder);
	const struct record_wish wish[] = { { "web", web }, { "db", db } };
	struct record_options o = more;
	o.root = tree.root;
	o.output = path;
	o.clock = o.clock ? o.clock : "auto";
	if (!o.wish && !o.host_only) {
		o.wish = wish;
		o.wishes = 2;
	}
	o.duration = o.duration || o.command || o.hold ? o.duration : 200 * MS;
	o.stop = &stop;
	o.say = hear;
	*err = (struct error)ERROR_INIT;
	const int rc = record_run(&o, r, err);
	free(path);
	return rc;
}

/* ---- what is recorded */

static void check_pages(const char *path, char want)
{
	char *text = tree_read(&tree, path);
	assert_non_null(text);
	assert_int_equal(strlen(text), PAGES * 4096);
	assert_int_equal(strspn(text, (char[]){ want, '\0' }), PAGES * 4096);
	free(text);
}

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

/* However long it takes until it records, and a guest, if one is told; before that, it tries how much comes. */
static void *stop_later(void *guest)
{
	for (int i = 0; i < 6000 && !(strstr(said, "recording") && (!guest || tree_is_tracing(&tree, guest))); i++)
		usleep(100000);
	sleep(3);  /* for it to say so */
	stop++;
	return NULL;
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
static void check_killed(const char *whom)
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
	assert_non_null(strstr(r.machine[1].why.text, "its shell ended too early"));
	assert_true(r.machine[2].recorded && !r.whole);
	assert_true(holds("r/session.yaml", "its shell ended too early"));
	record_release(&r);
	free(text);
	free(web);
	free(db);
	assert_clean();
}

static void test_shell_killed(void **state)
{
	(void)state;
	check_killed("$shell $around");
}

static void test_way_killed(void **state)
{
	(void)state;
	check_killed("$way");
}

static void check_error(const struct record_options *o, enum status status, const char *text)
{
	struct record_result r;
	struct error err = ERROR_INIT;
	struct record_options options = *o;
	char *folder = output("e");
	options.root = tree.root;
	options.output = options.output ? options.output : folder;
	options.clock = options.clock ? options.clock : "auto";
	options.duration = 100 * MS;
	assert_int_equal(record_run(&options, &r, &err), -1);
	if (!strstr(err.text, text) || err.status != status)
		printf("%s (%d), not: %s (%d)\n", err.text, (int)err.status, text, (int)status);
	assert_non_null(strstr(err.text, text));
	assert_int_equal(err.status, status);
	assert_true(*err.mend);
	record_release(&r);
	assert_int_not_equal(access(folder, F_OK), 0);
	free(folder);
	assert_clean();
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
	assert_non_null(strstr(said, "host: removed what 1 recordings left"));
	assert_non_null(strstr(said, "web: removed what 1 recordings left"));
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

/* ---- flights */

static char kept_in[512];
static size_t kept;

static void keep(void *arg, const char *folder, const struct record_result *r)
{
	(void)arg;
	assert_true(r->machine[0].recorded && r->machine[1].recorded);
	snprintf(kept_in, sizeof kept_in, "%s", folder + strlen(tree.root) + 1);
	kept++;
}

/* What a vCPU's thread has waited for a CPU, by and by. */
static void *make_wait(void *arg)
{
	const long long ms = *(const int *)arg;
	for (int i = 0; i < 6000 && !kept; i++) {
		char text[64];
		snprintf(text, sizeof text, "1 %lld 1\n", ms * MS * i);
		tree_text(&tree, "proc/300/task/311/schedstat", text);
		usleep(100000);
	}
	stop = !kept;  /* it never fires */
	return NULL;
}

static void check_flight(const char *trigger, int wait_ms, volatile int *fire)
{
	struct record_result r;
	struct error err;
	pthread_t waits;
	char *web = way_into("g1", "sh"), path[600];
	kept = 0;
	pthread_create(&waits, NULL, make_wait, &wait_ms);
	const struct record_options o = { .hold = 2000LL * MS, .trigger = &trigger, .triggers = trigger != NULL, .most = 1,
		.kept = keep, .fire = fire };
	const int rc = record("r", web, "none", o, &r, &err);
	if (rc)
		printf("%s\n", err.text);
	assert_int_equal(rc, 0);
	pthread_join(waits, NULL);
	assert_int_equal(kept, 1);
	snprintf(path, sizeof path, "%s/session.yaml", kept_in);
	assert_true(holds(path, "dir: guest-web"));
	snprintf(path, sizeof path, "%s/guest-web/about.yaml", kept_in);
	assert_true(holds(path, "kept: 2000000000"));
	snprintf(path, sizeof path, "%s/host/pages/cpu1", kept_in);
	check_pages(path, 'B');
	record_release(&r);
	free(web);
	assert_clean();
}

static void test_flights(void **state)
{
	(void)state;
	volatile int fire = 1;
	check_flight("gap(web/CPU1)>20ms", 50, NULL);
	end(NULL);
	begin(NULL);
	check_flight("steal(any)>10% for 500ms", 60, NULL);
	end(NULL);
	begin(NULL);
	check_flight("exit(sleep 0.3)", 0, NULL);
	end(NULL);
	begin(NULL);
	tree_text(&tree, "proc/loadavg", "9.50 1 1 1/1 1\n");
	check_flight("load>9", 0, NULL);
	end(NULL);
	begin(NULL);
	check_flight(NULL, 0, &fire);
	assert_int_equal(fire, 0);
}

/* Nothing fires: nothing is kept. */
static void test_quiet_flight(void **state)
{
	(void)state;
	static const char *const trigger[] = { "gap(web)>20ms", "steal(web)>90%", "load>100", "signal" };
	struct record_result r;
	struct error err;
	pthread_t thread;
	kept = 0;
	tree_text(&tree, "proc/loadavg", "0.50 1 1 1/1 1\n");
	tree_text(&tree, "proc/300/task/310/schedstat", "1 5000000000 1\n");
	pthread_create(&thread, NULL, stop_later, NULL);
	const struct record_options o = { .hold = 2000LL * MS, .trigger = trigger, .triggers = 4, .kept = keep };
	assert_int_equal(record("r", "none", "none", o, &r, &err), 0);
	pthread_join(thread, NULL);
	record_release(&r);
	char *folder = output("r");
	assert_int_equal(kept, 0);
	assert_int_not_equal(access(folder, F_OK), 0);
	free(folder);
	assert_clean();
}

static void test_triggers_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"", "gap", "gap(web)", "gap()>1ms", "gap(web)>", "gap(web)>20", "gap(web)>-1ms", "gap(web)>2h", "steal(web)>30",
		"steal(web)>0%", "steal(web)>100%", "steal(web)>30% for", "steal(web)>30% for 1", "load>", "load>x", "load>-1",
		"exit()", "exit(true)x", "signals", "steal(web)>nan%",
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		const struct record_options o = { .hold = 1000LL * MS, .trigger = &wrong[i], .triggers = 1, .host_only = true };
		check_error(&o, STATUS_USAGE, "is none");
	}
	static const char *const nobody[] = { "gap(wbe)>20ms", "steal(web/CPU7)>30%" };
	for (size_t i = 0; i < COUNT(nobody); i++) {
		const struct record_options o = { .hold = 1000LL * MS, .trigger = &nobody[i], .triggers = 1, .host_only = true };
		check_error(&o, STATUS_INPUT, "no vCPU is '");
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole), TEST(test_busybox), TEST(test_command), TEST(test_stopped), TEST(test_host_only),
		TEST(test_ways_that_lead_nowhere), TEST(test_guests_that_cannot), TEST(test_shell_killed), TEST(test_way_killed),
		TEST(test_refused),
		TEST(test_nobody_runs), TEST(test_check), TEST(test_cleanup), TEST(test_flights), TEST(test_quiet_flight),
		TEST(test_triggers_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
