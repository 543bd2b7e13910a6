/* Fuzz target: input as a layout, as a theme, and as a table or a specification of requests.
 *
 *   libFuzzer    clang -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER ...   ./fuzz_yaml CORPUS src/trace/layouts themes
 *   AFL++        CC=afl-clang-fast;   afl-fuzz -i src/trace/layouts -o out -- ./fuzz_yaml @@
 *   replay       ./fuzz_yaml FILE...            (without files: what is shipped, as a test of make check) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/request_kinds.h"
#include "trace/layout/layout.h"
#include "ui/widgets/theme.h"
#include "fuzz_replay.h"

#define MAX_INPUT (1u << 16)  /* maximum size of an input, bytes */

/* Checks that an error has a message of one line. */
static void check_refusal(const struct error *err)
{
	if (!err->text[0] || strchr(err->text, '\n'))
		abort();
}

/* Matches the bytes after the first ';' as text, against the bytes before it as a layout pattern. */
static void match_text(const char *text)
{
	int64_t value[2];
	char *pattern = strdup(text), *semicolon = pattern ? strchr(pattern, ';') : NULL;
	if (semicolon) {
		*semicolon = '\0';
		if (layout_match(pattern, semicolon + 1, strlen(semicolon + 1), value) && value[0] != EVENT_ABSENT && value[0] < 0 &&
		    !strpbrk(semicolon + 1, "-0123456789"))
			abort();
	}
	free(pattern);
}

/* Parses the input as a table, and as a specification. */
static void parse_requests(const char *text, size_t size)
{
	struct error err = ERROR_INIT;
	struct request_kind *k = request_kind_parse_yaml("fuzz", text, size, &err);
	if (k ? !k->name || k->probes < 2 : !err.text[0])
		abort();
	if (k)
		request_kind_has_calls(k);
	request_kind_free(k);
	const size_t n = strlen(text);
	if (!strchr(text, ':') || (n > 5 && strcmp(text + n - 5, ".yaml") == 0))
		return;  /* the name of a table or file */
	err = (struct error)ERROR_INIT;
	k = request_kind_parse(text, &err);
	if (k ? !*k->name || !*k->path[0] || k->probes != 2 : !err.text[0] || strchr(err.text, '\n') != NULL)
		abort();
	request_kind_free(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > MAX_INPUT)
		return 0;
	char *text = malloc(size + 1);
	struct theme theme = { 0 };
	struct palette palette;
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	struct error err = ERROR_INIT;
	struct layout *layout = layout_parse("fuzz", text, size, &err);
	if (!layout)
		check_refusal(&err);
	layout_free(layout);
	err = (struct error)ERROR_INIT;
	if (theme_parse(&theme, text, "fuzz", &err))
		check_refusal(&err);
	for (unsigned depth = 0; depth < DEPTH_COUNT; depth++)
		theme_palette(&theme, (enum depth)depth, &palette);
	match_text(text);
	parse_requests(text, size);
	free(text);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
int main(int argc, char **argv)
{
	int failed = 0;
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	return argc > 1 ? failed : replay_all("src/trace/layouts/*.yaml", replay) | replay_all("themes/*.yaml", replay) |
	       replay_all("src/record/requests/*.yaml", replay);
}
#endif
