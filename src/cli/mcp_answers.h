/* Runs commands for `stealscope mcp` and keeps their answers for paging.
 *
 * Each command runs in a child process whose standard output and error are files in memory. An answer of more than
 * MCP_PAGE bytes is handed out in pages that end at a line's end; the last MCP_KEPT long answers can be continued. */
#pragma once

#include "base/base.h"

enum {
	MCP_PAGE = 40000,  /* bytes; below 20,000 tokens at two bytes or more for a token */
	MCP_KEPT = 8,      /* answers kept for paging */
	MCP_SECONDS = 300, /* time limit of a command */
	MCP_LIST_SECONDS = 20, /* time after which the list begins to read no further recording */
};

/* Recordings of one directory, and the long answers that can be continued. */
struct mcp_answers;

/* `directory` is borrowed. Returns NULL with *err set if it cannot be opened. */
struct mcp_answers *mcp_answers_begin(const char *directory, struct error *err);
void mcp_answers_end(struct mcp_answers *a);  /* NULL is allowed */

/* Returns the first page of the list of recordings, a line each (recording_lines.h), allocated. Reads recordings that the
 * cache lacks for at most MCP_LIST_SECONDS. */
char *mcp_recordings(struct mcp_answers *a);

/* Returns the path of the history of a recording, allocated, or NULL with *err set. The recording is indexed at its
 * first use; the history is a file without a name, so that nothing is written into the directory. */
char *mcp_history(void *answers, const char *recording, struct error *err);

/* Runs a command. If picture is true, "-o FILE" is added and the file is the answer. Returns the first page, allocated
 * (on failure the error message, and *failed is true), or NULL with *err set. */
char *mcp_run(struct mcp_answers *a, int (*run)(int, char **, struct error *), int argc, char **argv, bool picture,
              bool *failed, struct error *err);

/* Returns the page that a handle names, allocated, or NULL with *err set. */
char *mcp_continue(struct mcp_answers *a, const char *handle, struct error *err);
