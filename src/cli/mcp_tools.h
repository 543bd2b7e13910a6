/* The tools that `stealscope mcp` offers: each one is a read-only command, with its arguments described in a table. */
#pragma once

#include <json-c/json.h>

#include "base/base.h"

enum mcp_param_kind {
	MCP_END,         /* ends the parameter list */
	MCP_RECORDING,   /* name of a recording in the served directory; becomes an operand, its history's file */
	MCP_OPERAND,     /* text; becomes an operand and must not begin with '-' */
	MCP_OPTION,      /* text; becomes --NAME=TEXT */
	MCP_NUMBER,      /* non-negative integer; becomes --NAME=NUMBER */
	MCP_FLAG,        /* boolean; becomes --NAME if true */
	MCP_CHOICE,      /* one of `choices`, separated by '|'; becomes --NAME=CHOICE */
};

struct mcp_param {
	const char *name;
	enum mcp_param_kind kind;
	const char *help;
	const char *choices;  /* MCP_CHOICE */
};

enum { MCP_MAX_PARAMS = 9, MCP_MAX_ARGS = 16 };

struct mcp_tool {
	const char *name, *about;
	int (*run)(int argc, char **argv, struct error *err);
	const char *words[2];  /* name of the command and of its subcommand; NULL: none */
	int required;          /* the first `required` parameters must be given */
	struct mcp_param param[MCP_MAX_PARAMS];
};

/* All tools; the array ends with a NULL name. The strings are static. */
extern const struct mcp_tool mcp_tools[];

/* Arguments of a command. Strings are owned; mcp_args_free() frees them. */
struct mcp_args {
	char *argv[MCP_MAX_ARGS + 1];
	int argc;
};

/* Returns the path of the history of a recording, allocated, or NULL with *err set. */
typedef char *mcp_history_fn(void *context, const char *recording, struct error *err);

/* Returns the tool with this name, or NULL. */
const struct mcp_tool *mcp_tool_find(const char *name);

/* Returns the JSON Schema of the tool's arguments, a new reference. */
struct json_object *mcp_tool_schema(const struct mcp_tool *tool);

/* Turns the arguments of a call (a JSON object, or NULL) into those of the command. Unknown and missing arguments and
 * those of another type are refused. Returns 0, or -1 with *err set and *args empty. */
int mcp_tool_args(const struct mcp_tool *tool, struct json_object *given, mcp_history_fn *history, void *context,
                  struct mcp_args *args, struct error *err);
void mcp_args_free(struct mcp_args *args);
