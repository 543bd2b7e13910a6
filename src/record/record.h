/* Recording: a host and its guests at the same time, from one command on the host -> a folder that index/ reads.
 *
 * Nothing is installed anywhere.  The host is traced through its own tracefs, the guests by one script on the standard
 * input of a shell (a transport).  The folder DIR has session.yaml and for each machine a folder host, guest-NAME of raw
 * ring buffer pages and what explains them (stealscope-record(1), "The folder").  What comes from guests is hostile: their
 * names, what their scripts say and every length in it. */
#ifndef STEALSCOPE_RECORD_RECORD_H
#define STEALSCOPE_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* ---- One recording */

struct record_wish {
	const char *name;       /* of a VM, its UUID or its PID */
	const char *transport;  /* as transport.h has them: "ssh:root@web"; NULL: what the VM has */
};

struct record_result;

struct record_options {
	const char *root;              /* "", or a folder that stands for the machine's own /proc, /sys and /run */
	const char *output;            /* the folder that it goes to */
	const char *clock;             /* auto, x86-tsc or mono */
	const char *const *event;      /* "system:name", beside the usual ones */
	size_t events;
	const struct record_wish *wish;  /* whom; none: every VM */
	size_t wishes;
	bool host_only;                /* nobody goes into guests */
	int64_t duration;              /* ns; 0: until it is stopped, or the command ends */
	char *const *command;          /* runs while it is recorded, NULL at its end; or NULL */
	/* A flight: buffers turn over until a trigger fires; then their last `hold` ns are kept in a folder of their own in
	 * `output`, called after the time, and it goes on. */
	int64_t hold;                  /* ns; 0: no flight */
	const char *const *trigger;    /* trigger.h has their form */
	size_t triggers;
	size_t most;                   /* it ends when so many were kept; 0: any number */
	volatile int *fire;            /* set by a signal, that is a trigger too; it is set back */
	void (*kept)(void *arg, const char *folder, const struct record_result *r);  /* one was; may be NULL */
	volatile int *stop;            /* set by signals: 1 ends it, 2 ends it without what guests have still to send */
	void (*say)(void *arg, const char *line);  /* what goes on, for people; may be NULL */
	void *arg;
};

/* A machine of a recording, or of a look at what one would have. */
struct record_machine {
	char *name;              /* "host", or the VM's */
	char *through;           /* tracefs, ssh:root@web, none */
	size_t cpus;             /* of the host, or vCPUs */
	bool asked, recorded;
	uint64_t bytes, lost;    /* lost: events */
	char *about;             /* for people: kernel, clock, buffers */
	struct error why;        /* text and mend: what is not recorded, and what to do about it; or "" */
};

struct record_result {
	struct record_machine *machine;  /* the host first */
	size_t machines;
	bool whole;              /* all that was asked for was recorded */
	int command_status;      /* wait status of the command, 0 without one */
};

/* Records.  -1 with *err: nothing was, and the result says what came of each machine, if it came so far; else what is in
 * the result is in the folder (of a flight: kept() is told).  Call record_release() in any case. */
int record_run(const struct record_options *o, struct record_result *r, struct error *err);
/* What record_run() would record; goes into guests, and makes nothing there. */
int record_check(const struct record_options *o, struct record_result *r, struct error *err);
/* Removes what recordings left that were killed, here and in their guests, and in those that are wished for.  Says what. */
int record_cleanup(const struct record_options *o, struct error *err);
void record_release(struct record_result *r);

/* ---- Virtual machines that run here (vm_discovery.c) */

/* The TSC of a guest's CPU: that of the host * ratio / 2^bits + offset, in cycles, modulo 2^64. */
struct vm_tsc {
	bool known;
	int64_t offset;
	uint64_t ratio;  /* 1 where bits is 0: not scaled */
	unsigned bits;
};

struct vm_vcpu {
	unsigned number;  /* of the CPU in the guest */
	int32_t tid;      /* its thread on the host; 0: not found */
	struct vm_tsc tsc;
};

struct vm {
	char *name;      /* as its users call it, escaped, unique */
	char *folder;    /* the same as a part of a path: letters, digits, '.', '_', '-'; unique */
	const char *named_by;  /* where the name comes from, for people */
	char *uuid;      /* or NULL */
	char *domain;    /* as libvirt calls it, or NULL */
	char *agent;     /* the socket of its guest agent, or NULL */
	char *vmm;       /* name of the process */
	int32_t pid;     /* of the process */
	unsigned cid;    /* its address as a vsock, 0: none */
	struct vm_vcpu *vcpu;  /* by number */
	size_t vcpus, unmapped;  /* unmapped: those whose thread was not found */
	const char *mapped_by;  /* how the threads were found: debugfs, thread names */
	char *debugfs;   /* its folder in debugfs kvm/, or NULL */
};

/* Every process with file descriptors of a KVM VM and of its vCPUs, by PID.  root: "" or a folder that stands for the
 * machine's own (tests, containers).  Never fails; *hidden counts the processes that could not be looked into. */
struct vm *vms_find(const char *root, size_t *n, size_t *hidden);
void vms_free(struct vm *vm, size_t n);

/* What the kernel says now of the TSC of each vCPU; false: it says nothing. */
bool vm_read_tsc(const char *root, const struct vm *vm, struct vm_tsc *tsc /* [vcpus] */);

#endif
