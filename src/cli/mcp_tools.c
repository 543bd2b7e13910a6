/* Table of the tools, and the translation of their JSON arguments into those of a command. */
#include "cli/cli.h"
#include "cli/mcp_tools.h"

#define RECORDING { "recording", MCP_RECORDING, "name of a recording, from the tool `recordings`", NULL }
#define TARGET_HELP "VM, VM/CPUn (a vCPU), VM/TID (a thread) or host/TID"
#define WINDOW \
	{ "from", MCP_OPTION, "start of the window: 12:03:04.5 (wall clock), +3ms (after the start), 50%", NULL }, \
	{ "to", MCP_OPTION, "end of the window, like `from`", NULL }
#define FORMAT { "format", MCP_CHOICE, "text (default) or json", "text|json" }
#define TOP { "top", MCP_NUMBER, "maximum number of rows; 0: all", NULL }

const struct mcp_tool mcp_tools[] = {
	{ "summary", "Most delayed machines and threads, by CPU time lost, with the culprit of each. Start here.", cmd_summary,
	  { "summary" }, 1,
	  { RECORDING, { "machine", MCP_OPERAND, "only this machine", NULL }, WINDOW, TOP, FORMAT } },
	{ "explain", "Sentences: what delayed a target, who caused it, and how confident this is.", cmd_explain,
	  { "explain" }, 1,
	  { RECORDING, { "target", MCP_OPERAND, TARGET_HELP, NULL }, WINDOW,
	    { "at", MCP_OPTION, "only the gap or interval at this time", NULL },
	    { "advise", MCP_FLAG, "add the change that would help most (simulated)", NULL } } },
	{ "gaps", "Times in which a runnable vCPU or thread had no CPU, longest first, with their culprits.", cmd_gaps,
	  { "gaps" }, 1,
	  { RECORDING, { "target", MCP_OPERAND, TARGET_HELP, NULL }, WINDOW,
	    { "min", MCP_OPTION, "omit gaps shorter than this duration, for example 1ms", NULL }, TOP,
	    { "all-culprits", MCP_FLAG, "a row for every culprit, not only the top one", NULL }, FORMAT } },
	{ "flow", "Execution flow: which tasks had the CPU while a thread or vCPU waited.", cmd_flow, { "flow" }, 2,
	  { RECORDING, { "target", MCP_OPERAND, "VM/TID or VM/CPUn", NULL }, WINDOW,
	    { "intervals", MCP_FLAG, "intervals in order of time instead of sums", NULL }, FORMAT } },
	{ "path", "Critical path of a thread through its wakers, vCPUs and machines.", cmd_path, { "path" }, 2,
	  { RECORDING, { "target", MCP_OPERAND, "VM/TID or VM/CPUn", NULL }, WINDOW,
	    { "intervals", MCP_FLAG, "intervals in order of time instead of sums", NULL }, FORMAT } },
	{ "requests", "Marked requests of services: latency, and the part of it that the provider caused.", cmd_latency,
	  { "latency", "requests" }, 1, { RECORDING, FORMAT } },
	{ "diff", "Significant changes between two recordings, and their causes.", cmd_diff, { "diff" }, 2,
	  { { "before", MCP_RECORDING, "name of the recording before the change", NULL },
	    { "after", MCP_RECORDING, "name of the recording after the change", NULL },
	    { "all", MCP_FLAG, "all comparisons, not only significant ones", NULL }, FORMAT } },
	{ "events", "Recorded kernel events around a time, of all machines, on one clock.", cmd_events, { "events" }, 1,
	  { RECORDING, { "target", MCP_OPERAND, TARGET_HELP, NULL }, { "at", MCP_OPTION, "time, like `from` elsewhere", NULL },
	    { "around", MCP_OPTION, "duration before and after (default 1ms)", NULL }, FORMAT } },
	{ "picture", "The timeline of a target, or the overview, as text.", cmd_picture, { "picture" }, 1,
	  { RECORDING, { "target", MCP_OPERAND, TARGET_HELP, NULL }, WINDOW,
	    { "width", MCP_NUMBER, "width in columns (default 120)", NULL } } },
	{ .name = NULL },
};

const struct mcp_tool *mcp_tool_find(const char *name)
{
	for (const struct mcp_tool *t = mcp_tools; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

/* ---- description ---- */

static const char *const json_types[] = {
	[MCP_RECORDING] = "string", [MCP_OPERAND] = "string", [MCP_OPTION] = "string",
	[MCP_NUMBER] = "integer",   [MCP_FLAG] = "boolean",   [MCP_CHOICE] = "string",
};

static struct json_object *choice_list(const char *choices)
{
	struct json_object *list = json_object_new_array();
	for (const char *c = choices; *c; c += strspn(c, "|")) {
		size_t length = strcspn(c, "|");
		json_object_array_add(list, json_object_new_string_len(c, (int)length));
		c += length;
	}
	return list;
}

struct json_object *mcp_tool_schema(const struct mcp_tool *tool)
{
	struct json_object *properties = json_object_new_object(), *required = json_object_new_array();
	for (const struct mcp_param *p = tool->param; p->kind != MCP_END; p++) {
		struct json_object *property = json_object_new_object();
		json_object_object_add(property, "type", json_object_new_string(json_types[p->kind]));
		json_object_object_add(property, "description", json_object_new_string(p->help));
		if (p->kind == MCP_CHOICE)
			json_object_object_add(property, "enum", choice_list(p->choices));
		json_object_object_add(properties, p->name, property);
		if (p - tool->param < tool->required)
			json_object_array_add(required, json_object_new_string(p->name));
	}
	struct json_object *schema = json_object_new_object();
	json_object_object_add(schema, "type", json_object_new_string("object"));
	json_object_object_add(schema, "properties", properties);
	json_object_object_add(schema, "required", required);
	json_object_object_add(schema, "additionalProperties", json_object_new_boolean(0));
	return schema;
}

/* ---- arguments ---- */

static int refuse(const struct mcp_param *p, const char *expected, struct error *err)
{
	return error_set(err, STATUS_USAGE, NULL, "argument %s: %s expected", p->name, expected);
}

/* Appends "--NAME=VALUE", or "--NAME" if value is NULL. */
static int add_option(struct mcp_args *args, const char *name, const char *value)
{
	args->argv[args->argc++] = value ? mem_printf("--%s=%s", name, value) : mem_printf("--%s", name);
	return 0;
}

static void add_word(struct mcp_args *args, const char *word)
{
	args->argv[args->argc++] = mem_dup(word);
}

static bool is_choice(const char *choices, const char *text)
{
	size_t length = strlen(text);
	for (const char *c = choices; *c; c += strspn(c, "|")) {
		size_t n = strcspn(c, "|");
		if (n == length && memcmp(c, text, n) == 0)
			return true;
		c += n;
	}
	return false;
}

/* Adds the argument of one parameter. */
static int add_param(const struct mcp_param *p, struct json_object *value, mcp_history_fn *history, void *context,
                     struct mcp_args *args, struct error *err)
{
	if (p->kind == MCP_FLAG) {
		if (!json_object_is_type(value, json_type_boolean))
			return refuse(p, "true or false", err);
		return json_object_get_boolean(value) ? add_option(args, p->name, NULL) : 0;
	}
	if (p->kind == MCP_NUMBER) {
		int64_t number = json_object_get_int64(value);
		if (!json_object_is_type(value, json_type_int) || number < 0 || number > 1000000)
			return refuse(p, "an integer from 0 to 1000000", err);
		char text[24];
		snprintf(text, sizeof text, "%lld", (long long)number);
		return add_option(args, p->name, text);
	}
	const char *text = json_object_get_string(value);
	if (!json_object_is_type(value, json_type_string) || strlen(text) != (size_t)json_object_get_string_len(value) ||
	    strlen(text) > 4096)
		return refuse(p, "a text", err);
	if (p->kind == MCP_CHOICE && !is_choice(p->choices, text))
		return refuse(p, p->choices, err);
	if (p->kind == MCP_OPTION || p->kind == MCP_CHOICE)
		return add_option(args, p->name, text);
	if (p->kind == MCP_OPERAND) {
		if (!text[0] || text[0] == '-')
			return refuse(p, "a name", err);
		add_word(args, text);
		return 0;
	}
	char *path = history(context, text, err);
	if (!path)
		return -1;
	args->argv[args->argc++] = path;
	return 0;
}

static int check_names(const struct mcp_tool *tool, struct json_object *given, struct error *err)
{
	struct json_object_iterator i = json_object_iter_begin(given), end = json_object_iter_end(given);
	for (; !json_object_iter_equal(&i, &end); json_object_iter_next(&i)) {
		const char *name = json_object_iter_peek_name(&i);
		const struct mcp_param *p = tool->param;
		while (p->kind != MCP_END && strcmp(p->name, name) != 0)
			p++;
		if (p->kind == MCP_END)
			return error_set(err, STATUS_USAGE, "tools/list describes the arguments", "%s: no such argument of %s", name,
			                 tool->name);
	}
	return 0;
}

int mcp_tool_args(const struct mcp_tool *tool, struct json_object *given, mcp_history_fn *history, void *context,
                  struct mcp_args *args, struct error *err)
{
	memset(args, 0, sizeof *args);
	if (given && !json_object_is_type(given, json_type_object))
		return error_set(err, STATUS_USAGE, NULL, "arguments: an object expected");
	if (given && check_names(tool, given, err))
		return -1;
	for (int i = 0; i < 2 && tool->words[i]; i++)
		add_word(args, tool->words[i]);
	for (const struct mcp_param *p = tool->param; p->kind != MCP_END; p++) {
		struct json_object *value;
		bool found = given && json_object_object_get_ex(given, p->name, &value) && value;
		int rc = 0;
		if (found)
			rc = add_param(p, value, history, context, args, err);
		else if (p - tool->param < tool->required)
			rc = error_set(err, STATUS_USAGE, NULL, "argument %s is missing", p->name);
		if (rc) {
			mcp_args_free(args);
			return -1;
		}
	}
	return 0;
}

void mcp_args_free(struct mcp_args *args)
{
	for (int i = 0; i < args->argc; i++)
		free(args->argv[i]);
	memset(args, 0, sizeof *args);
}
