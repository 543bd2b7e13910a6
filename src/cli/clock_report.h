/* The clock report: one row per guest and piece of its clock. */
#ifndef STEALSCOPE_CLI_CLOCK_REPORT_H
#define STEALSCOPE_CLI_CLOCK_REPORT_H

#include <json-c/json.h>

#include "report/report.h"

/* rows: as provenance_sync_rows() makes them; NULL prints an empty table.  o: NULL: of no history. */
int clock_report(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err);

#endif
