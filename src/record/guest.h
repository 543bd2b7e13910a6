/* Session with one guest during a recording: the script that runs there, its state, the data received and where it is
 * stored. */
#pragma once

#include "record/frame_order.h"
#include "record/clock_sample.h"
#include "record/guest_requests.h"
#include "record/transport.h"

/* Settings sent to all guests. */
struct guest_settings {
	const char *task;      /* trace, check, clean */
	const char *clocks;    /* trace clock names, best first, separated by blanks */
	const char *const *event;  /* "system/name" */
	size_t events;
	unsigned hold;         /* s of trace that the buffers should hold */
	unsigned limit;        /* s without a keep-alive message after which the guest ends by itself */
	bool overwrite;        /* the buffers overwrite their oldest data (flight recording) */
	bool steal;            /* define probes that read the steal clock of KVM */
	const struct guest_request_kinds *requests;  /* requests to record by probes; NULL: none */
	void (*say)(void *arg, const char *guest, const char *line);  /* reports progress; may be NULL */
	void *arg;
};

struct guest {
	const struct vm *vm;
	struct transport transport;
	bool requested;        /* the user selected this guest: a failure is reported */
	enum guest_state state;
	int64_t deadline;      /* for the next state or the next bytes, monotonic ns; 0: none */
	struct channel channel;
	struct frames frames;
	struct frame_order order;
	int dir;               /* descriptor of the guest's directory in the recording; -1: data is not stored */
	int pages;             /* descriptor of the file pages/cpuN that was written last; -1: none */
	unsigned pages_cpu;    /* N of this file */
	const struct guest_settings *settings;  /* borrowed */
	char *about;           /* description sent by the guest, lines "key value"; NULL: not received */
	char *header_page, *header_event, *formats, *threads;  /* files of tracefs; threads: lines "TID PROCESS NAME" */
	char *cmdlines, *tgids;  /* saved_cmdlines and saved_tgids of tracefs, read at the end */
	unsigned page, cpus;   /* a trace page's size, bytes; highest CPU number + 1 */
	uint64_t kilobytes, rate;  /* KiB of each CPU's buffer; KiB/s of its busiest CPU */
	int64_t start_time, stop_time;  /* monotonic time of the commands to start and stop tracing, ns; 0: not sent */
	uint64_t bytes, lost;  /* received bytes of pages; lost events */
	uint64_t max_bytes;    /* limit of `bytes`: the guest's share of the disk */
	uint64_t received;     /* bytes of all kinds since tracing started */
	unsigned removed, not_removed;  /* remains of earlier recordings, reported by the guest */
	struct clock_sample started, stopped;  /* sent by the guest when tracing starts and stops */
	struct guest_requests *requests;  /* request probes; NULL: none */
	struct vm_tsc *before, *after;  /* [vm->vcpus], read on the host before and after the recording */
	char errors[512];      /* last line that the transport wrote to standard error */
	bool fell_silent;      /* the failure: the guest stopped answering, perhaps because its VM ended */
	struct error failure;  /* in GUEST_FAILED */
};

void guest_init(struct guest *g, const struct vm *vm, struct transport transport);
void guest_release(struct guest *g);

/* Starts the shell and sends the script. This and the following functions report a failure in the state GUEST_FAILED and in
 * `failure`. */
void guest_start(struct guest *g, const struct guest_settings *settings);
/* Stores the received data in a directory, up to g->max_bytes of pages. Takes ownership of the descriptor. */
void guest_store_in(struct guest *g, int dir);
/* Prepares a guest that has sent its data for the next snapshot of a flight recording: GUEST_SENT -> GUEST_READY. */
void guest_reset(struct guest *g);
/* Sends a command to the script: go, stop, send, more or bye. The guest must reach the next state within `timeout` s (0: no
 * limit). */
void guest_send_command(struct guest *g, const char *word, unsigned timeout);
/* Handles data from the transport's output and error pipes; the guest fails if its deadline has passed. */
void guest_handle_output(struct guest *g);
/* Sets GUEST_FAILED with this message and drops the connection; later calls have no effect. */
void guest_fail(struct guest *g, const char *remedy, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Returns true from the script's start until GUEST_ENDED or GUEST_FAILED. */
bool guest_is_open(const struct guest *g);
/* Returns a value of the guest's description, which the caller frees; NULL: not received. */
char *guest_field(const struct guest *g, const char *key);
