/* Why vCPUs do not execute, of all runs of test_truth: how much of it is named.
 *
 * Nothing is said where the host's events do not prove it; what is said must be so. */
#ifndef STEALSCOPE_TESTS_TRUTH_REASONS_H
#define STEALSCOPE_TESTS_TRUTH_REASONS_H

#include <stdbool.h>
#include <stdint.h>

bool is_reason(const char *path);  /* that attribute tells one */
void reasons_count(const char *found, const char *is, int64_t ns);
bool reasons_told(void);           /* enough of them; what is missing is printed */

#endif
