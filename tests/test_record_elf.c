/* Programs with functions and static probes (tests/fuzz/corpus-elf), and their arguments as tracefs reads them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/elf_reader.h"
#include "record/request_kinds.h"
#include "test.h"

static struct elf_places places;

static int open_seed(const char *name, struct error *err)
{
	const char *srcdir = getenv("srcdir");
	char *path = mem_printf("%s/tests/fuzz/corpus-elf/%s", srcdir ? srcdir : ".", name);
	const int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	const int rc = elf_places_read(&places, &(struct elf_source){ .path = name, .fd = fd }, NULL, err);
	close(fd);
	free(path);
	return rc;
}

static const struct elf_place *find(const char *name)
{
	for (size_t i = 0; i < places.len; i++)
		if (strcmp(places.place[i].name, name) == 0)
			return &places.place[i];
	fail_msg("no %s", name);
	return NULL;
}

/* Checks the fetch argument n of a place; NULL: it cannot be read. */
static void expect_arg(const char *name, unsigned n, const char *expected)
{
	struct error err = ERROR_INIT;
	char *arg = elf_place_arg(&places, find(name), n, &err);
	if (expected)
		assert_string_equal(arg, expected);
	else
		assert_null(arg);
	assert_int_equal(err.text[0] == '\0', expected != NULL);
	free(arg);
}

static void test_x86(void **state)
{
	(void)state;
	assert_int_equal(open_seed("x86", NULL), 0);
	assert_int_equal(places.len, 5);
	assert_int_equal(find("query__start")->offset, 0x100);
	assert_int_equal(find("query__start")->counter, 0x10);
	assert_string_equal(find("query__start")->provider, "postgresql");
	assert_int_equal(find("query__done")->counter, 0);
	assert_int_equal(find("handle")->offset, 0x180);
	assert_null(find("handle")->provider);
	static const char *const start[] = { "%bx:u64", "-144(%bp):s32", "+60(%ax):u32", "\\5:s32", "%ax:u8", NULL };
	for (unsigned i = 0; i < sizeof start / sizeof *start; i++)
		expect_arg("query__start", i + 1, start[i]);
	for (unsigned i = 0; i < 5; i++)  /* relative to the instruction, indexed, a float, a segment */
		expect_arg("q", i, NULL);
	static const char *const call[] = { NULL, "%di:u64", "%si:u64", "%dx:u64", "%cx:u64", "%r8:u64", "%r9:u64", NULL, NULL };
	for (unsigned i = 0; i < sizeof call / sizeof *call; i++)
		expect_arg("handle", i, call[i]);
	elf_places_release(&places);
}

static void test_arm64(void **state)
{
	(void)state;
	assert_int_equal(open_seed("arm64", NULL), 0);
	static const char *const args[] = { NULL, "%x0:u64", "%x3:u32", "+16(%sp):s32", "+0(%x29):u64", "\\5:u32", NULL };
	for (unsigned i = 0; i < sizeof args / sizeof *args; i++)
		expect_arg("arm", i, args[i]);
	expect_arg("handle", 8, "%x7:u64");
	elf_places_release(&places);
}

static void test_prelinked(void **state)
{
	(void)state;
	assert_int_equal(open_seed("prelinked", NULL), 0);
	assert_int_equal(find("moved")->offset, 0x100);
	assert_int_equal(find("moved")->counter, 0x10);
	elf_places_release(&places);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct { const char *name, *why; } bad[] = {
		{ "empty", "not a program" }, { "elf32", "32-bit" }, { "object", "not a program" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = ERROR_INIT;
		assert_int_equal(open_seed(bad[i].name, &err), -1);
		assert_non_null(strstr(err.text, bad[i].why));
		elf_places_release(&places);
	}
	assert_int_equal(open_seed("not-mapped", NULL), 0);
	assert_int_equal(places.len, 0);
	assert_int_equal(places.skipped, 3);
	elf_places_release(&places);
}

/* ---- specifications and tables */

static void test_specifications(void **state)
{
	(void)state;
	struct request_kind *k = request_kind_parse("db=/bin/x:usdt:p:query__start/query__done@arg2", NULL);
	assert_string_equal(k->name, "db");
	assert_string_equal(k->path[0], "/bin/x");
	assert_int_equal(k->probes, 2);
	assert_string_equal(k->probe[1].provider, "p");
	assert_string_equal(k->probe[1].name, "query__done");
	assert_int_equal(k->probe[0].key, 2);
	assert_int_equal(k->probe[1].key, 2);
	assert_false(request_kind_has_calls(k));
	request_kind_free(k);
	k = request_kind_parse("/bin/x:begin@arg1/finish@arg3", NULL);
	assert_string_equal(k->name, "begin");
	assert_int_equal(k->probe[0].key, 1);
	assert_int_equal(k->probe[1].key, 3);
	request_kind_free(k);
	k = request_kind_parse("/a:b/x:_ZN1a1bEv", NULL);  /* a colon in the path */
	assert_string_equal(k->path[0], "/a:b/x");
	assert_true(k->probe[1].at_return);
	assert_true(request_kind_has_calls(k));
	request_kind_free(k);
	k = request_kind_parse("/bin/x:usdt:p:request__start/request__done", NULL);
	assert_string_equal(k->name, "request");
	request_kind_free(k);
}

static void test_shipped_tables(void **state)
{
	(void)state;
	size_t n = 0;
	for (const char *name; (name = request_kind_shipped(n)) != NULL; n++) {
		struct error err = ERROR_INIT;
		struct request_kind *k = request_kind_parse(name, &err);
		if (!k)
			fail_msg("%s", err.text);
		assert_string_equal(k->name, name);
		assert_true(k->programs > 0 && k->paths > 0 && k->about);
		assert_false(k->by_user);
		request_kind_free(k);
	}
	assert_int_equal(n, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86), cmocka_unit_test(test_arm64), cmocka_unit_test(test_prelinked),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_specifications), cmocka_unit_test(test_shipped_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
