/* The rows: machine > vCPU > threads, host > pCPUs, threads; containers.  Folding, sorting, hiding, filtering.
 *
 * What must be known of every thread (its name, the vCPU it lives on, how much time it lost, whether it
 * ever wanted a CPU) is collected once by a survey that runs in steps of a few ms, so that 50,000 threads neither
 * delay the first frame nor a key.  Until a thread is surveyed it is not shown.  A rebuild of the list is linear in
 * the threads of the open branches; nothing else touches invisible rows. */
#ifndef STEALSCOPE_UI_CORE_ROWS_H
#define STEALSCOPE_UI_CORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/query.h"
#include "ui/core/view.h"

enum row_kind {
	ROW_MACHINE,  /* index: topo->machine */
	ROW_CPU,      /* index: topo->cpu */
	ROW_GROUP,    /* the threads of a machine that live on no vCPU; index: topo->machine */
	ROW_THREAD,   /* index: topo->thread */
	ROW_EXECUTOR, /* the thread that executes a vCPU, beneath it; index: topo->cpu, which has one */
	ROW_REQUESTS, /* the requests of a machine; index: topo->machine */
	ROW_REQUEST,  /* index: rows->request */
	ROW_KINDS
};

enum row_sort { SORT_LOST, SORT_WINDOW, SORT_NAME, SORT_ID, SORT_COUNT };

struct row {
	struct row_id id;
	uint8_t depth;
	bool folds, open;  /* has something beneath it; shows it */
};

struct thread_info {
	char *name;        /* "3525 critical_task", escaped; NULL = not yet surveyed */
	struct demand demand;  /* over the span that was asked for */
	int32_t home;      /* the vCPU it lives on: index into topo->cpu; -1 = none (or a thread of the host) */
	bool active;       /* it ran or wanted to for 10 ms, or 0.1 % of the trace if that is less */
};

struct rows {
	const struct topo *topo;
	struct row *row;
	size_t len, cap;
	size_t hidden;             /* threads not shown because they are idle */
	struct thread_info *info;  /* per thread of the topology */
	char **machine;            /* names, escaped: they stay known when the file can be read no more */
	uint32_t *machines;        /* in the order in which they are shown */
	uint32_t *order;           /* threads by (machine, home, sort order) */
	uint32_t *first;           /* of each CPU, and then of each machine's homeless: where they begin in order */
	uint32_t *count;
	struct row_request {
		uint32_t node, state;  /* attributes: /Requests/<machine>/<id>, and its State */
		uint32_t machine;      /* index */
	} *request;                /* by machine */
	size_t requests, requests_cap;
	bool *open[ROW_KINDS];     /* by kind and index; NULL for threads */
	bool hide_idle, show_executors;
	enum row_sort sort;
	char filter[64];           /* threads whose name lacks this are not shown; "" = all.  See rows_set_filter() */
	bool *named;               /* by machine: the filter is in its name, or its part before a '/' is */
	struct survey {
		uint32_t next;     /* thread; == topo->threads: done */
		int64_t from, to;  /* where what was lost is measured */
	} survey;
};

void rows_init(struct rows *r, const struct topo *topo);
void rows_release(struct rows *r);
void rows_set_filter(struct rows *r, const char *text);  /* its first 63 bytes; call rows_build() then */

/* Begins to measure what was lost over [from, to] again. */
void rows_survey_start(struct rows *r, int64_t from, int64_t to);
bool rows_survey_done(const struct rows *r);
/* Goes on for about budget_ns.  1 = finished just now (sorts and rebuilds), 0 = not finished, -1 = error. */
int rows_survey_step(struct rows *r, int64_t budget_ns, struct error *err);

void rows_sort(struct rows *r, enum row_sort sort);
void rows_build(struct rows *r);
size_t rows_find(const struct rows *r, struct row_id id);  /* r->len when it is not shown */
/* Index of the row, or of its closest ancestor that is shown. */
size_t rows_find_near(const struct rows *r, struct row_id id);
void rows_reveal(struct rows *r, struct row_id id);        /* opens what hides it; drops filter and hiding if need be */
uint32_t rows_of_kind(const struct rows *r, enum row_kind kind);  /* that fold */
bool rows_open_at_first(const struct rows *r, enum row_kind kind, uint32_t index);
bool rows_toggle(struct rows *r, size_t row);              /* false when it does not fold */
bool rows_toggle_all(struct rows *r);                      /* all machines; false while a filter opens them */
struct row_id rows_worst(const struct rows *r);            /* the one that lost most; guests before the host */

bool row_same(struct row_id a, struct row_id b);
int64_t row_thread(const struct topo *topo, struct row_id id);  /* index of its thread; -1 = the row is none */
uint32_t row_machine(const struct rows *r, struct row_id id);
uint32_t row_attr(const struct rows *r, struct row_id id);      /* its state attribute; HISTORY_NONE */
bool row_subject(const struct topo *topo, struct row_id id, struct subject *s);  /* false for pCPU, group, request */
bool row_is_pcpu(const struct topo *topo, struct row_id id);
int32_t row_outer_vm(const struct topo *topo, uint32_t machine);  /* the VM that runs a VM, or -1: the host does */
/* "vCPU0", "3525 critical_task", "Debian"; escaped. */
const char *row_label(const struct rows *r, struct row_id id, char *buf, size_t size);
/* "Debian/vCPU0", "Host/2101 burnP6"; escaped. */
char *row_title(const struct rows *r, struct row_id id, char *buf, size_t size);

/* "thread Debian/151": a row by its name, which also means something in another history of the same machines. */
#define ROW_KEY 640
char *row_key(const struct rows *r, struct row_id id, char buf[ROW_KEY]);
bool row_of_key(const struct rows *r, const char *key, struct row_id *id);  /* false when there is none */

/* The same row in another history; a machine when it lacks that. */
struct row_id row_again(const struct rows *was, const struct rows *is, struct row_id id);
/* What is folded, hidden and filtered, in the rows of another history. */
void rows_carry(const struct rows *was, struct rows *is);

/* The next row in the direction from `from`, shown or not, around the end, that contains `text`, any case. */
bool rows_search(const struct rows *r, const char *text, struct row_id from, int direction, bool include_from,
                 struct row_id *found);

#endif
