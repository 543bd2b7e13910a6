/* Tests, on a fake host, that the recorder never waits without end: ^C, a command that ignores SIGTERM, a guest that
 * never stops sending; and that a trigger on a gap fires before the gap ends. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "record/record.h"
#include "record_tree.h"

#define MS 1000000LL
#define INTERRUPT_MAX (35000 * MS)  /* ns for an interrupted recording to end; shorter than the timeout of a guest */
#define SILENT "cmd:cat >/dev/null"
#define ANSWERS "cmd:read -r k _; k=${k#key=}; f() { printf '%s %s %s\\n%s' $k $1 ${#2} \"$2\"; }; " \
	"w() { while read -r l && [ \"$l\" != $1 ]; do :; done; }; w stealscope_guest; f about 'clock mono'; "

static struct record_tree tree;
static volatile int stop;
static atomic_bool recording_reported;  /* the recorder reported that the recording runs */

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

static void *stop_soon(void *arg)
{
	(void)arg;
	usleep(500000);
	stop++;
	return NULL;
}

static void *stop_later(void *arg)
{
	while (!recording_reported)
		usleep(10000);
	usleep(2500000);
	return stop_soon(arg);
}

static void watch_messages(void *arg, const char *line)
{
	(void)arg;
	if (strstr(line, "recording"))
		recording_reported = true;
}

static char *output_path(const char *name)
{
	return mem_printf("%s/%s", tree.root, name);
}

static int run_recording(const char *web, struct record_options o, struct record_result *r, struct error *err)
{
	static unsigned n;
	char name[16];
	snprintf(name, sizeof name, "r%u", n++);
	char *path = output_path(name);
	const struct record_request request = { "web", web };
	o.root = tree.root;
	o.output = path;
	o.clock = "auto";
	o.requested = &request;
	o.n_requested = 1;
	o.stop = &stop;
	o.on_message = watch_messages;
	recording_reported = false;
	*err = (struct error)ERROR_INIT;
	const int rc = record_run(&o, r, err);
	recording_reported = true;  /* ends stop_later() if it still waits */
	free(path);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "run/stealscope"), 0);
	return rc;
}

static void check_stopped(const char *web)
{
	struct record_result r;
	struct error err;
	pthread_t thread;
	const int64_t begun = now_ns();
	stop = 0;
	pthread_create(&thread, NULL, stop_soon, NULL);
	assert_int_equal(run_recording(web, (struct record_options){ .duration = 3600000 * MS }, &r, &err), -1);
	pthread_join(thread, NULL);
	assert_int_equal(err.status, STATUS_CANCELLED);
	assert_int_equal(r.machines, 2);
	assert_true(now_ns() - begun < INTERRUPT_MAX);  /* interrupted, not timed out */
	record_release(&r);
}

/* Opens a listening socket that accepts no connection; *first: a connection that fills the backlog. */
static int open_full(const char *path, int *first)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s, (const struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(s, 0), 0);
	*first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*first, (const struct sockaddr *)&a, sizeof a), 0);
	return s;
}

static void test_one_interrupt(void **state)
{
	(void)state;
	int first;
	char *path = output_path("agent"), *agent = mem_printf("qga:%s", path);
	const int s = open_full(path, &first);
	check_stopped(SILENT);
	check_stopped(ANSWERS "cat >/dev/null");
	check_stopped("cmd:trap '' TERM; exec sleep 60");
	check_stopped(agent);
	close(s);
	close(first);
	free(path);
	free(agent);
}

static void test_interrupted_cleanup(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	const struct record_request request = { "web", SILENT };
	pthread_t thread;
	const int64_t begun = now_ns();
	tree_text(&tree, "run/stealscope/999999-5", "folder /x\nguest web\ntransport " SILENT "\n");
	tree_text(&tree, "run/stealscope/999998-5", "folder /y\nguest web\ntransport " SILENT "; true\n");
	pthread_create(&thread, NULL, stop_soon, NULL);
	const struct record_options o = {
		.root = tree.root, .clock = "auto", .requested = &request, .n_requested = 1, .stop = &stop
	};
	assert_int_equal(record_cleanup(&o, &err), 0);
	assert_true(now_ns() - begun < INTERRUPT_MAX);
	pthread_join(thread, NULL);
	assert_int_equal(tree_count(&tree, "run/stealscope"), 2);  /* journals remain for the next cleanup */
}

static void test_stubborn_command(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	char *argv[] = { "sleep", "600", NULL };
	signal(SIGTERM, SIG_IGN);  /* the command inherits this */
	assert_int_equal(run_recording("none", (struct record_options){ .command = argv, .duration = 100 * MS }, &r, &err), 0);
	signal(SIGTERM, SIG_DFL);
	assert_int_equal(WTERMSIG(r.command_status), SIGKILL);
	record_release(&r);
}

/* A guest that never stops sending. */
static void test_no_end(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	static const char guest[] =
		ANSWERS "f ready 'kilobytes 1024 rate 0 page 4096'; w go; f started ''; w stop; f stopped ''; "
		"w send; yes \"$k pages/cpu0 0\"";
	assert_int_equal(run_recording(guest, (struct record_options){ .duration = 100 * MS }, &r, &err), 0);
	assert_non_null(strstr(r.machine[1].why.text, "sends"));
	assert_true(r.machine[0].recorded && !r.machine[1].recorded);
	record_release(&r);
}

static size_t n_snapshots;

static void count_snapshot(void *arg, const char *dir, const struct record_result *r)
{
	(void)arg, (void)dir;
	assert_true(r->machine[0].recorded);
	n_snapshots++;
}

/* The trigger fires for a vCPU that never runs again, although schedstat does not contain the wait in progress. */
static void test_endless_gap(void **state)
{
	(void)state;
	static const char *const trigger[] = { "gap(web)>20ms" };
	struct record_result r;
	struct error err;
	pthread_t thread;
	tree_text(&tree, "proc/300/task/310/schedstat", "5 5 1\n");
	tree_text(&tree, "proc/300/task/310/stat", "1 (a) b) R 1\n");
	n_snapshots = 0;
	const struct record_options o = { .hold = 2000 * MS, .trigger = trigger, .triggers = 1,
		.max_snapshots = 1, .on_snapshot = count_snapshot };
	assert_int_equal(run_recording("none", o, &r, &err), 0);
	record_release(&r);
	assert_int_equal(n_snapshots, 1);
	/* A sleeping vCPU does not wait for a CPU. */
	tree_text(&tree, "proc/300/task/310/stat", "1 (a) b) S 1\n");
	pthread_create(&thread, NULL, stop_later, NULL);
	assert_int_equal(run_recording("none", o, &r, &err), 0);
	pthread_join(thread, NULL);
	record_release(&r);
	assert_int_equal(n_snapshots, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	alarm(800);  /* ends a test that waits forever */
	const struct CMUnitTest tests[] = {
		TEST(test_one_interrupt), TEST(test_interrupted_cleanup), TEST(test_stubborn_command), TEST(test_no_end),
		TEST(test_endless_gap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
