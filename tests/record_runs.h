/* Whole recordings of a made-up host, whose two guests are this machine's shells with a made-up tracefs. */
#ifndef STEALSCOPE_TESTS_RECORD_RUNS_H
#define STEALSCOPE_TESTS_RECORD_RUNS_H

#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "record/record.h"
#include "record_tree.h"

#define MS 1000000
#define PAGES 3

static struct record_tree tree;
static volatile int stop;
static char said[4096];

__attribute__((unused))
static void hear(void *arg, const char *line)
{
	(void)arg;
	const size_t n = strlen(said);
	snprintf(said + n, sizeof said - n, "%s\n", line);
}

__attribute__((unused))
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

__attribute__((unused))
static int end(void **state)
{
	(void)state;
	tree_end(&tree);
	return 0;
}

/* A way into a guest: that shell, with the made-up machine below that folder. */
__attribute__((unused))
static char *way_into(const char *guest, const char *shell)
{
	return mem_printf("cmd:{ IFS= read -r h; printf '%%s\\n' \"$h\" '. %s/%s/machine.sh'; exec cat; } | "
	                  "PATH=%s/%s/bin:$PATH exec %s", tree.root, guest, tree.root, guest, shell);
}

__attribute__((unused))
static char *output(const char *name)
{
	return mem_printf("%s/%s", tree.root, name);
}

__attribute__((unused))
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
__attribute__((unused))
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
__attribute__((unused))
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

__attribute__((unused))
static void check_pages(const char *path, char want)
{
	char *text = tree_read(&tree, path);
	assert_non_null(text);
	assert_int_equal(strlen(text), PAGES * 4096);
	assert_int_equal(strspn(text, (char[]){ want, '\0' }), PAGES * 4096);
	free(text);
}

/* However long it takes until it records, and a guest, if one is told; before that, it tries how much comes. */
__attribute__((unused))
static void *stop_later(void *guest)
{
	for (int i = 0; i < 6000 && !(strstr(said, "recording") && (!guest || tree_is_tracing(&tree, guest))); i++)
		usleep(100000);
	sleep(3);  /* for it to say so */
	stop++;
	return NULL;
}

__attribute__((unused))
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
