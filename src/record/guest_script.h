/* Makes the script for a guest's shell: guest.sh, after a line with its settings. */
#pragma once

#include "record/guest.h"

/* Returns the script for g->settings; the caller frees. */
char *guest_script(const struct guest *g);
