/* Tests of recordings that fail on a fake host: errors of the host, and of guests that refuse or send wrong data. Check
 * the message and that nothing remains. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "mount_namespace.h"
#include "record/record.h"
#include "record_tree.h"

#define LONG "/0123456789/0123456789/0123456789/0123456789/0123456789"
#define FRAME "read -r k _; k=${k#key=}; f() { printf '%s %s %s\\n%s' $k \"$1\" ${#2} \"$2\"; }; "
#define REFUSES(code) "cmd:" FRAME "f refuse " code "; cat >/dev/null"
/* A guest that sends formats of events that were not requested. */
#define WRONG_EVENTS \
	"cmd:" FRAME "f about 'events x/y'; f ready 'kilobytes 1 rate 1 page 4096'; while read -r w; do case $w in " \
	"go) f started x ;; stop) f stopped x ;; send) f formats 'name: y'; f end '' ;; esac; done"

/* A guest that records, but does not send its trace. */
#define SENDS_NOTHING \
	"cmd:" FRAME "f about 'events sched/sched_switch'; f ready 'kilobytes 1 rate 1 page 4096'; while read -r w; do " \
	"case $w in go) f started x ;; stop) f stopped x ;; bye) exit ;; esac; done"
#define MB 1000000L

static struct record_tree tree;
static volatile int stop;
static atomic_bool recording_reported;

static int set_up(void **state)
{
	static const char web[] = "qemu\0-name\0web";
	(void)state;
	tree_host(&tree, 1);
	tree_vm(&tree, 300, web, sizeof web, 1);
	stop = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

static void watch_messages(void *arg, const char *line)
{
	(void)arg;
	if (strstr(line, "recording"))
		recording_reported = true;
}

/* Thread that acts as ^C during the recording, and again while the recorder waits for the guest's trace. */
static void *stop_twice(void *arg)
{
	(void)arg;
	while (!recording_reported)
		usleep(10000);
	usleep(300000);
	stop = 1;
	sleep(1);
	stop = 2;
	return NULL;
}

static int run_recording(struct record_options o, struct record_result *r, struct error *err)
{
	char *dir = mem_printf("%s/r", tree.root);
	o.root = tree.root;
	o.output = dir;
	o.clock = "auto";
	o.duration = o.duration ? o.duration : 100000000;
	o.stop = &stop;
	o.on_message = watch_messages;
	recording_reported = false;
	*err = (struct error)ERROR_INIT;
	const int rc = record_run(&o, r, err);
	recording_reported = true;  /* ends stop_twice() if it still waits */
	free(dir);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 0);
	return rc;
}

/* Failures of a guest; the host is recorded nevertheless. */
static void test_guests(void **state)
{
	static const struct { const char *transport, *key; } cases[] = {
		{ REFUSES("root"), "root" },
		{ REFUSES("tracefs"), "tracefs" },
		{ REFUSES("mount"), "mount" },
		{ REFUSES("instance"), "instance" },
		{ REFUSES("clock"), "clock" },
		{ REFUSES("events"), "scheduler" },
		{ REFUSES("memory"), "memory" },
		{ REFUSES("watchdog"), "watchdog" },
		{ WRONG_EVENTS, "events" },
		{ "vsock::9000", "vsock" },
		{ "vsock::x", ":x: invalid" },
		{ "qga:" LONG LONG, "guest agent: the path" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct record_result r;
		struct error err;
		const struct record_request request = { "web", cases[i].transport };
		set_up(state);
		assert_int_equal(run_recording((struct record_options){ .requested = &request, .n_requested = 1 }, &r, &err), 0);
		if (!strstr(r.machine[1].why.text, cases[i].key))
			fail_msg("\"%s\" does not contain \"%s\"", r.machine[1].why.text, cases[i].key);
		assert_true(r.machine[0].recorded && r.machine[1].requested && !r.machine[1].recorded && !r.complete);
		record_release(&r);
		tear_down(state);
	}
}

static void check_host(struct record_options o, enum status status, const char *key)
{
	struct record_result r;
	struct error err;
	o.host_only = true;
	assert_int_equal(run_recording(o, &r, &err), -1);
	if (!strstr(err.text, key))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, key);
	assert_int_equal(err.status, status);
	assert_true(*err.remedy || status == STATUS_CANCELLED);
	record_release(&r);
}

static void test_host(void **state)
{
	(void)state;
	const struct record_options plain = { 0 };
	char *path = mem_printf("%s/run/stealscope", tree.root), *dir = mem_printf("%s/r", tree.root);
	check_host((struct record_options){ .duration = 1LL << 62 }, STATUS_SYSTEM, " 256 MB");
	assert_int_not_equal(access(dir, F_OK), 0);
	stop = 1;
	check_host(plain, STATUS_CANCELLED, "stopped");
	stop = 0;
	assert_int_equal(chmod(path, 0777), 0);
	check_host(plain, STATUS_SYSTEM, "/run/stealscope: ");
	assert_int_equal(rmdir(path), 0);
	tree_text(&tree, "run/stealscope", "");
	check_host(plain, STATUS_SYSTEM, "run/stealscope");
	free(path);
	free(dir);
}

static void test_second_stop(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	pthread_t thread;
	const struct record_request request = { "web", SENDS_NOTHING };
	recording_reported = false;
	pthread_create(&thread, NULL, stop_twice, NULL);
	const struct record_options o = { .requested = &request, .n_requested = 1, .duration = 3600LL * 1000000000 };
	const int rc = run_recording(o, &r, &err);
	pthread_join(thread, NULL);
	assert_int_equal(rc, 0);
	assert_true(r.machine[0].recorded && !r.machine[1].recorded && !r.complete);
	assert_non_null(strstr(r.machine[1].why.text, "second ^C"));
	assert_non_null(strstr(r.machine[1].why.remedy, "^C"));
	record_release(&r);
}

/* ---- a full disk */

/* Mounts a small tmpfs that only this process sees. Returns false if mounts are not permitted. */
static bool mount_small(const char *path, const char *size)
{
	return mount_namespace_enter() && mkdir(path, 0700) == 0 && mount("none", path, "tmpfs", 0, size) == 0;
}

static void *fill_disk(void *arg)
{
	struct statvfs s;
	const int fd = openat(*(int *)arg, "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (!recording_reported)
		usleep(10000);
	fstatvfs(*(int *)arg, &s);
	posix_fallocate(fd, 0, (off_t)(s.f_bavail * s.f_bsize) - 40 * MB);  /* less than 1/8 of 400 MB */
	close(fd);
	return NULL;
}

/* Runs in a child. Returns 0, 77 (mounts are not permitted) or the number of the check that failed. */
static int record_small(void)
{
	struct record_result r;
	struct error err;
	pthread_t thread;
	char *path = mem_printf("%s/r", tree.root);
	if (!mount_small(path, "size=400m"))
		return 77;
	int dir = open(path, O_RDONLY | O_DIRECTORY);
	recording_reported = false;
	pthread_create(&thread, NULL, fill_disk, &dir);
	free(path);
	path = mem_printf("%s/r/x", tree.root);
	struct record_options o = { .host_only = true, .root = tree.root, .output = path, .clock = "auto", .stop = &stop,
		.on_message = watch_messages, .duration = 60LL * 1000000000 };
	if (record_run(&o, &r, &err))
		return printf("%s\n", err.text), 1;
	pthread_join(thread, NULL);
	if (r.complete || !r.machine[0].recorded)
		return 2;
	return strstr(r.machine[0].why.text, "disk") && *r.machine[0].why.remedy ? 0 : 3;
}

static void test_disk(void **state)
{
	(void)state;
	int status;
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0)
		_exit(record_small());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guests), cmocka_unit_test_setup_teardown(test_host, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_second_stop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_disk, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
