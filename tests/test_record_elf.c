/* Programs with functions and static probes (tests/fuzz/corpus-elf), and their arguments as tracefs reads them. */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
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

/* ---- files whose tables are larger than they */

enum { NAME = 64 + sizeof(Elf64_Phdr), NAME_BYTES = 1002, SYMBOLS = 1096 + sizeof(Elf64_Phdr) };

/* Makes a program of which `tables` symbol tables are the same bytes: n symbols with one name of 1000 bytes. */
static unsigned char *make_overlapping(unsigned tables, unsigned n, bool good, size_t *size)
{
	const size_t sections = SYMBOLS + n * sizeof(Elf64_Sym);
	*size = sections + (tables + 2) * sizeof(Elf64_Shdr);
	unsigned char *file = mem_new(*size, 1);
	const Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 }, .e_type = ET_DYN,
		.e_machine = EM_X86_64, .e_phoff = sizeof head, .e_shoff = sections, .e_ehsize = sizeof head,
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1, .e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(tables + 2), .e_shstrndx = 1 };
	const Elf64_Phdr all = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 1 << 30, .p_memsz = 1 << 30 };
	memcpy(file, &head, sizeof head);
	memcpy(file + sizeof head, &all, sizeof all);
	memset(file + NAME + 1, 'a', NAME_BYTES - 2);
	for (unsigned i = 0; i < n; i++) {
		const Elf64_Sym s = { .st_name = good ? NAME_BYTES - 3 : 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1, .st_value = 100 + i };
		memcpy(file + SYMBOLS + i * sizeof s, &s, sizeof s);
	}
	for (unsigned i = 0; i <= tables; i++) {
		const Elf64_Shdr names = { .sh_type = SHT_STRTAB, .sh_offset = NAME, .sh_size = NAME_BYTES },
			symbols = { .sh_type = SHT_SYMTAB, .sh_offset = SYMBOLS, .sh_size = n * sizeof(Elf64_Sym), .sh_link = 1,
			            .sh_entsize = sizeof(Elf64_Sym) };
		memcpy(file + sections + (i + 1) * sizeof names, i ? &symbols : &names, sizeof names);
	}
	return file;
}

static bool wants_nothing(const void *arg, const char *provider, const char *name)
{
	(void)arg;
	(void)provider;
	(void)name;
	return false;
}

/* A filter that does not return. */
static bool wait_for_end(const void *arg, const char *provider, const char *name)
{
	(void)arg;
	(void)provider;
	(void)name;
	while (pause() < 0)
		continue;
	return false;
}

/* The work and the memory for a file are bounded by its size, however often its sections use the same bytes. */
static void test_overlapping(void **state)
{
	(void)state;
	static const struct { unsigned tables, n; bool good; int rc; size_t places; } file[] = {
		{ 1, 60, true, 0, 60 }, { 3, 2000, true, -1, 0 }, { 60000, 8000, true, -1, 0 }, { 1, 2000, false, -1, 0 },
	};
	for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
		struct error err = ERROR_INIT;
		size_t size;
		unsigned char *data = make_overlapping(file[i].tables, file[i].n, file[i].good, &size);
		const struct elf_source source = { .path = "x", .fd = -1, .data = data, .size = size };
		struct elf_source some = source;
		some.filter.wants = wants_nothing;
		assert_int_equal(elf_places_read(&places, &source, NULL, &err), file[i].rc);
		assert_int_equal(places.len, file[i].places);
		elf_places_release(&places);
		assert_int_equal(elf_places_read(&places, &some, NULL, &err), file[i].rc);
		assert_int_equal(places.len, 0);
		elf_places_release(&places);
		free(data);
	}
}

/* A reader can be ended at any time, and a request to stop ends the wait. */
static void test_stopped(void **state)
{
	(void)state;
	size_t size;
	struct error err = ERROR_INIT;
	const volatile int stop = 1;
	unsigned char *data = make_overlapping(1, 60, true, &size);
	struct elf_reader r;
	assert_int_equal(elf_reader_start(&r, &(struct elf_source){ .path = "x", .fd = -1, .data = data, .size = size }, &err), 0);
	const pid_t pid = r.pid;
	elf_reader_end(&r);
	assert_int_equal(kill(pid, 0), -1);
	const struct elf_source endless = { .path = "x", .fd = -1, .data = data, .size = size, .filter = { wait_for_end, NULL } };
	assert_int_equal(elf_places_read(&places, &endless, &stop, &err), -1);
	assert_int_equal(err.status, STATUS_CANCELLED);
	free(data);
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
		cmocka_unit_test(test_refused), cmocka_unit_test(test_overlapping), cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_specifications), cmocka_unit_test(test_shipped_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
