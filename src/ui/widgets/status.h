/* The status line: a sentence about the interval under the cursor, and the exact shares of the cell. */
#pragma once

#include "ui/core/app.h"

void status_init(struct app *app);
void status_release(struct app *app);
void status_forget(struct app *app);  /* drops the cached text; call when appearance or history changed */
void status_draw(struct app *app, struct screen *s, int y);
const char *status_sentence(struct app *app);  /* sentence about the row, without the cell shares */
const char *status_shares(struct app *app);
/* Returns the error bound of a VM's clock at the cursor, ns; -1: unknown, or not a VM. */
int64_t status_clock_error(const struct app *app, uint32_t machine);
