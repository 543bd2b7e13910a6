/* The command line: goto, export, theme, set, help ... */
#ifndef STEALSCOPE_UI_INPUT_COMMAND_H
#define STEALSCOPE_UI_INPUT_COMMAND_H

#include "ui/core/app.h"
#include "ui/panes/pager.h"

void command_run(struct app *app, const char *line);
void command_complete(struct app *app);  /* the line being written */
void command_help(struct pager *pager);
void command_print_mdoc(void);           /* for the man page: see ui_print_keys_mdoc() */
/* actions.c */
void action_do(struct app *app, enum action action);
void action_hide_idle(struct app *app, bool hide);
void action_time_format(struct app *app, enum time_format format);

#endif
