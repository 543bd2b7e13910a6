/* The first answer: which virtual CPU was kept from running most, and by whom. */
#ifndef STEALSCOPE_CLI_WORST_VCPU_H
#define STEALSCOPE_CLI_WORST_VCPU_H

#include "base/error.h"

/* Indexes WHAT where that has not been done, and says it in a few sentences. */
int verdict_print(char *what, struct error *err);

#endif
