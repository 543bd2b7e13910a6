/* Reader of xentrace files: the Xen hypervisor's trace buffers, written by xentrace in dom0.
 *
 * A file has no header. It is a row of records with 32-bit little-endian words; each record's length follows from its
 * first word. xentrace precedes each chunk of a pCPU's buffer by a record CPU_CHANGE with the pCPU's number and the
 * chunk's size, the window. The chain of windows identifies the format and divides the file into one stream per
 * pCPU.
 *
 * Times are the pCPUs' TSC. The file contains neither the TSC's frequency nor the domains' names: both
 * come from the output of `xl info`, `xl list`, `xl vcpu-list` and `xl sched-credit` in files beside the trace, in any
 * file and recognized by their contents, or from options. The processor's kind of virtualization (VMX, SVM) comes from
 * `xl info` or Xen's console, otherwise from exit reasons that only one of them has. */
#pragma once

#include "trace/reader.h"

enum {
	XEN_PCPUS_MAX = 4096,
	XEN_HYPERVISOR_DOMAINS = 0x7ff0,  /* ids from here on belong to the hypervisor itself */
	XEN_IDLE_DOMAIN = 0x7fff,         /* its vCPU n runs while pCPU n is idle */
	XEN_WORDS_MAX = 7,                /* a record's longest payload */
	XEN_LOST_RECORDS = 0x1f001, XEN_WRAP_BUFFER = 0x1f002, XEN_CPU_CHANGE = 0x1f003,
};

struct xen_domain {
	uint32_t id;
	char *name;
	bool is_capped;  /* the scheduler limits its CPU time (`xl sched-credit`) */
};

/* Facts from the texts beside the trace. */
struct xen_texts {
	uint64_t millihertz;       /* the TSC's frequency; 0: not in the texts */
	char version[64];          /* "Xen 4.17.7", or "Xen" */
	bool is_credit1;           /* the scheduler is "credit", which caps a domain by pausing it */
	bool has_idle_ns;          /* Xen 4.13 or later: a switch contains the time since the next vCPU left its last pCPU */
	int exit_isa;              /* EXIT_ISA_VMX or EXIT_ISA_SVM: kind of the VM exit reasons; 0: not in the texts */
	struct xen_domain *domain;
	size_t domains, domains_cap;
};

/* Reads the texts in the trace's directory. */
void xen_texts_read(const char *trace_path, struct xen_texts *t);
/* Adds one text's facts; the text ends with a zero byte. */
void xen_texts_add(struct xen_texts *t, const char *text);
/* Sets a domain's name, in place of the texts' name. */
void xen_texts_name_domain(struct xen_texts *t, uint32_t id, const char *name);
void xen_texts_release(struct xen_texts *t);
const struct xen_domain *xen_domain_find(const struct xen_texts *t, uint32_t id);  /* Returns NULL for an unknown id. */

/* A record's first word. */
struct xen_head {
	uint32_t record;
	unsigned words;  /* of the payload */
	bool has_tsc;    /* the TSC precedes the payload */
};
static inline struct xen_head xen_head(uint32_t word)
{
	return (struct xen_head){ word & 0xfffffff, word >> 28 & 7, word >> 31 };
}
static inline size_t xen_record_size(struct xen_head head)
{
	return 4 + 8 * (size_t)head.has_tsc + 4 * (size_t)head.words;
}

struct xen_window { uint64_t at, bytes; };  /* offset and size of one pCPU's records, without the CPU_CHANGE record */

struct xen_pcpu {
	uint16_t number;
	uint64_t bytes;
	uint64_t first, last;    /* its first and its last record's TSC; 0: unknown */
	struct xen_window *window;
	size_t windows, windows_cap;
};

struct xen_file {
	struct xen_texts texts;
	struct xen_pcpu *pcpu;   /* as they appear */
	uint16_t index[XEN_PCPUS_MAX];  /* by pCPU number: 1 + index in pcpu[]; 0: none */
	size_t windows;          /* of all pCPUs */
	size_t pcpus, pcpus_cap;
	uint64_t bytes;          /* the file's size, bytes */
	uint64_t first, last;    /* all pCPUs' first and last TSC; first > last: no record */
	const char *damage;      /* reason why the chain of windows ends before the file's end; NULL: it does not */
	uint64_t damaged_at;     /* offset where it ends, bytes */
};

/* Finds the windows. *f is empty before. Returns 0; -1 with errno set if the file cannot be read. */
int xen_file_scan(struct xen_file *f, int fd);
void xen_file_release(struct xen_file *f);
/* Returns true if the first windows form a chain: the file is an xentrace file. */
bool xen_file_is_plausible(const struct xen_file *f);

/* Decodes one pCPU's records into events. names: cache for the events' strings. Returns 0 or -1, with *out->err set. */
int xen_pcpu_decode(const struct xen_file *f, const struct xen_pcpu *p, int fd, const char *path,
                    const struct clock_scale *scale, struct string_cache *names, struct event_sink *out);

/* Returns the exit reasons' kind, by the first one that only one kind has: EXIT_ISA_VMX or EXIT_ISA_SVM; 0: none
 * found. Reads at most EXIT_SEARCH_MAX events. */
int xen_find_exit_isa(const struct xen_file *f, int fd, const char *path, const struct clock_scale *scale,
                      struct string_cache *names);

extern const struct trace_reader xen_reader;
