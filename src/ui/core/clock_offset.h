/* Shifts the clock of a guest (:offset): builds a history with another offset of that clock, which replaces the history
 * shown. */
#pragma once

#include "ui/core/app.h"

void manual_offset_init(struct app *app, const struct ui_clocks *clocks);  /* clocks NULL: clocks cannot be shifted */
void manual_offset_release(struct app *app);
void manual_offset_end(struct app *app);  /* cancels the job and disables :offset */
/* Reads the offsets of the history shown. */
void manual_offset_update_list(struct app *app);
/* Starts a job that sets the total offset of the guest's clock to ns. */
void manual_offset_start(struct app *app, const char *guest, int64_t ns);
int manual_offset_save(struct app *app, const char *file, char *result, size_t size, struct error *err);
bool manual_offset_cancel(struct app *app);  /* cancels the job; false: there was none */
/* Returns true if a new history is complete; then the caller owns *h, *catalog and *rows and must show them. */
bool manual_offset_take(struct app *app, struct history **h, struct catalog *catalog, struct rows *rows, bool *changed);
bool manual_offset_supported(const struct app *app);  /* true: clocks can be shifted */
bool manual_offset_busy(const struct app *app);
/* Text with the job's progress; false: no job is running. */
bool manual_offset_text(struct app *app, char *buf, size_t size);
/* Returns the offsets of the history shown: "Debian +3 us", or "". */
const char *manual_offset_list(const struct app *app);
