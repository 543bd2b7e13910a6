/* What every command that asks query/ needs: a history, who is in it, and a window. */
#ifndef STEALSCOPE_CLI_QUERY_CONTEXT_H
#define STEALSCOPE_CLI_QUERY_CONTEXT_H

#include "cli/window.h"
#include "query/query.h"
#include "report/report.h"

struct scene {
	const char *named;       /* as the user named it */
	struct history *h;
	struct topo topo;
	struct window window;
	struct origin origin;  /* of scene_about() */
};

/* Opens WHAT and parses the window.  Call scene_close() in any case: it returns rc, or -1
 * when the answer rests on a damaged history. */
int scene_open(struct scene *s, char *what, const struct window_options *when, struct error *err);
int scene_close(struct scene *s, int rc, struct error *err);
/* Reads the command line, WHAT and of whom (NULL: nobody is named), and opens it.  After -1 there is nothing to close. */
int scene_begin(struct scene *s, const struct opts *opts, int argc, char **argv, const struct window_options *when,
                const char **whose, struct error *err);

/* Works on a question to its end, with progress on a terminal; Ctrl-C cancels it. */
int scene_run(struct inquiry *q, struct error *err);

/* The report is about this subject, or about all (NULL): fills s->origin.  csv has no place for what makes it doubtful:
 * that goes to stderr. */
void scene_about(struct scene *s, const struct subject *who, struct report_how how);
/* After it: where csv and json hold the longest of more rows alone, that is a note, as text says it below. */
void scene_left_out(struct scene *s, uint64_t shown, uint64_t all, const char *rows, struct report_how how);
/* After it: all that the history says of where it comes from, the scene's; NULL: nothing. */
/* Text: what VMs (who: this one, or this vCPU of one) lost that is neither a gap nor stolen, if anything; apart: in a
 * paragraph of its own. */
int scene_tell_served(const struct scene *s, const struct subject *who, bool apart, struct report_how how,
                      struct error *err);
struct json_object *scene_told(const struct scene *s, struct error *err);

#endif
