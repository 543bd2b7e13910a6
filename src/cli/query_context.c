#include "cli/query_context.h"

#include "base/base.h"
#include "cli/progress_bar.h"
#include "cli/trace_input.h"
#include "index/index.h"
#include "report/report.h"

int query_context_open(struct query_context *s, char *recording, const struct window_options *when, struct error *err)
{
	*s = (struct query_context){ .named = recording, .h = trace_input_open_named(recording, err) };
	if (!s->h || catalog_open(&s->catalog, s->h, err))
		return -1;
	return window_parse(&s->window, when, s->h, err);
}

int query_context_close(struct query_context *s, int rc, struct error *err)
{
	origin_release(&s->origin);
	catalog_release(&s->catalog);
	return trace_input_close(s->h, rc, err);
}

int query_context_begin(struct query_context *s, const struct opts *opts, int argc, char **argv,
                        const struct window_options *when, const char **target_text, struct error *err)
{
	int first;
	if (opts_parse(opts, argc, argv, &first, err))
		return -1;
	*target_text = argc - first > 1 ? argv[first + 1] : NULL;
	return query_context_open(s, argv[first], when, err) ? query_context_close(s, -1, err) : 0;
}

int query_context_answer_bytes(struct query *q, void *answer, size_t bytes, struct error *err)
{
	struct progress_bar bar;
	struct progress progress = progress_bar_begin(&bar, NULL);
	const int rc = query_answer_bytes(q, &progress, answer, bytes, err);
	progress_bar_end(&bar);
	return rc;
}

void query_context_about(struct query_context *s, const struct target *target, struct report_how how)
{
	origin_load(&s->origin, &s->catalog, target, s->window.from, s->window.to);
	if (how.format == FORMAT_CSV)
		print_notes(&s->origin.notes);
}

size_t query_context_fit_rows(const struct query_context *s, unsigned top, size_t most, size_t other,
                              struct report_how how)
{
	const size_t height = (size_t)report_height(stdout), least = 5;
	size_t lines = other + 1;  /* the shell's prompt */
	if (top != TOP_FIT)
		return top;
	if (how.format != FORMAT_TEXT || height == 0)
		return most;
	char *head = NULL;
	size_t size;
	FILE *f = open_memstream(&head, &size);
	if (f) {
		origin_write_head(&s->origin, f);
		fclose(f);
	}
	for (const char *at = head; at && (at = strchr(at, '\n')); at++)
		lines++;
	free(head);
	const size_t fit = height > lines + least ? height - lines : least;
	return most && most < fit ? most : fit;
}

void query_context_note_omitted(struct query_context *s, uint64_t shown, uint64_t all, const char *rows,
                                struct report_how how)
{
	report_warn_omitted(stdout, how, &s->origin, shown, all, rows);
}

void query_context_print_place(const struct query_context *s, const struct target *target, int64_t start, int64_t end)
{
	char d[TIME_TEXT], command[ACTOR_TEXT];
	char *text = mem_printf("Longest: %s (stealscope %s).\n", time_duration(d, end - start + 1),
	                        catalog_view_command(&s->catalog, target, start, command, sizeof command));
	prose_print(text, s->named);
	free(text);
}

struct json_object *query_context_provenance(const struct query_context *s, struct error *err)
{
	/* on failure, sets *err to the reason */
	return s->origin.provenance ? s->origin.provenance : provenance_load(s->h, err);
}
