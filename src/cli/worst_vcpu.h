/* The answer that stealscope record prints: explains the vCPU that lost most time. */
#ifndef STEALSCOPE_CLI_WORST_VCPU_H
#define STEALSCOPE_CLI_WORST_VCPU_H

#include "base/error.h"

/* Indexes the recording if needed, and prints the explanation. */
int worst_vcpu_print(char *recording, struct error *err);

#endif
