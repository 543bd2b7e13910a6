/* What the files that load traces share: the machines, their CTF traces (groups), and the tasks that decode them.
 *
 * A group is one CTF trace: a folder, or the folders into which a rotating tracer split one.  It is opened once to learn
 * its ports (data streams); if that fails because a stream is damaged, it is opened through views that leave
 * out what cannot be read.  A task decodes one port, or a range of the packets of one. */
#ifndef STEALSCOPE_TRACE_LOAD_H
#define STEALSCOPE_TRACE_LOAD_H

#include <pthread.h>
#include <sys/types.h>

#include "trace/decoder.h"
#include "trace/internal.h"
#include "trace/packets.h"
#include "trace/live.h"
#include "trace/tracecmd.h"
#include "trace/view.h"

struct port {
	char *name;
	uint64_t bytes;
	const struct stream_file *file;  /* when it is one file whose packets are known, else NULL */
	uint64_t lost_first;     /* events that its first packet counts as lost, when an index tells */
	size_t first_task, tasks;
};

struct group {
	size_t machine;
	const struct ctf_dir *first_dir;
	struct ctf ctf;
	char **dir;             /* the folders */
	size_t dirs, dirs_cap;
	uint64_t bytes;
	struct stream_file **file;  /* of each folder */
	size_t *files;
	struct view *view;      /* of each folder, when the trace is damaged; dir then is where the views are */
	char **view_dir;
	struct notes notes;     /* what had to be left out */
	struct port *port;
	size_t ports;
	struct decoder **idle;  /* graphs that no thread uses at the moment */
	size_t idles, idles_cap;
	bool suspect;           /* not to be opened as it is */
	bool tried;             /* ... or a child process is finding out: */
	pid_t trial;            /* -1: there is none */
	int answer;             /* what it says */
	struct error err;
	int status;
};

struct task {
	size_t group, port;
	size_t first, end;       /* packets, when the port's are known */
	bool whole;              /* on the port itself, from its beginning; else through a view */
	uint64_t bytes;          /* about */
	struct decoded *part;    /* one, or more when damaged packets lie between */
	size_t parts, cap;
	struct error err;
	int status;
	bool unexpected;         /* the view did not show what it should: decode the whole port instead */
};

/* Lists the trace's files. */
void group_list(struct group *g);
/* Once their packets are found, and no thread is at work (it may fork): begins to find out whether the trace may be given
 * to libbabeltrace2 as it is.  group_surveyed() waits for the answer: g->suspect says no, call group_rescue(). */
void group_survey(struct group *g);
void group_surveyed(struct group *g);
/* Opens the trace and finds its ports; the decoder becomes an idle one.  On failure g->status and g->err say so. */
void group_open(struct group *g);
/* Opens what is left of a damaged trace.  To be called while no other thread runs: it forks, because libbabeltrace2
 * 2.0 aborts on some damage. */
void group_rescue(struct group *g, const char *temporary);
void group_release(struct group *g);
/* A decoder for ports of the group, not from the idle ones. */
struct decoder *group_decoder(struct group *g, struct error *err);

/* Cuts the groups' streams into tasks for the workers: tasks, and the order to take them in, largest first. */
void plan_tasks(struct group *group, size_t groups, unsigned workers, struct task **task, size_t *tasks, size_t **order);

struct machine {
	const struct trace_spec *spec;
	struct trace *trace;
	struct layout **layout;
	size_t layouts;
	struct ctf_dir *dir;
	size_t dirs;
	struct live_url live;  /* relay NULL: not live */
	struct told *told;     /* it is read by a child: a file of trace-cmd, or live; it has no groups then.  Else NULL */
};

struct load {
	const struct trace_options *options;
	struct machine *machine;
	size_t machines;
	struct group *group;
	size_t groups, groups_cap;
	struct stream_file **file;  /* of all groups */
	size_t files, files_cap;
	struct told *told;
	size_t tolds;
	struct task *task;
	size_t *order;  /* in which the tasks are taken */
	size_t tasks, ordered;
	struct store *store;
	pthread_mutex_t lock;  /* of the groups' idle graphs */
	unsigned workers;
	uint64_t total;
	_Atomic uint64_t bytes;
	_Atomic uint64_t live_events;
	int64_t live_until;  /* ns, monotonic: when live traces have been read for long enough; INT64_MAX: never */
	atomic_bool cancelled;
};

/* Reads what children read.  Before the threads, because it forks. */
int load_told(struct load *l, struct error *err);
void load_tick(struct load *l);  /* reports progress, and may cancel */
void load_add_uuid(struct trace *t, const char *uuid);

/* Moves the decoded streams into the machine's trace, and says what was tolerated. */
void deliver(struct load *l, size_t machine, struct notes *notes);

#endif
