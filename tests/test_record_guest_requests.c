/* Probes of requests in a guest (record/guest_requests.h): the test acts as the shell of the guest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "record/guest_requests.h"
#include "record/request_definitions.h"
#include "test.h"

static struct {
	unsigned char *file;
	size_t size, read;       /* read: bytes of the file that the host has asked for */
	char commands[65536];    /* commands without answer */
	char said[4096];
	char probes[16384];      /* commands probe */
	bool ended;
} shell;

static void receive(void *arg, const char *line)
{
	(void)arg;
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_true(strlen(shell.commands) + strlen(line) < sizeof shell.commands);
	strncat(shell.commands, line, sizeof shell.commands - strlen(shell.commands) - 1);
}

static void say(void *arg, const char *line)
{
	(void)arg;
	snprintf(shell.said + strlen(shell.said), sizeof shell.said - strlen(shell.said), "%s\n", line);
}

/* Answers commands until the host ends. `refuse`: the kernel refuses the probes. Returns the last result. */
static int answer(struct guest_requests *r, bool refuse, struct error *err)
{
	int rc = 0;
	while ((*shell.commands || guest_requests_fd(r) >= 0) && rc == 0) {
		guest_requests_poll(r);
		if (!*shell.commands)
			continue;
		size_t program, first, n;
		char *line = mem_dup(shell.commands), *end = strchr(line, '\n');
		memmove(shell.commands, shell.commands + (end - line) + 1, strlen(end + 1) + 1);
		*end = '\0';
		if (sscanf(line, "read %zu %zu %zu", &program, &first, &n) == 3) {
			assert_int_equal(program, 1);
			const size_t at = first * GUEST_PROGRAM_BLOCK, max = n * GUEST_PROGRAM_BLOCK;
			assert_true(at < shell.size && n <= GUEST_PROGRAM_BLOCKS);
			const size_t bytes = shell.size - at < max ? shell.size - at : max;
			shell.read += bytes;
			rc = guest_requests_read(r, (const char *)shell.file + at, bytes, err);
		} else if (strncmp(line, "probe ", 6) == 0) {
			snprintf(shell.probes + strlen(shell.probes), sizeof shell.probes - strlen(shell.probes), "%s\n", line);
		} else if (strcmp(line, "commit") == 0) {
			rc = guest_requests_defined(r, refuse ? "failed 1" : "failed 0", err);
		} else {
			assert_string_equal(line, "requests_end");
			shell.ended = true;
		}
		free(line);
	}
	return rc;
}

static void load(const char *path)
{
	memset(&shell, 0, sizeof shell);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	shell.size = (size_t)ftell(f);
	rewind(f);
	shell.file = mem_new(shell.size, 1);
	assert_int_equal(fread(shell.file, 1, shell.size, f), shell.size);
	fclose(f);
}

static char *list(const char *path)
{
	return mem_printf("77 %zu %s\n", shell.size, path);
}

static struct guest_request_kinds kinds;
static struct guest_requests *start(const char *const *spec, size_t n)
{
	assert_int_equal(guest_request_kinds_parse(&kinds, spec, n, NULL), 0);
	return guest_requests_new(&kinds, receive, say, NULL);
}

static void end(struct guest_requests *r)
{
	guest_requests_free(r);
	guest_request_kinds_release(&kinds);
	free(shell.file);
}

/* The definitions are those of a program that the host reads itself, but not the whole file is sent. */
static void test_definitions(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	load("/proc/self/exe");
	const char *const spec[] = { "main_of_test=/opt/program:main", "/opt/other:main" };
	struct guest_requests *r = start(spec, 2);
	char *script = guest_request_kinds_script(&kinds), *programs = list("/opt/program");
	assert_string_equal(script, "programs='' paths=' /opt/program /opt/other'");
	assert_int_equal(guest_requests_list(r, programs, &err), 0);
	assert_int_equal(answer(r, false, &err), 0);
	assert_true(shell.ended);
	assert_true(shell.read < shell.size);
	assert_non_null(strstr(shell.said, "requests main_of_test: 2 probes in /opt/program\n"));
	assert_non_null(strstr(shell.said, "requests main: no program /opt/other\n"));

	struct elf_places places;
	struct request_definitions d = { 0 };
	assert_int_equal(elf_places_parse(&places, shell.file, shell.size, "test", NULL, &err), 0);
	assert_int_equal(request_definitions_add(&d, kinds.kind[0], &places, false, &err), 0);
	assert_int_equal(d.n, 2);
	char *expected = mem_printf("probe 1 %s _r1/%s %s\nprobe 1 %s _r2/%s %s\n", d.item[0].type, d.item[0].event,
	                            d.item[0].place, d.item[1].type, d.item[1].event, d.item[1].place);
	assert_string_equal(shell.probes, expected);
	assert_false(guest_requests_accept(r, "stealscope_5_6_r3/srbn_start_main_of_test"));
	assert_false(guest_requests_accept(r, "other_5_6_r1/srbn_start_main_of_test"));
	assert_true(guest_requests_accept(r, "stealscope_5_6_r1/srbn_start_main_of_test"));
	assert_false(guest_requests_accept(r, "stealscope_5_6_r1/srbn_start_main_of_test"));
	request_definitions_release(&d);
	elf_places_release(&places);
	free(expected);
	free(script);
	free(programs);
	end(r);
}

static void test_refused_by_kernel(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	load("/proc/self/exe");
	const char *const spec[] = { "/opt/program:main" };
	struct guest_requests *r = start(spec, 1);
	char *programs = list("/opt/program");
	assert_int_equal(guest_requests_list(r, programs, &err), 0);
	assert_int_equal(answer(r, true, &err), 0);
	assert_true(shell.ended);
	assert_non_null(strstr(shell.said, "refused"));
	assert_false(guest_requests_accept(r, "stealscope_5_6_r1/srbn_start_main"));
	free(programs);
	end(r);
}

static void test_protocol_errors(void **state)
{
	(void)state;
	static const char *const bad[] = { "1 2\n", "x 100 /p\n", "1 0 /p\n", "1 99999999999 /p\n", "1 100 p\n",
		"1 1 /a\n1 1 /a\n1 1 /a\n1 1 /a\n1 1 /a\n1 1 /a\n1 1 /a\n1 1 /a\n1 1 /a\n" };
	const char *const spec[] = { "/opt/program:main" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = ERROR_INIT;
		load("/dev/null");
		struct guest_requests *r = start(spec, 1);
		assert_int_equal(guest_requests_list(r, bad[i], &err), -1);
		assert_non_null(strstr(err.text, "protocol error"));
		end(r);
	}
	struct error err = ERROR_INIT;
	load("/dev/null");
	struct guest_requests *r = start(spec, 1);
	assert_int_equal(guest_requests_read(r, "x", 1, &err), -1);
	assert_int_equal(guest_requests_defined(r, "failed 0", &err), -1);
	assert_int_equal(guest_requests_list(r, "1 5000 /opt/program\n", &err), 0);
	assert_string_equal(shell.commands, "read 1 0 1\n");
	assert_int_equal(guest_requests_defined(r, "failed 0", &err), -1);
	assert_int_equal(guest_requests_read(r, "x", 1, &err), -1);
	assert_int_equal(guest_requests_list(r, "1 5000 /opt/program\n", &err), -1);
	end(r);
}

/* A file of zeros, and a guest without programs. */
static void test_nothing_found(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	const char *const spec[] = { "/opt/program:main" };
	load("/dev/null");
	free(shell.file);
	shell.file = mem_new(5000, 1);
	shell.size = 5000;
	struct guest_requests *r = start(spec, 1);
	char *programs = list("/opt/program");
	assert_int_equal(guest_requests_list(r, programs, &err), 0);
	assert_int_equal(answer(r, false, &err), 0);
	assert_true(shell.ended && strstr(shell.said, "/opt/program: not a program or library (ELF)\n"));
	free(programs);
	end(r);
	load("/dev/null");
	r = start(spec, 1);
	assert_int_equal(guest_requests_list(r, "", &err), 0);
	assert_string_equal(shell.commands, "requests_end\n");
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definitions),
		cmocka_unit_test(test_refused_by_kernel),
		cmocka_unit_test(test_protocol_errors),
		cmocka_unit_test(test_nothing_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
