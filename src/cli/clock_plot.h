/* Text plot of the error bounds of a guest's clock over time. */
#pragma once

#include <stdio.h>

#include "sync/sync.h"

/* Prints the plot, 80 columns wide; its width is the duration of the guest's trace. */
void clock_plot(const struct sync_vm *vm, FILE *out);
