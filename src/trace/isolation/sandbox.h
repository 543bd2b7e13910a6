/* Child processes that parse what nobody has checked: what they may use.
 *
 * Always: so much memory, no core, no file larger than the input can make it; it dies with its parent.  Where the kernel
 * and the build have landlock: no file is written, made or removed but in one folder, and nothing is executed.  Where
 * they have seccomp: no socket, no other program, no look into other processes.  What is not offered is left out without
 * a word. */
#ifndef STEALSCOPE_TRACE_ISOLATION_SANDBOX_H
#define STEALSCOPE_TRACE_ISOLATION_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

struct confinement {
	uint64_t bytes;      /* of what it parses */
	const char *folder;  /* the only one in which it may write; NULL: none */
	bool network;        /* it may have it */
};

/* Confines this process, for good.  Its standard files are /dev/null then. */
void confine(const struct confinement *c);

#endif
