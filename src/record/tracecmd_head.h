/* Parses a trace's head.dat file (version 6), which a trace-cmd agent sends before it starts recording. */
#ifndef STEALSCOPE_RECORD_TRACECMD_HEAD_H
#define STEALSCOPE_RECORD_TRACECMD_HEAD_H

#include <stddef.h>

struct head_text { const char *at; size_t len; };  /* not NUL-terminated */

struct agent_head {
	struct head_text header_page, header_event, commands;  /* point into the parsed bytes; commands: lines "TID NAME" */
	char *events;         /* " system/name ..." */
	char *formats;        /* format files, concatenated */
	size_t formats_len;
	char *system;         /* "Linux hostname release machine", or NULL */
};

/* Parses untrusted bytes. Returns -1 if they are no complete head. Always call agent_head_release(). */
int agent_head_parse(struct agent_head *h, const void *bytes, size_t len);
void agent_head_release(struct agent_head *h);

#endif
