/* Text plot of the error bounds of a guest's clock over time. */
#ifndef STEALSCOPE_CLI_CLOCK_PLOT_H
#define STEALSCOPE_CLI_CLOCK_PLOT_H

#include <stdio.h>

#include "sync/sync.h"

/* Prints the plot, 80 columns wide; its width is the duration of the guest's trace. */
void clock_plot(const struct sync_vm *vm, FILE *out);

#endif
