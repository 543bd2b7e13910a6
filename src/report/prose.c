/* Sentences in lines. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/report.h"

#define WIDTH 80  /* columns of the output */

/* Returns the length of a word; a number and its unit ("48.7 %", "12.0 ms") are one word. */
static size_t word_length(const char *text)
{
	size_t n = strcspn(text, " \n");
	return text[n] != ' ' || text_may_break_at(text, n) ? n : n + 1 + strcspn(text + n + 1, " \n");
}

void prose_write(FILE *out, const char *about, const char *file)
{
	char *const all = text_insert_file_name(about, file);
	const char *text = all;
	int col = 0;
	while (*text) {
		const size_t command = text_command_bytes(text), n = command ? command : word_length(text);
		char *word = mem_printf("%.*s", (int)n, text);
		int w = text_width(word);
		if (col > 0 && col + 1 + w > WIDTH) {
			fputs("\n ", out);
			col = 1;
		}
		fprintf(out, "%s%s", col > 0 ? " " : "", word);
		col += w + (col > 0);
		free(word);
		text += n;
		if (*text == '\n') {
			putc('\n', out);
			col = 0;
		}
		text += *text != '\0';
	}
	free(all);
}
