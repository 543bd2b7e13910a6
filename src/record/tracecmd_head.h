/* The head of a trace.dat (version 6), as an agent of trace-cmd sends it before it records. */
#ifndef STEALSCOPE_RECORD_TRACECMD_HEAD_H
#define STEALSCOPE_RECORD_TRACECMD_HEAD_H

#include <stddef.h>

struct head_text { const char *at; size_t len; };

struct agent_head {
	struct head_text header_page, header_event, commands;  /* in what was parsed; commands: lines "TID NAME" */
	char *events;         /* " system/name ..." */
	char *formats;        /* their format files, one behind the other */
	size_t formats_len;
	char *system;         /* "Linux hostname release machine", or NULL */
};

/* 0; -1: it is not such a head, or cut.  The caller releases. */
int agent_head_parse(struct agent_head *h, const void *bytes, size_t len);
void agent_head_release(struct agent_head *h);

#endif
