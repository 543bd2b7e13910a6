/* Tests of the syntax of transports, base64, and the parser of frames from guests. */
#include "test.h"

#include "base/mem.h"
#include "base/base64.h"
#include "record/frames.h"
#include "record/transport.h"

/* ---- transports */

static void test_transports(void **state)
{
	(void)state;
	static const char *const good[] = { "none", "ssh:root@web", "qga:", "qga:dom", "vsock:3:99", "vsock::99",
		"cmd:docker exec x sh" };
	static const char *const bad[] = { "", "sh", "ssh", "ssh:", "ssh:-oProxyCommand=x", "cmd:", "vsock", "telnet:x" };
	struct error err = ERROR_INIT;
	struct transport t;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(transport_parse(good[i], &t, &err), 0);
		transport_release(&t);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(transport_parse(bad[i], &t, &err), -1);
		assert_int_equal(err.status, STATUS_USAGE);
	}
	struct vm vm = { .name = mem_dup("w") };
	static const struct { const char *text; unsigned cid; const char *expected; } cases[] = {
		{ "vsock::99", 4, "vsock:4:99" }, { "vsock:7:99", 4, "vsock:7:99" }, { "vsock:99", 4, "vsock:4:99" },
		{ "vsock::99", 0, NULL }, { "vsock:x:99", 4, NULL }, { "vsock:4:", 4, NULL }, { "qga:", 0, NULL },
		{ "qga:dom", 0, "qga:dom" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		vm.cid = cases[i].cid;
		assert_int_equal(transport_parse(cases[i].text, &t, &err), 0);
		assert_int_equal(transport_resolve(&t, &vm, "", &err), cases[i].expected ? 0 : -1);
		char *text = transport_text(&t);
		if (cases[i].expected)
			assert_string_equal(text, cases[i].expected);
		free(text);
		transport_release(&t);
	}
	free(vm.name);
}

static void test_base64(void **state)
{
	(void)state;
	static const struct { const char *plain, *coded; } cases[] = {
		{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "foobar", "Zm9vYmFy" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len;
		char *coded = base64_encode(cases[i].plain, strlen(cases[i].plain));
		unsigned char *plain = base64_decode(cases[i].coded, &len);
		assert_string_equal(coded, cases[i].coded);
		assert_int_equal(len, strlen(cases[i].plain));
		assert_memory_equal(plain, cases[i].plain, len);
		free(coded);
		free(plain);
	}
	static const char *const bad[] = { "Z", "Zg=", "Zg==Zg==", "Z===", "Zm9*", "=Zg=", "Zg=v" };
	size_t len;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_null(base64_decode(bad[i], &len));
}

/* ---- frames */

struct received { char text[4096]; size_t used; };

static int collect_frame(void *arg, enum frame kind, unsigned cpu, const char *data, size_t len, struct error *err)
{
	struct received *h = arg;
	(void)err;
	/* Pages arrive in parts of arbitrary sizes, so only their bytes are compared. */
	if (kind != FRAME_PAGES)
		h->used += (size_t)snprintf(h->text + h->used, sizeof h->text - h->used, "<%d/%u %zu>", (int)kind, cpu, len);
	memcpy(h->text + h->used, data, len);
	h->used += len;
	return 0;
}

static char *make_stream(const struct frames *f, const char *text)
{
	char *all = mem_dup("");
	for (const char *line = text; *line; line += strcspn(line, "|") + (line[strcspn(line, "|")] == '|')) {
		const int n = (int)strcspn(line, "|");
		char *more = *line == '@' ? mem_printf("%s%s %.*s", all, f->key, n - 1, line + 1) :
		                            mem_printf("%s%.*s", all, n, line);
		free(all);
		all = more;
	}
	return all;
}

static void test_frames_cut_anywhere(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct frames f;
	struct received expected = { 0 };
	for (size_t cut = 0; cut < 400; cut++) {
		struct received received = { 0 };
		assert_int_equal(frames_init(&f, collect_frame, &received, &err), 0);
		char *text = make_stream(
			&f, "Welcome to web\n$ \n|@about 5\nhello|@pages/cpu3 8\nPPPP\nPPP|@stats/cpu3 2\nxx|@end 0\n");
		const size_t len = strlen(text), at = cut % len, step = cut % 7 + 1;
		if (cut == 0) {
			assert_int_equal(frames_feed(&f, text, len, &err), 0);
		} else {
			assert_int_equal(frames_feed(&f, text, at, &err), 0);
			for (size_t i = at; i < len; i += step)
				assert_int_equal(frames_feed(&f, text + i, len - i < step ? len - i : step, &err), 0);
		}
		assert_false(frames_incomplete(&f));
		if (cut == 0)
			expected = received;
		assert_int_equal(received.used, expected.used);
		assert_memory_equal(received.text, expected.text, expected.used);
		frames_release(&f);
		free(text);
	}
	assert_non_null(strstr(expected.text, "<2/0 5>helloPPPP\nPPP<11/3 2>xx"));
}

static void test_frames_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"@abuot 5\nhello", "@about\n", "@about -1\n", "@about 99999999\n", "@about 5 \nhello", "@about 0x5\nhello",
		"@pages/../../etc/passwd 5\nhello", "@pages/cpu4096 8\n", "@pages/cpu-1 8\n", "@pages/cpu 8\n", "@pages/ 8\n",
		"@pages/cpu1x 8\n", "@pages/cpu0 99999999999999999999\n", "@stats/cpu1 5000\n", "@end 1\nx",
		"@about 2\nhi|and now something else\n", "@about 2\nhi|0123456789abcdef0123456789abcdef about 2\nhi",
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct error err = ERROR_INIT;
		struct received received = { 0 };
		struct frames f;
		frames_init(&f, collect_frame, &received, &err);
		char *text = make_stream(&f, bad[i]);
		assert_int_equal(frames_feed(&f, text, strlen(text), &err), -1);
		assert_int_equal(err.status, STATUS_INPUT);
		frames_release(&f);
		free(text);
	}
	struct error err = ERROR_INIT;
	struct received received = { 0 };
	struct frames f;
	char noise[1000];
	int rc = 0;
	memset(noise, 'x', sizeof noise);
	frames_init(&f, collect_frame, &received, &err);
	for (int i = 0; i < 100 && rc == 0; i++)
		rc = frames_feed(&f, noise, sizeof noise, &err);
	assert_int_equal(rc, -1);
	frames_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transports), cmocka_unit_test(test_base64), cmocka_unit_test(test_frames_cut_anywhere),
		cmocka_unit_test(test_frames_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
