/* The command line: one table of subcommands, one file per subcommand.  Data goes to stdout, the rest to stderr. */
#ifndef STEALSCOPE_CLI_CLI_H
#define STEALSCOPE_CLI_CLI_H

#include "base/error.h"

/* Every subcommand: argv[0] is its name.  Returns 0, or -1 with *err filled; the exit status is err->status. */
int cmd_view(int argc, char **argv, struct error *err);
int cmd_index(int argc, char **argv, struct error *err);
int cmd_record(int argc, char **argv, struct error *err);
int cmd_info(int argc, char **argv, struct error *err);
int cmd_sessions(int argc, char **argv, struct error *err);
int cmd_sync(int argc, char **argv, struct error *err);
int cmd_intervals(int argc, char **argv, struct error *err);
int cmd_cut(int argc, char **argv, struct error *err);
int cmd_picture(int argc, char **argv, struct error *err);
int cmd_summary(int argc, char **argv, struct error *err);
int cmd_threads(int argc, char **argv, struct error *err);
int cmd_flow(int argc, char **argv, struct error *err);
int cmd_gaps(int argc, char **argv, struct error *err);
int cmd_steal(int argc, char **argv, struct error *err);
int cmd_latency(int argc, char **argv, struct error *err);
int cmd_path(int argc, char **argv, struct error *err);
int cmd_waits(int argc, char **argv, struct error *err);
int cmd_events(int argc, char **argv, struct error *err);
int cmd_exits(int argc, char **argv, struct error *err);
int cmd_diff(int argc, char **argv, struct error *err);
int cmd_explain(int argc, char **argv, struct error *err);
int cmd_whatif(int argc, char **argv, struct error *err);
int cmd_export(int argc, char **argv, struct error *err);
int cmd_fleet(int argc, char **argv, struct error *err);
int cmd_beacon(int argc, char **argv, struct error *err);

/* X(name, function, what it does: in 66 columns), in the order of the help and the man page. */
#define COMMANDS(X) \
	X("view", cmd_view, "walk the timeline in the terminal (the default command)") \
	X("index", cmd_index, "build the state history of traces") \
	X("record", cmd_record, "record this host and its guests, and say who took what from whom") \
	X("info", cmd_info, "machines, vCPUs and their host threads, clocks, losses, sizes") \
	X("sessions", cmd_sessions, "the live sessions of an LTTng relay daemon") \
	X("sync", cmd_sync, "the clock report alone") \
	X("intervals", cmd_intervals, "raw intervals of an attribute") \
	X("cut", cmd_cut, "a part of it as a history to give away, with or without names") \
	X("picture", cmd_picture, "a picture for a ticket: the overview, or rows (svg, html, txt)") \
	X("summary", cmd_summary, "who suffers: machines, then threads, by what was taken from them") \
	X("threads", cmd_threads, "all threads: name, life, what they ran and lost, and to whom") \
	X("flow", cmd_flow, "execution flow of a thread: who ran while it could not") \
	X("gaps", cmd_gaps, "when it wanted to run and could not, longest first") \
	X("steal", cmd_steal, "victims and thieves: who took how much from whom") \
	X("path", cmd_path, "why it was late: the critical path through threads and machines") \
	X("waits", cmd_waits, "what idle vCPUs wait for, and who wakes them") \
	X("exits", cmd_exits, "why vCPUs were left, how often, and for how long") \
	X("events", cmd_events, "what the traces recorded around a moment, on the host's clock") \
	X("explain", cmd_explain, "what delayed whom, in plain sentences: threads, vCPUs, machines") \
	X("diff", cmd_diff, "what changed between two recordings, and who explains it") \
	X("whatif", cmd_whatif, "the same demand on a host where something is different") \
	X("export", cmd_export, "the whole history as tables: csv, SQL, viewers, monitoring") \
	X("fleet", cmd_fleet, "questions about all runs in a database that was exported to") \
	X("latency", cmd_latency, "whose fault is this request: requests, train, report, assert") \
	X("beacon", cmd_beacon, "runs in a guest: gives host and guest traces common moments")

#endif
