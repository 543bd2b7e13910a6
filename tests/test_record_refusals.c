/* record/: what it refuses, and what guests refuse or lie about, on a made-up host: the reason, and that nothing is left. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/record.h"
#include "record_tree.h"

#define LONG "/0123456789/0123456789/0123456789/0123456789/0123456789"
#define FRAME "read -r k _; k=${k#key=}; f() { printf '%s %s %s\\n%s' $k \"$1\" ${#2} \"$2\"; }; "
#define REFUSES(code) "cmd:" FRAME "f refuse " code "; cat >/dev/null"
/* Everything as it should be, but the events. */
#define LIES "cmd:" FRAME "f about 'events x/y'; f ready 'kilobytes 1 rate 1 page 4096'; while read -r w; do case $w in " \
	"go) f started x ;; stop) f stopped x ;; send) f formats 'name: y'; f end '' ;; esac; done"

/* It records, and then sends nothing. */
#define KEEPS "cmd:" FRAME "f about 'events sched/sched_switch'; f ready 'kilobytes 1 rate 1 page 4096'; while read -r w; do " \
	"case $w in go) f started x ;; stop) f stopped x ;; bye) exit ;; esac; done"
#define MB 1000000L

static struct record_tree tree;
static volatile int stop;
static volatile bool said;

static int begin(void **state)
{
	static const char web[] = "qemu\0-name\0web";
	(void)state;
	tree_host(&tree, 1);
	tree_vm(&tree, 300, web, sizeof web, 1);
	stop = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

static void hear(void *arg, const char *line)
{
	(void)arg;
	said |= strstr(line, "recording") != NULL;
}

/* One ^C when it records, another one when there is nothing more to come. */
static void *stop_twice(void *arg)
{
	(void)arg;
	while (!said)
		usleep(10000);
	usleep(300000);
	stop = 1;
	sleep(1);
	stop = 2;
	return NULL;
}

static int record(struct record_options o, struct record_result *r, struct error *err)
{
	char *folder = mem_printf("%s/r", tree.root);
	o.root = tree.root;
	o.output = folder;
	o.clock = "auto";
	o.duration = o.duration ? o.duration : 100000000;
	o.stop = &stop;
	o.say = hear;
	said = false;
	*err = (struct error)ERROR_INIT;
	const int rc = record_run(&o, r, err);
	said = true;  /* nobody need wait for that any more */
	free(folder);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 0);
	return rc;
}

/* The host is recorded all the same. */
static void test_guests(void **state)
{
	static const struct { const char *transport, *why; } cases[] = {
		{ REFUSES("root"), "the shell there is not root's" },
		{ REFUSES("tracefs"), "its kernel has no tracefs" },
		{ REFUSES("mount"), "tracefs cannot be mounted there" },
		{ REFUSES("instance"), "no instance of tracefs can be made there" },
		{ REFUSES("clock"), "it has no clock that is asked for" },
		{ REFUSES("events"), "its kernel cannot trace the scheduler" },
		{ REFUSES("memory"), "it has no memory for buffers" },
		{ REFUSES("watchdog"), "no watchdog could be started there" },
		{ REFUSES("turn"), "an agent of trace-cmd cannot let its buffers turn over" },
		{ LIES, "the guest's events are not those that were asked for" },
		{ "agent:", "web has no vsock" },
		{ "agent:x", "x: not an address of a vsock" },
		{ "vsock::x", ":x: not an address of a vsock" },
		{ "qga:" LONG LONG, "no shell answers there: guest agent: the path of its socket is too long" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct record_result r;
		struct error err;
		const struct record_wish wish = { "web", cases[i].transport };
		begin(state);
		assert_int_equal(record((struct record_options){ .wish = &wish, .wishes = 1 }, &r, &err), 0);
		assert_string_equal(r.machine[1].why.text, cases[i].why);
		assert_true(r.machine[0].recorded && r.machine[1].asked && !r.machine[1].recorded && !r.whole);
		record_release(&r);
		end(state);
	}
}

static void check_host(struct record_options o, enum status status, const char *why)
{
	struct record_result r;
	struct error err;
	o.host_only = true;
	assert_int_equal(record(o, &r, &err), -1);
	if (!strstr(err.text, why))
		printf("%s\n", err.text);
	assert_non_null(strstr(err.text, why));
	assert_int_equal(err.status, status);
	assert_true(*err.mend || status == STATUS_CANCELLED);
	record_release(&r);
}

static void test_host(void **state)
{
	(void)state;
	const struct record_options plain = { 0 };
	char *place = mem_printf("%s/run/stealscope", tree.root), *folder = mem_printf("%s/r", tree.root);
	check_host((struct record_options){ .duration = 1LL << 62 }, STATUS_SYSTEM, ", of which 256 are left to others");
	assert_int_not_equal(access(folder, F_OK), 0);
	stop = 1;
	check_host(plain, STATUS_CANCELLED, "stopped before it began");
	stop = 0;
	assert_int_equal(chmod(place, 0777), 0);
	check_host(plain, STATUS_SYSTEM, "/run/stealscope: others may write there");
	assert_int_equal(rmdir(place), 0);
	tree_text(&tree, "run/stealscope", "");
	check_host(plain, STATUS_SYSTEM, "run/stealscope");
	free(place);
	free(folder);
}

static void test_second_stop(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	pthread_t thread;
	const struct record_wish wish = { "web", KEEPS };
	said = false;
	pthread_create(&thread, NULL, stop_twice, NULL);
	const int rc = record((struct record_options){ .wish = &wish, .wishes = 1, .duration = 3600LL * 1000000000 }, &r, &err);
	pthread_join(thread, NULL);
	assert_int_equal(rc, 0);
	assert_true(r.machine[0].recorded && !r.machine[1].recorded && !r.whole);
	assert_string_equal(r.machine[1].why.text, "what it recorded was not waited for");
	assert_string_equal(r.machine[1].why.mend, "one ^C ends the recording, another one does not wait for guests");
	record_release(&r);
}

/* ---- a disk that becomes full */

/* A small one of this process alone; false: it may not have one. */
static bool mount_small(const char *place, const char *size)
{
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(place, 0700) == 0 &&
	       mount("none", place, "tmpfs", 0, size) == 0;
}

static void *fill(void *arg)
{
	struct statvfs s;
	const int fd = openat(*(int *)arg, "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (!said)
		usleep(10000);
	fstatvfs(*(int *)arg, &s);
	posix_fallocate(fd, 0, (off_t)(s.f_bavail * s.f_bsize) - 150 * MB);
	close(fd);
	return NULL;
}

/* In a child: 0, or what was not as it should be. */
static int record_small(void)
{
	struct record_result r;
	struct error err;
	pthread_t thread;
	char *place = mem_printf("%s/r", tree.root);
	if (!mount_small(place, "size=400m"))
		return 77;
	int folder = open(place, O_RDONLY | O_DIRECTORY);
	said = false;
	pthread_create(&thread, NULL, fill, &folder);
	free(place);
	place = mem_printf("%s/r/x", tree.root);
	struct record_options o = { .host_only = true, .root = tree.root, .output = place, .clock = "auto", .stop = &stop,
		.say = hear, .duration = 60LL * 1000000000 };
	if (record_run(&o, &r, &err))
		return printf("%s\n", err.text), 1;
	pthread_join(thread, NULL);
	if (r.whole || !r.machine[0].recorded)
		return 2;
	return strcmp(r.machine[0].why.text, "it ended early: the disk is nearly full") == 0 && *r.machine[0].why.mend ? 0 : 3;
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
		cmocka_unit_test(test_guests), cmocka_unit_test_setup_teardown(test_host, begin, end),
		cmocka_unit_test_setup_teardown(test_second_stop, begin, end),
		cmocka_unit_test_setup_teardown(test_disk, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
