/* The corridor of a guest's clock over time, as text. */
#ifndef STEALSCOPE_CLI_CLOCK_PLOT_H
#define STEALSCOPE_CLI_CLOCK_PLOT_H

#include <stdio.h>

#include "sync/sync.h"

/* Draws how far the true clock may lie above and below the one that is used, over the guest's trace, in 80 columns. */
void clock_plot(const struct sync_vm *vm, FILE *out);

#endif
