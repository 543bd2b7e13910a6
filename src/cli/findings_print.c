#include "cli/findings_print.h"

#include "base/base.h"
#include "report/report.h"

#define RECORDING_FINDINGS 3  /* findings after a recording */

int findings_query(struct query_context *s, const struct target *target, struct findings *out, struct error *err)
{
	return query_context_answer(findings_open(&s->catalog, target, s->window.from, s->window.to), out, err);
}

void findings_print(const struct query_context *s, const struct findings *l, size_t most)
{
	report_findings_text(stdout, l, most, s->named);
}

/* Prints a command on the recording: "look:    stealscope DIR". */
static void print_command(const char *what, const char *before, const char *recording, const char *after)
{
	char *word = shell_word(recording);
	printf("%-8s stealscope %s%s%s\n", what, before, word, after);
	free(word);
}

int findings_print_recording(char *recording, struct error *err)
{
	static const struct window_options whole_history = { 0 };
	struct query_context s;
	struct findings l = { 0 };
	int rc = query_context_open(&s, recording, &whole_history, err);
	if (rc == 0)
		rc = findings_query(&s, NULL, &l, err);
	if (rc == 0) {
		const char *slash = strrchr(recording, '/'), *name = slash ? slash + 1 : recording;
		char *file = mem_printf("%s.html", *name ? name : "ticket"), *word = shell_word(file);
		char *page = mem_printf(" -o %s", word);
		findings_print(&s, &l, RECORDING_FINDINGS);
		putchar('\n');
		query_context_about(&s, NULL, REPORT_WHOLE(FORMAT_TEXT));
		origin_write_head(&s.origin, stdout);
		print_command("look:", "", recording, "");
		if (l.item[0].kind != FINDING_NOTHING && !finding_is_healthy(&l.item[0]))
			print_command("ticket:", "ticket ", recording, page);
		free(file);
		free(word);
		free(page);
	}
	findings_release(&l);
	return query_context_close(&s, rc, err);
}
