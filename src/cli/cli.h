/* The command line: one table of subcommands, one file per subcommand.  Data goes to stdout, the rest to stderr. */
#ifndef STEALSCOPE_CLI_CLI_H
#define STEALSCOPE_CLI_CLI_H

#include "base/error.h"

/* Every subcommand: argv[0] is its name.  Returns 0, or -1 with *err filled; the exit status is err->status. */
int cmd_view(int argc, char **argv, struct error *err);
int cmd_index(int argc, char **argv, struct error *err);
int cmd_info(int argc, char **argv, struct error *err);
int cmd_sessions(int argc, char **argv, struct error *err);
int cmd_sync(int argc, char **argv, struct error *err);
int cmd_intervals(int argc, char **argv, struct error *err);
int cmd_flow(int argc, char **argv, struct error *err);
int cmd_gaps(int argc, char **argv, struct error *err);
int cmd_steal(int argc, char **argv, struct error *err);
int cmd_latency(int argc, char **argv, struct error *err);
int cmd_explain(int argc, char **argv, struct error *err);
int cmd_beacon(int argc, char **argv, struct error *err);

/* X(name, function, operands, what it does), in the order of the help and the man page. */
#define COMMANDS(X) \
	X("view", cmd_view, "WHAT", "walk the timeline in the terminal (the default command)") \
	X("index", cmd_index, "WHAT...", "build the state history of traces") \
	X("info", cmd_info, "WHAT", "machines, vCPUs and their host threads, clocks, losses, sizes") \
	X("sessions", cmd_sessions, "net://RELAY", "the live sessions of an LTTng relay daemon") \
	X("sync", cmd_sync, "WHAT...", "the clock report alone") \
	X("intervals", cmd_intervals, "WHAT PATH", "raw intervals of an attribute") \
	X("flow", cmd_flow, "WHAT VM/TID", "execution flow of a thread: who ran while it could not") \
	X("gaps", cmd_gaps, "WHAT [WHO]", "when it wanted to run and could not, longest first") \
	X("steal", cmd_steal, "WHAT [WHO]", "victims and thieves: who took how much from whom") \
	X("explain", cmd_explain, "WHAT WHO", "what delayed a thread or vCPU, in plain sentences") \
	X("latency", cmd_latency, "requests ...", "whose fault is this request: requests, train, report, assert") \
	X("beacon", cmd_beacon, "", "runs in a guest: gives host and guest traces common moments")

#endif
