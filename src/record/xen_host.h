/* Recording of a Xen host from its privileged domain (dom0): xentrace records the hypervisor's scheduler, texts of xl
 * contain the names of the domains and the TSC's frequency. dom0's own kernel is traced through tracefs, as a guest.
 *
 * Files in the directory "host" of a recording: xentrace.bin, xl-info.txt, xl-list.txt, xl-vcpu-list.txt, xl-sched.txt
 * (credit only), xl-list-after.txt, xentrace.log (messages of xentrace).
 *
 * If the recorder is killed, the kernel sends SIGTERM to xentrace, which then disables the trace buffers and ends. */
#pragma once

#include "record/record.h"

#define XEN_DOM0_NAME "Domain-0"
#define XEN_DOM0_DIR "guest-" XEN_DOM0_NAME

struct xen_host {
	char *xentrace, *xl;  /* the programs' paths */
	uint32_t mask;        /* events to record: one bit per class and subclass */
	int dir;              /* descriptor of the directory "host"; -1: none */
	int pid;              /* xentrace; 0: does not run */
};

/* Returns true if this machine is the privileged domain of a Xen host. */
bool xen_host_is_here(const char *root);
/* Finds the programs in PATH and in /usr/lib/xen-VERSION/bin. events: as in struct record_options. NULL with *err if a
 * program is missing or a class of events is unknown. */
struct xen_host *xen_host_new(const char *events, struct error *err);
void xen_host_free(struct xen_host *x);  /* ends xentrace; NULL is allowed */
/* Returns the domains except dom0, by `xl list`; the caller calls vms_free(). NULL with *err if xl fails; *n is 0 then. */
struct vm *xen_host_domains(const struct xen_host *x, size_t *n, struct error *err);
/* Creates the directory "host" in a recording. */
int xen_host_store_in(struct xen_host *x, int recording, struct error *err);
/* Writes the texts, starts xentrace and waits for its first records. */
int xen_host_start(struct xen_host *x, struct error *err);
/* Returns -1 with *err if xentrace has ended. */
int xen_host_check(struct xen_host *x, struct error *err);
int xen_host_stop(struct xen_host *x, struct error *err);
