/* Prints the clock report: a row for each guest and clock segment. */
#pragma once

#include <json-c/json.h>

#include "report/report.h"

/* rows: from provenance_sync_rows(); NULL: empty table. o: the answer's provenance; NULL: the traces have no history. */
int clock_report(struct json_object *rows, struct report_how how, const struct origin *o, struct error *err);
