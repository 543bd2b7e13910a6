/* Writes the content of panes to files, as text, csv or json, with the corresponding commands' columns. */
#pragma once

#include "base/atomic_file.h"
#include "report/report.h"
#include "ui/core/app.h"

struct pane;

/* Collects the provenance of a pane's answer about a target (NULL: all targets). Free it with origin_release(). */
void export_origin(const struct app *app, const struct pane *p, const struct target *s, struct origin *o);

/* Creates a file that the user named. Fails if the file exists, unless the name ends in "!", or is the open history. */
int export_begin(const struct app *app, const char *name, struct save *save, struct error *err);

/* opens a prompt that exports the open pane, or the selected row's flow */
void export_prompt(struct app *app);
/* The suffix of the file name determines the format; "": default name. */
void export_pane(struct app *app, const char *file);
