/* stealscope record --list-requests. */
#pragma once

#include "report/report.h"

/* Prints the functions and static probes of a program; path "": the shipped tables. */
int record_requests_print(const char *path, struct report_how how, struct error *err);
