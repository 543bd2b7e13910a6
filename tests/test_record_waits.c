/* record/: nobody is waited for without end, on a made-up host: ^C, a command that does not go, a guest that does not
 * stop; nor for the end of a wait that is one. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "record/record.h"
#include "record_tree.h"

#define MS 1000000LL
#define SOON (35000 * MS)  /* less than any guest has time for a word */
#define DEAF "cmd:cat >/dev/null"
#define SPEAK "cmd:read -r k _; k=${k#key=}; f() { printf '%s %s %s\\n%s' $k $1 ${#2} \"$2\"; }; " \
	"w() { while read -r l && [ \"$l\" != $1 ]; do :; done; }; w stealscope_guest; f about 'clock mono'; "

static struct record_tree tree;
static volatile int stop;
static volatile bool said;  /* that it records */

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

static void *stop_soon(void *arg)
{
	(void)arg;
	usleep(500000);
	stop++;
	return NULL;
}

static void *stop_later(void *arg)
{
	while (!said)
		usleep(10000);
	usleep(2500000);
	return stop_soon(arg);
}

static void hear(void *arg, const char *line)
{
	(void)arg;
	said |= strstr(line, "recording") != NULL;
}

static char *output(const char *name)
{
	return mem_printf("%s/%s", tree.root, name);
}

static int record(const char *web, struct record_options o, struct record_result *r, struct error *err)
{
	static unsigned n;
	char name[16];
	snprintf(name, sizeof name, "r%u", n++);
	char *path = output(name);
	const struct record_wish wish = { "web", web };
	o.root = tree.root;
	o.output = path;
	o.clock = "auto";
	o.wish = &wish;
	o.wishes = 1;
	o.stop = &stop;
	o.say = hear;
	said = false;
	*err = (struct error)ERROR_INIT;
	const int rc = record_run(&o, r, err);
	said = true;  /* nobody need wait for that any more */
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
	stop = 0;
	pthread_create(&thread, NULL, stop_soon, NULL);
	assert_int_equal(record(web, (struct record_options){ .duration = 3600000 * MS }, &r, &err), -1);
	pthread_join(thread, NULL);
	assert_string_equal(err.text, "stopped before it began");
	assert_int_equal(r.machines, 2);
	assert_null(strstr(r.machine[1].why.text, "does not answer"));  /* its time was not over */
	record_release(&r);
}

/* A socket at which connections are never taken, and no more have room. */
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
	char *path = output("agent"), *agent = mem_printf("qga:%s", path);
	const int s = open_full(path, &first);
	check_stopped(DEAF);
	check_stopped(SPEAK "cat >/dev/null");
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
	const struct record_wish wish = { "web", DEAF };
	pthread_t thread;
	const int64_t begun = now_ns();
	tree_text(&tree, "run/stealscope/999999-5", "folder /x\nguest web\ntransport " DEAF "\n");
	tree_text(&tree, "run/stealscope/999998-5", "folder /y\nguest web\ntransport " DEAF "; true\n");
	pthread_create(&thread, NULL, stop_soon, NULL);
	const struct record_options o = { .root = tree.root, .clock = "auto", .wish = &wish, .wishes = 1, .stop = &stop };
	assert_int_equal(record_cleanup(&o, &err), 0);
	assert_true(now_ns() - begun < SOON);
	pthread_join(thread, NULL);
	assert_int_equal(tree_count(&tree, "run/stealscope"), 2);  /* it is still to be done */
}

static void test_stubborn_command(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	char *argv[] = { "sleep", "600", NULL };
	signal(SIGTERM, SIG_IGN);  /* so does the command */
	assert_int_equal(record("none", (struct record_options){ .command = argv, .duration = 100 * MS }, &r, &err), 0);
	signal(SIGTERM, SIG_DFL);
	assert_int_equal(WTERMSIG(r.command_status), SIGKILL);
	record_release(&r);
}

/* A guest that sends, and sends. */
static void test_no_end(void **state)
{
	(void)state;
	struct record_result r;
	struct error err;
	assert_int_equal(record(SPEAK "f ready 'kilobytes 1024 rate 0 page 4096'; w go; f started ''; w stop; f stopped ''; "
	                        "w send; while :; do printf '%s saved_cmdlines 16000000\\n' $k; head -c 16000000 /dev/zero; done",
	                        (struct record_options){ .duration = 100 * MS }, &r, &err), 0);
	assert_string_equal(r.machine[1].why.text, "it sends without end");
	assert_true(r.machine[0].recorded && !r.machine[1].recorded);
	record_release(&r);
}

static size_t kept;

static void keep(void *arg, const char *folder, const struct record_result *r)
{
	(void)arg, (void)folder;
	assert_true(r->machine[0].recorded);
	kept++;
}

/* A vCPU that never gets a CPU again: its wait is in no sum, but a flight need not wait for its end. */
static void test_endless_gap(void **state)
{
	(void)state;
	static const char *const trigger[] = { "gap(web)>20ms" };
	struct record_result r;
	struct error err;
	pthread_t thread;
	tree_text(&tree, "proc/300/task/310/schedstat", "5 5 1\n");
	tree_text(&tree, "proc/300/task/310/stat", "1 (a) b) R 1\n");
	kept = 0;
	const struct record_options o = { .hold = 2000 * MS, .trigger = trigger, .triggers = 1, .most = 1, .kept = keep };
	assert_int_equal(record("none", o, &r, &err), 0);
	record_release(&r);
	assert_int_equal(kept, 1);
	/* It sleeps. */
	tree_text(&tree, "proc/300/task/310/stat", "1 (a) b) S 1\n");
	pthread_create(&thread, NULL, stop_later, NULL);
	assert_int_equal(record("none", o, &r, &err), 0);
	pthread_join(thread, NULL);
	record_release(&r);
	assert_int_equal(kept, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	alarm(800);  /* what waits for ever ends there */
	const struct CMUnitTest tests[] = {
		TEST(test_one_interrupt), TEST(test_interrupted_cleanup), TEST(test_stubborn_command), TEST(test_no_end),
		TEST(test_endless_gap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
