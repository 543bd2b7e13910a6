/* stealscope: who took my CPU time, and when? */
#include <stdio.h>

#include "base/error.h"

int main(void)
{
	fputs("stealscope: not a command\n", stderr);
	return STATUS_USAGE;
}
