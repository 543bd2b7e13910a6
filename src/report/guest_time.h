/* Times on a guest's own clock. The history stores the lines that convert them to the host's clock, per segment. A part
 * of report/report.h, which includes it. */
#pragma once

#include "query/query.h"

/* Returns false if the recording has one machine and no host: its times are those of this machine's clock. */
bool guest_time_is_apart(const struct catalog *catalog);
/* Converts a time of the host to a VM's clock, ns. Returns false if the history contains no clock of this machine. */
bool guest_time_of(const struct catalog *catalog, uint32_t machine, int64_t host, int64_t *guest);
/* Parses "Debian@05:30:46.04": a time as in time_parse(), on the clock of that VM, and converts it to the host's clock.
 * Returns 1, 0 if the text is no time of a guest, -1 on error. */
int guest_time_parse(const struct catalog *catalog, const char *text, int64_t *host, struct error *err);
