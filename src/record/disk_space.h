/* Disk space that the machines of a recording need. */
#pragma once

#include "record/participants.h"

/* Returns the bytes that may still be stored after the recording is stopped: at most what the machines' buffers hold. */
uint64_t disk_space_buffered(const struct participants *p);
/* Excludes the guests with the largest expected data until the data of the others fits into `available` bytes, so that a
 * guest that reports an absurd rate is not recorded, but does not prevent the recording. Returns the expected bytes. */
uint64_t disk_space_select_guests(const struct participants *p, int64_t duration, uint64_t available);
