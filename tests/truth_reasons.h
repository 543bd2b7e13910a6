/* Why vCPUs do not execute, over all runs of test_truth: share that the analysis names.
 *
 * The analysis names a reason only if the host's events prove it; then it must be right. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool is_reason(const char *path);  /* Returns true for an attribute that contains a reason. */
void reasons_count(const char *found, const char *is, int64_t ns);
/* Ends a world: each counts for at most 0.5 s of a reason. */
void reasons_end_world(void);
/* Returns true if a large enough share of each reason was named; prints the others. A reason that occurred for less than
 * enough_ns is not judged: the worlds of one seed resemble each other, so a few seeds may name few or all. */
bool reasons_are_named(int64_t enough_ns);
