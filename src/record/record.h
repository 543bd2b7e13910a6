/* Records a host and its guests at the same time, started by one command on the host, into a directory that index/ reads.
 *
 * Nothing is installed. The host is traced through tracefs, guests by one script on the standard input of a shell (a
 * transport). DIR contains session.yaml and per machine a directory (host, guest-NAME) with raw ring buffer pages and
 * the files that are needed to decode them (stealscope-record(1)). Data from guests is untrusted: names, messages and
 * lengths. */
#pragma once

#include "base/base.h"
#include "record/control_group.h"

/* ---- One recording */

struct record_request {
	const char *name;       /* name, UUID or PID of a VM */
	const char *transport;  /* syntax in transport.h: "ssh:root@web"; NULL: the VM's guest agent */
};

struct record_result;

struct record_options {
	const char *root;              /* "", or a directory that replaces /proc, /sys and /run of this machine */
	const char *output;            /* output directory */
	const char *clock;             /* auto, x86-tsc or mono */
	const char *const *event;      /* "system:name", in addition to the events in events.c */
	size_t events;
	const char *xen_events;        /* dom0 of a Xen host: classes of events in addition to the scheduler's, separated by
	                                * commas: hypercalls, hvm; NULL: none */
	const struct record_request *requested;  /* selected VMs; none: every VM */
	size_t n_requested;
	const char *const *request_spec;  /* requests to record by probes, see request_kinds.h */
	size_t request_specs;
	const char *const *guest_request_spec;  /* the same in the guests */
	size_t guest_request_specs;
	bool request_labels;           /* record the texts of requests, such as queries */
	bool counters;                 /* a BPF program prints hardware counters: record its event on the host */
	bool throttled;                /* a BPF program prints throttled threads: record its event on the host */
	bool host_only;                /* guests are not traced */
	bool explains;           /* reports why sources of stolen time were not chosen (record --check) */
	bool guest_only;               /* this machine is a guest, recorded without its host */
	const char *steal;             /* source of stolen time (steal_probes.h), with guest_only; NULL: the best one */
	int64_t duration;              /* ns; 0: until a stop is requested or the command ends */
	char *const *command;          /* argv to run during the recording, terminated by NULL; or NULL */
	/* Flight recording: records in overwrite mode until a trigger fires, then saves the last `hold` ns in a new
	 * directory in `output` that is named after the time, and continues. */
	int64_t hold;                  /* ns; 0: no flight recording */
	const char *const *trigger;    /* syntax in trigger.h */
	size_t triggers;
	size_t max_snapshots;          /* snapshot count after which the flight recording ends; 0: unlimited */
	volatile int *fire;            /* set to 1 by a signal handler to trigger a snapshot; reset by record_run() */
	/* called for each snapshot; may be NULL */
	void (*on_snapshot)(void *arg, const char *dir, const struct record_result *r);
	volatile int *stop;            /* set by a signal handler: 1: end the recording; 2: do not fetch the guests' buffers */
	void (*on_message)(void *arg, const char *line);  /* progress messages for people; may be NULL */
	void *arg;
};

/* A machine of a recording, or of a dry run. */
struct record_machine {
	char *name;              /* "host", or the VM's name */
	char *through;           /* access: tracefs, ssh:root@web, none */
	size_t cpus;             /* CPUs or vCPUs */
	bool requested, recorded;  /* requested: the user selected this machine */
	uint64_t bytes, lost;    /* bytes of pages; lost events */
	char *about;             /* kernel, clock and buffers, for people */
	struct error why;        /* reason why the machine was not recorded completely, and remedy; text "": none */
};

struct record_result {
	struct record_machine *machine;  /* the first one is the host */
	size_t machines;
	bool complete;           /* everything requested was recorded */
	int command_status;      /* the command's wait status; 0 without one */
};

/* Runs a recording and describes it in *r; a flight recording reports each snapshot to on_snapshot(). Returns -1 with
 * *err on failure; *r then lists the machines known until then. Always call record_release(). */
int record_run(const struct record_options *o, struct record_result *r, struct error *err);
/* Dry run of record_run(): starts the script in guests to check them, but creates nothing there. */
int record_check(const struct record_options *o, struct record_result *r, struct error *err);
/* Removes the remains of killed recorders: tracefs instances on the host, in their guests, and in the selected guests.
 * Reports each removal to on_message(). err NULL: quietly, before a new recording. */
int record_cleanup(const struct record_options *o, struct error *err);
void record_release(struct record_result *r);

/* Returns true if a control group of this machine with threads, or one above it, has a quota of CPU time. */
bool record_has_quotas(const char *root);

/* ---- Requests (request_list.c) */

/* A shipped table of probes for a server. The caller frees program and about. */
struct record_request_table { const char *name; char *program, *about; };
/* Returns table i in *out; false: there is none. */
bool record_request_table(size_t i, struct record_request_table *out);

/* A function or static probe of a program; all texts are untrusted. */
struct record_place {
	const char *provider;    /* of a static probe; NULL: a function */
	const char *name, *args; /* args: a static probe's arguments; NULL: a function */
	size_t sites;            /* number of places with this name */
	bool has_semaphore;      /* the probe is active only while it is recorded */
};
/* Reports static probes, then functions, sorted by name. Returns -1 with *err if the file is not a program. */
int record_list_places(const char *path, void (*on_place)(void *arg, const struct record_place *p), void *arg,
                       struct error *err);

/* ---- Virtual machines of this host (vm_discovery.c) */

/* Parameters of a vCPU's TSC: guest TSC = host TSC * ratio / 2^bits + offset, in cycles, modulo 2^64. */
struct vm_tsc {
	bool known;
	int64_t offset;
	uint64_t ratio;  /* 1 if bits is 0: not scaled */
	unsigned bits;
};

struct vm_vcpu {
	unsigned number;  /* CPU number in the guest */
	int32_t tid;      /* thread on the host that runs the vCPU; 0: not found */
	struct vm_tsc tsc;
};

struct vm {
	char *name;      /* name for people, escaped; unique */
	char *dir;       /* name as a path component: letters, digits, '.', '_', '-'; unique */
	const char *named_by;  /* the name's source, for people: "libvirt" */
	char *uuid;      /* NULL: unknown */
	char *domain;    /* the libvirt domain's name; NULL: none */
	char *agent;     /* socket of QEMU's guest agent; NULL: none */
	char *vmm;       /* program that runs the VM: "qemu-system-x86_64" */
	int32_t pid;     /* the VMM's process */
	unsigned cid;    /* vsock address (CID); 0: none */
	struct vm_vcpu *vcpu;  /* sorted by number */
	size_t vcpus, unmapped;  /* unmapped: number of vCPUs without a known thread */
	const char *mapped_by;  /* source of the vCPUs' threads: "debugfs", "thread names" */
	char *debugfs;   /* name of the VM's directory in /sys/kernel/debug/kvm; NULL: none */
};

/* Finds all processes with file descriptors of a KVM VM and of vCPUs, and those of VirtualBox, sorted by PID. root: "",
 * or a directory that replaces /proc and /sys of this machine (tests, containers). Never fails. *hidden: number of
 * processes that cannot be inspected for lack of permission. */
struct vm *vms_find(const char *root, size_t *n, size_t *hidden);
/* Returns true if a sandbox of gVisor runs. vms_find() leaves these out: their vCPUs move between threads. */
bool vms_have_gvisor(const char *root);
void vms_free(struct vm *vm, size_t n);

/* Reads the TSC parameters of each vCPU from debugfs. Returns false if one of them is not available. */
bool vm_read_tsc(const char *root, const struct vm *vm, struct vm_tsc *tsc /* [vcpus] */);
