/* Prints the clock report: a row for each guest and clock segment. */
#ifndef STEALSCOPE_CLI_CLOCK_REPORT_H
#define STEALSCOPE_CLI_CLOCK_REPORT_H

#include <json-c/json.h>

#include "report/report.h"

/* rows: from provenance_sync_rows(); NULL: empty table. o: the answer's provenance; NULL: the traces have no history. */
int clock_report(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err);

#endif
