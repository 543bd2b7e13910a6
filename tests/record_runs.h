/* Setup and checks for recordings of a fake host with two guests, which are shells of this machine with a fake tracefs. */
#pragma once

#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/record.h"
#include "record_tree.h"

#define MS 1000000
#define PAGES 3

static struct record_tree tree;
static volatile int stop;
static char messages[4096];
static atomic_bool recording_reported;  /* `messages` contains that the recording has begun */

__attribute__((unused))
static void append_message(void *arg, const char *line)
{
	(void)arg;
	const size_t n = strlen(messages);
	snprintf(messages + n, sizeof messages - n, "%s\n", line);
	if (strstr(line, "recording"))
		recording_reported = true;
}

__attribute__((unused))
static int set_up(void **state)
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
	recording_reported = false;
	*messages = '\0';
	return 0;
}

__attribute__((unused))
static int tear_down(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

/* Returns a transport that runs `shell` as a guest with the fake machine in the directory `guest`. The caller frees. */
__attribute__((unused))
static char *transport_into(const char *guest, const char *shell)
{
	return mem_printf("cmd:{ IFS= read -r h; printf '%%s\\n' \"$h\" '. %s/%s/machine.sh'; exec cat; } | "
	                  "PATH=%s/%s/bin:$PATH exec %s", tree.root, guest, tree.root, guest, shell);
}

__attribute__((unused))
static char *output_path(const char *name)
{
	return mem_printf("%s/%s", tree.root, name);
}

__attribute__((unused))
static bool file_contains(const char *path, const char *expected)
{
	char *text = tree_read(&tree, path);
	const bool found = text && strstr(text, expected);
	if (!found)
		printf("%s: %s\n", path, text ? text : "(not there)");
	free(text);
	return found;
}

/* Checks that no tracefs instances and journals remain; waits up to a minute for the guests. */
__attribute__((unused))
static void assert_no_remains(void)
{
	for (int i = 0; i < 1200 && tree_count(&tree, "g1/sys/kernel/tracing/instances") +
	                               tree_count(&tree, "g2/sys/kernel/tracing/instances") > 0; i++)
		usleep(50000);
	assert_int_equal(tree_count(&tree, "g1/sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "g2/sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "sys/kernel/tracing/instances"), 0);
	assert_int_equal(tree_count(&tree, "run/stealscope"), 0);
}

/* Records VMs web and db with these transports (NULL: default), unless options.requested or options.host_only is set. */
__attribute__((unused))
static int run_recording(const char *dir, const char *web, const char *db, struct record_options options,
                  struct record_result *r, struct error *err)
{
	char *path = output_path(dir);
	const struct record_request request[] = { { "web", web }, { "db", db } };
	struct record_options o = options;
	o.root = tree.root;
	o.output = path;
	o.clock = o.clock ? o.clock : "auto";
	if (!o.requested && !o.host_only) {
		o.requested = request;
		o.n_requested = 2;
	}
	o.duration = o.duration || o.command || o.hold ? o.duration : 200 * MS;
	o.stop = &stop;
	o.on_message = append_message;
	*err = (struct error)ERROR_INIT;
	const int rc = record_run(&o, r, err);
	free(path);
	return rc;
}

__attribute__((unused))
static void check_pages(const char *path, char want)
{
	char *text = tree_read(&tree, path);
	assert_non_null(text);
	assert_int_equal(strlen(text), PAGES * 4096);
	assert_int_equal(strspn(text, (char[]){ want, '\0' }), PAGES * 4096);
	free(text);
}

/* Thread that stops the recording after it has started. guest: waits until this guest traces; NULL: does not. */
__attribute__((unused))
static void *stop_when_recording(void *guest)
{
	for (int i = 0; i < 6000 && !(recording_reported && (!guest || tree_is_tracing(&tree, guest))); i++)
		usleep(100000);
	sleep(3);  /* time for the recorder to report it */
	stop++;
	return NULL;
}

__attribute__((unused))
static void check_record_error(const struct record_options *o, enum status status, const char *key)
{
	struct record_result r;
	struct error err = ERROR_INIT;
	struct record_options options = *o;
	char *dir = output_path("e");
	options.root = tree.root;
	options.output = options.output ? options.output : dir;
	options.clock = options.clock ? options.clock : "auto";
	options.duration = 100 * MS;
	assert_int_equal(record_run(&options, &r, &err), -1);
	if (!strstr(err.text, key))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, key);
	assert_int_equal(err.status, status);
	assert_true(*err.remedy);
	record_release(&r);
	assert_int_not_equal(access(dir, F_OK), 0);
	free(dir);
	assert_no_remains();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
