/* Table of the subcommands; each one is implemented in cmd_NAME.c. Answers go to stdout, everything else to stderr. */
#pragma once

#include "base/error.h"

/* A subcommand; argv[0] is its name. Returns 0, or -1 with *err filled; the exit status is err->status. */
int cmd_view(int argc, char **argv, struct error *err);
int cmd_index(int argc, char **argv, struct error *err);
int cmd_run(int argc, char **argv, struct error *err);
int cmd_record(int argc, char **argv, struct error *err);
int cmd_top(int argc, char **argv, struct error *err);
int cmd_monitor(int argc, char **argv, struct error *err);
int cmd_info(int argc, char **argv, struct error *err);
int cmd_sessions(int argc, char **argv, struct error *err);
int cmd_sync(int argc, char **argv, struct error *err);
int cmd_intervals(int argc, char **argv, struct error *err);
int cmd_cut(int argc, char **argv, struct error *err);
int cmd_ticket(int argc, char **argv, struct error *err);
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
int cmd_mcp(int argc, char **argv, struct error *err);
int cmd_beacon(int argc, char **argv, struct error *err);

/* X(name, function, description of at most 66 columns), in the order of the help and the man page. */
#define COMMANDS(X) \
	X("view", cmd_view, "browse the timeline in the terminal (default command)") \
	X("index", cmd_index, "build the state history of traces") \
	X("record", cmd_record, "record this host and its guests, and show who took CPU time") \
	X("top", cmd_top, "live: who takes CPU time from VMs, groups and processes right now") \
	X("run", cmd_run, "run a command: how much of its CPU time did others take, and when?") \
	X("monitor", cmd_monitor, "live, without a screen: serves metrics, keeps recordings on triggers") \
	X("info", cmd_info, "machines, vCPUs and their host threads, clocks, lost events") \
	X("sessions", cmd_sessions, "list the live sessions of an LTTng relay daemon") \
	X("sync", cmd_sync, "clock report: offsets, drift, error bounds") \
	X("intervals", cmd_intervals, "print the raw intervals of an attribute") \
	X("cut", cmd_cut, "save a part as a smaller file to share, names optionally hashed") \
	X("picture", cmd_picture, "picture of the overview or of rows (svg, html, txt)") \
	X("ticket", cmd_ticket, "a page for a ticket: verdict, culprits, picture, cut history") \
	X("summary", cmd_summary, "most delayed machines and threads, by time lost") \
	X("threads", cmd_threads, "all threads: name, life, time run and lost, top culprit") \
	X("flow", cmd_flow, "execution flow: which tasks ran while a thread waited") \
	X("gaps", cmd_gaps, "times a runnable vCPU or thread had no CPU, longest first") \
	X("steal", cmd_steal, "CPU time lost, by victim and culprit") \
	X("path", cmd_path, "critical path of a thread through wakers and machines") \
	X("waits", cmd_waits, "wakeups of idle vCPUs: reasons and wakers") \
	X("exits", cmd_exits, "VM-exit reasons, counts and times") \
	X("events", cmd_events, "recorded events around a time, on the host's clock") \
	X("explain", cmd_explain, "delays and their causes in sentences") \
	X("diff", cmd_diff, "changes between two recordings, and their causes") \
	X("whatif", cmd_whatif, "simulate a change: move or pin VMs, add a CPU, ...") \
	X("export", cmd_export, "export the history as tables: csv, SQL, viewers, monitoring") \
	X("fleet", cmd_fleet, "predefined queries over all runs exported to a database") \
	X("latency", cmd_latency, "how much of a request's latency the host caused") \
	X("mcp", cmd_mcp, "answers for AI agents: a Model Context Protocol server") \
	X("beacon", cmd_beacon, "runs in a guest: emits clock-synchronization events")
