/* Two examples for each command's help. */
#include "cli/examples.h"

#include "base/base.h"

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
	{ "top", "top", "top -b --assert 'nginx.steal<10%'" },
	{ "run", "run -- sleep 1", "run --format github -- sleep 1" },
	{ "monitor", "monitor", "monitor --trigger 'gap(web)>20ms' -o DIR" },
	{ "beacon", "beacon", "beacon --rate 20" },
	{ "latency", "latency requests DIR", "latency report DIR" },
	{ "latency requests", "latency requests DIR", "latency requests DIR --sort provider" },
	{ "latency traces", "latency traces DIR --spans spans.json", "latency traces DIR --spans spans.json --format json" },
	{ "latency train", "latency train -o web.model -b QUIET BUSY", "latency train -o web.model -b QUIET BUSY --rows 128" },
	{ "latency report", "latency report DIR", "latency report BEFORE AFTER" },
	{ "latency assert", "latency assert DIR 'p99.provider<2ms'", "latency assert DIR 'p50.latency<10ms' 'p99.share<20%'" },
};

/* Returns the length of the command at a usage line's start: of "latency train" two words, where both have a row. */
static size_t command_length(const char *usage)
{
	const size_t one = strcspn(usage, "] ");
	const size_t two = usage[one] == ' ' ? one + 1 + strcspn(usage + one + 1, " ") : one;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		if (strlen(examples[i].command) == two && !strncmp(usage, examples[i].command, two))
			return two;
	return one;
}

void examples_print(const char *usage)
{
	usage += usage[0] == '[';
	const size_t n = command_length(usage);
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		if (strlen(examples[i].command) == n && !strncmp(usage, examples[i].command, n))
			printf("examples:\n  stealscope %s\n  stealscope %s\n", examples[i].first, examples[i].second);
}
