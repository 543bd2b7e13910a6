#include "cli/prose.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "flow/flow.h"

#define WIDTH 80  /* columns of the output */

/* The length of a command in parentheses, "(stealscope gaps FILE 'my VM')", that text begins with; 0: none. */
static size_t command_length(const char *text)
{
	bool quoted = false;
	size_t n = 0;
	if (strncmp(text, "(stealscope ", 12) != 0)
		return 0;
	for (; text[n] && text[n] != '\n' && (quoted || text[n] != ')'); n++)
		quoted ^= text[n] == '\'';
	return n + strcspn(text + n, " \n");
}

/* A command as it can be pasted: with the name of the file, and not broken. */
static char *command_of(const char *text, size_t n, const char *file)
{
	static const char hole[] = " FILE";
	char *command = mem_printf("%.*s", (int)n, text), *at = strstr(command, hole), path[4096];
	if (!at || !file)
		return command;
	char *word = shell_word(text_escape(path, sizeof path, file));
	char *whole = mem_printf("%.*s %s%s", (int)(at - command), command, word, at + sizeof hole - 1);
	free(word);
	free(command);
	return whole;
}

/* "48.7 %", "12.0 ms" are not torn apart: the length of a word, with the unit behind a number. */
static size_t word_length(const char *text)
{
	size_t n = strcspn(text, " \n");
	return text[n] != ' ' || text_breaks(text, n) ? n : n + 1 + strcspn(text + n + 1, " \n");
}

void prose_print(const char *text, const char *file)
{
	int col = 0;
	while (*text) {
		size_t command = command_length(text), n = command ? command : word_length(text);
		char *word = command ? command_of(text, n, file) : mem_printf("%.*s", (int)n, text);
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
