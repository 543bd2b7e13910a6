/* Sentences in lines. */
#include "base/base.h"
#include "base/terminal_type.h"
#include "report/report.h"

#define WIDTH 80  /* the output's columns */

/* Returns a word's length; a number and its unit ("48.7 %", "12.0 ms") are one word. */
static size_t word_length(const char *text)
{
	size_t n = strcspn(text, " \n");
	return text[n] != ' ' || text_may_break_at(text, n) ? n : n + 1 + strcspn(text + n + 1, " \n");
}

/* Undoes shell_word(). */
static char *unquote(const char *word, size_t bytes)
{
	char *text = mem_new(bytes + 1, 1), *to = text;
	bool is_quoted = false;
	for (size_t i = 0; i < bytes; i++) {
		if (word[i] == '\'')
			is_quoted = !is_quoted;
		else
			*to++ = word[i] == '\\' && !is_quoted && i + 1 < bytes ? word[++i] : word[i];
	}
	return text;
}

/* Returns the link to the place that "(stealscope view FILE --row ROW --at TIME)." shows; NULL: another command. */
static char *make_link(const char *command, const char *file)
{
	static const char row_option[] = " --row ", at_option[] = " --at ";
	const char *row = strstr(command, row_option), *at = row ? strstr(row, at_option) : NULL;
	if (!at)
		return NULL;
	char *name = unquote(row + sizeof row_option - 1, (size_t)(at - row) - sizeof row_option + 1);
	char *time = mem_printf("%.*s", (int)strcspn(at + sizeof at_option - 1, ")"), at + sizeof at_option - 1);
	char *link = place_link_make(file, name, time);
	free(name);
	free(time);
	return link;
}

void prose_write(FILE *out, const char *about, const char *file)
{
	char *const all = text_insert_file_name(about, file);
	const char *text = all;
	const bool is_linked = file && terminal_skips_osc(fileno(out));
	int col = 0;
	while (*text) {
		const size_t command = text_command_bytes(text), n = command ? command : word_length(text);
		char *word = mem_printf("%.*s", (int)n, text);
		int w = text_width(word);
		if (col > 0 && col + 1 + w > WIDTH) {
			fputs("\n ", out);
			col = 1;
		}
		fputs(col > 0 ? " " : "", out);
		char *link = command && is_linked ? make_link(word, file) : NULL;
		place_link_print(out, link, word);
		free(link);
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
