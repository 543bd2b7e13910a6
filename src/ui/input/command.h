/* The command line of the viewer: goto, export, theme, set, help ... */
#pragma once

#include "ui/core/app.h"
#include "ui/panes/pager.h"

void command_run(struct app *app, const char *line);
void command_complete(struct app *app);  /* completes the word before the cursor (Tab) */
void command_help(struct pager *pager);
void command_print_mdoc(void);  /* prints the commands for the man page: see ui_print_keys_mdoc() */
/* Functions of core/actions.c. */
void action_do(struct app *app, enum action action);
void action_hide_idle(struct app *app, bool hide);
void action_time_format(struct app *app, enum time_format format);
