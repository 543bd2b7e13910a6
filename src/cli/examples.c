/* Two examples for the help of each command. */
#include "cli/examples.h"

#include <stdio.h>
#include <string.h>

static const struct { const char *command, *first, *second; } examples[] = {
	{ "view", "view DIR", "view DIR --theme paper-light" },
	{ "index", "index DIR", "index DIR -o run.steal" },
	{ "record", "record -t 30s", "record -t 10s web db -o DIR" },
	{ "info", "info DIR", "info DIR --format json" },
	{ "sessions", "sessions net://localhost", "sessions net://10.0.0.7" },
	{ "sync", "sync DIR", "sync DIR --format csv" },
	{ "intervals", "intervals DIR '/Host/CPUs/CPU0/Current Thread'",
		"intervals DIR /Host/CPUs/CPU0/Interrupt --from +1s --to +2s" },
	{ "cut", "cut DIR --from +2s --to +3s -o part.steal", "cut DIR --names hash -o share.steal" },
	{ "picture", "picture DIR -o overview.svg", "picture DIR web/CPU0 --from +1s --to +2s -o web.svg" },
	{ "summary", "summary DIR --top 5", "summary DIR web --advise" },
	{ "threads", "threads DIR web", "threads DIR --sort p99" },
	{ "flow", "flow DIR web/151", "flow DIR web/CPU0 --from +1s --to +2s" },
	{ "gaps", "gaps DIR web", "gaps DIR web/CPU0 --top 10" },
	{ "steal", "steal DIR", "steal DIR web --by thread --top 10" },
	{ "path", "path DIR web/151", "path DIR web/151 --from +1s --to +2s" },
	{ "waits", "waits DIR", "waits DIR web/CPU0" },
	{ "exits", "exits DIR web", "exits DIR web/CPU0 --format csv" },
	{ "events", "events DIR web --at 12:03:04.5", "events DIR host --at +2s" },
	{ "explain", "explain DIR", "explain DIR web/151 --at 12:03:04.5" },
	{ "diff", "diff BEFORE AFTER", "diff BEFORE AFTER --format json" },
	{ "whatif", "whatif DIR pin web CPU1", "whatif DIR 'without host/burnP6' 'add CPU'" },
	{ "export", "export DIR --to sqlite:runs.db", "export --targets" },
	{ "fleet", "fleet sqlite:runs.db victims", "fleet sqlite:runs.db culprits" },
	{ "ticket", "ticket DIR -o ticket.html", "ticket DIR web --names hash -o ticket.html" },
	{ "mcp", "mcp", "mcp /var/lib/recordings" },
	{ "top", "top", "top -b -n 5 --format csv" },
	{ "monitor", "monitor", "monitor --trigger 'gap(web)>20ms' -o DIR" },
	{ "beacon", "beacon", "beacon --rate 20" },
	{ "latency", "latency requests DIR", "latency report DIR" },
};

void examples_print(const char *usage)
{
	usage += usage[0] == '[';
	const size_t n = strcspn(usage, "] ");
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		if (strlen(examples[i].command) == n && !strncmp(usage, examples[i].command, n))
			printf("examples:\n  stealscope %s\n  stealscope %s\n", examples[i].first, examples[i].second);
}
