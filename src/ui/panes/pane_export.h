/* What the panes hold, written to files: as text, csv or json.  The columns are those of the commands. */
#ifndef STEALSCOPE_UI_PANES_PANE_EXPORT_H
#define STEALSCOPE_UI_PANES_PANE_EXPORT_H

#include "base/atomic_file.h"
#include "report/report.h"
#include "ui/core/app.h"

struct pane;

/* What a pane's answer about a subject (NULL: all) rests on; origin_release() it. */
void export_origin(const struct app *app, const struct pane *p, const struct subject *s, struct origin *o);

/* Begins a file that the user named: refuses one that exists, unless "!" is behind its name, and the history itself. */
int export_begin(const struct app *app, const char *name, struct save *save, struct error *err);

/* The pane that is open, or the flow of the selected row. */
void export_prompt(struct app *app);
void export_pane(struct app *app, const char *file);  /* its ending tells the format; "": a name is found */

#endif
