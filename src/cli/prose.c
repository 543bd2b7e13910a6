#include "cli/prose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define WIDTH 80  /* columns of the output */

void prose_print(const char *text)
{
	int col = 0;
	while (*text) {
		size_t n = strcspn(text, " \n");
		char *word = mem_printf("%.*s", (int)n, text);
		int w = text_width(word);
		if (col > 0 && col + 1 + w > WIDTH) {
			fputs("\n ", stdout);
			col = 1;
		}
		printf("%s%s", col > 0 ? " " : "", word);
		col += w + (col > 0);
		free(word);
		text += n;
		if (*text == '\n') {
			putchar('\n');
			col = 0;
		}
		text += *text != '\0';
	}
}
