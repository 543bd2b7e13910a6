/* The tree of rows: VM > vCPUs > threads, host > pCPUs and threads, containers. Folds, sorts, hides and filters rows.
 * Several threads of a vCPU or group that slept in the whole window are one row, "4 threads slept".
 *
 * The thread scan collects name, home vCPU, lost time and activity of each thread, in steps of a few ms, so that 50,000
 * threads delay neither the first frame nor a key. A thread is not shown before it is scanned. Rebuilding the list is
 * linear in the threads of the unfolded branches; no other operation touches hidden rows. */
#pragma once

#include "base/base.h"
#include "query/query.h"
#include "ui/core/view.h"

enum row_kind {
	ROW_MACHINE,  /* host, VM or container; index: catalog->machine */
	ROW_CPU,      /* vCPU or pCPU; index: catalog->cpu */
	ROW_GROUP,    /* all threads of a machine without a home vCPU; index: catalog->machine */
	ROW_THREAD,   /* index: catalog->thread */
	ROW_EXECUTOR, /* row below a vCPU for the host thread that executes it; index: catalog->cpu */
	ROW_PROVIDER, /* row below a vCPU with a steal clock: what the provider took; index: catalog->cpu */
	ROW_REQUESTS, /* parent row of a machine's requests; index: catalog->machine */
	ROW_REQUEST,  /* one request; index: rows->request */
	ROW_SLEEPERS, /* threads that slept in the whole window; index: as in rows->group_first */
	ROW_KINDS
};

enum row_sort { SORT_LOST, SORT_WINDOW, SORT_NAME, SORT_ID, SORT_COUNT };

struct row {
	struct row_id id;
	uint8_t depth;
	bool folds, open;  /* folds: the row has rows below it; open: these are shown */
};

struct thread_info {
	char *name;        /* "3525 critical_task", escaped; NULL: not yet scanned */
	struct demand demand;  /* time wanted and lost in the interval of the scan */
	int32_t home;      /* vCPU on which the thread was placed longest, index into catalog->cpu; -1: none, or a host
	                    * thread */
	int64_t first, last;  /* lifetime, ns; first > last: never alive */
	bool slept;        /* slept in the whole window: its row is below a row of kind ROW_SLEEPERS */
	bool active;       /* ran or was runnable for at least 10 ms, or 0.1 % of the trace if that is less */
	bool in_process;   /* belongs to the process of the filter */
};

struct rows {
	const struct catalog *catalog;
	struct row *row;
	size_t len, cap;
	size_t hidden;             /* threads that are not shown: idle, or not alive in the window */
	int64_t from, to;          /* window, ns: threads that are not alive in it are hidden like idle ones */
	struct row_id kept;        /* this row is shown even if it is not alive in the window */
	struct thread_info *info;  /* one entry per thread of the catalog */
	char **machine_name;       /* names of the machines, escaped; copied, because the file may become unreadable */
	uint32_t *machine_order;   /* indices of the machines in display order */
	uint32_t *thread_order;    /* indices of the threads, sorted by machine, home vCPU and sort order */
	uint32_t *group_first;     /* position in thread_order of the first thread: one entry per CPU, then one per machine for
	                            * threads without a home vCPU */
	uint32_t *group_count;
	uint32_t *group_slept;     /* number of threads that slept in the whole window */
	struct row_request {
		uint32_t node, state;  /* attributes /Requests/MACHINE/ID, and its child with the state */
		uint32_t machine;      /* index into catalog->machine */
	} *request;                /* sorted by machine */
	size_t requests, requests_cap;
	bool *open[ROW_KINDS];     /* unfolded rows, by kind and index; NULL: rows of this kind do not fold */
	bool hide_idle, show_executors;
	enum row_sort sort;
	char filter[64];           /* only threads with this text in their names are shown; "": all; see rows_set_filter() */
	bool *machine_matches;     /* per machine: its name contains the filter, or the part of the filter before '/' */
	struct thread_scan {
		uint32_t next;     /* index of the next thread; == catalog->threads: finished */
		int64_t from, to;  /* interval in which lost time is measured, ns */
	} scan;
};

void rows_init(struct rows *r, const struct catalog *catalog);
void rows_release(struct rows *r);
void rows_set_filter(struct rows *r, const char *text);  /* stores the first 63 bytes; call rows_build() afterwards */

/* Starts the thread scan, which measures the lost time in [from, to], ns. */
void rows_scan_start(struct rows *r, int64_t from, int64_t to);
bool rows_scan_done(const struct rows *r);
/* Scans threads for about budget_ns. Returns 1 when the scan is finished (the rows are sorted and rebuilt), 0 if not, -1
 * on error. */
int rows_scan_step(struct rows *r, int64_t budget_ns, struct error *err);

void rows_sort(struct rows *r, enum row_sort sort);
/* Sets the window and the row to keep; rebuilds the list of rows if the window changed. */
void rows_set_window(struct rows *r, int64_t from, int64_t to, struct row_id kept);
void rows_build(struct rows *r);
size_t rows_find(const struct rows *r, struct row_id id);  /* index in r->row; r->len: the row is not shown */
/* Returns the index of the row, or of its closest ancestor that is shown. */
size_t rows_find_near(const struct rows *r, struct row_id id);
/* Unfolds the row's ancestors; clears the filter and shows idle threads if necessary. */
/* Returns the row of a finding's target; of a machine or vCPU the thread that lost most, if a thread lost any. */
struct row_id rows_of_victim(const struct rows *r, const struct target *target);
void rows_reveal(struct rows *r, struct row_id id);
uint32_t rows_of_kind(const struct rows *r, enum row_kind kind);  /* number of rows of this kind; 0: they do not fold */
bool rows_default_open(const struct rows *r, enum row_kind kind, uint32_t index);
/* Folds or unfolds the row; false: it has no rows below it, or a filter is set. */
bool rows_toggle(struct rows *r, size_t row);
/* Folds or unfolds all machines; false: a filter keeps them unfolded. */
bool rows_toggle_all(struct rows *r);

bool row_same(struct row_id a, struct row_id b);
/* Index of the row's thread; -1: the row is not a thread. */
int64_t row_thread(const struct catalog *catalog, struct row_id id);
uint32_t row_machine(const struct rows *r, struct row_id id);
/* State attribute of the row; HISTORY_NONE: the row has none. */
uint32_t row_attr(const struct rows *r, struct row_id id);
/* false: the row is a pCPU, a group or a request. The target of ROW_PROVIDER is the vCPU. */
bool row_target(const struct catalog *catalog, struct row_id id, struct target *s);
/* true: the stolen time of the vCPU is known from its guest's steal clock alone. */
bool cpu_has_provider_row(const struct catalog *catalog, uint32_t cpu);
static inline bool row_folds(struct row_id id)  /* Enter folds the row; other rows have a flow */
{
	return id.kind == ROW_MACHINE || id.kind == ROW_GROUP || id.kind == ROW_REQUESTS || id.kind == ROW_SLEEPERS;
}
bool row_is_pcpu(const struct catalog *catalog, struct row_id id);
/* VM that contains this VM; -1: the VM runs on the host. */
int32_t row_outer_vm(const struct catalog *catalog, uint32_t machine);
/* Writes the name without the machine, escaped: "vCPU0", "3525 critical_task", "Debian". */
const char *row_label(const struct rows *r, struct row_id id, char *buf, size_t size);
/* Writes the name with the machine, escaped: "Debian/vCPU0", "Host/2101 burnP6". */
char *row_title(const struct rows *r, struct row_id id, char *buf, size_t size);

/* Writes a name of the row that is valid in other histories of the same machines: "thread Debian/151". */
#define ROW_KEY 640
char *row_key(const struct rows *r, struct row_id id, char buf[ROW_KEY]);
bool row_of_key(const struct rows *r, const char *key, struct row_id *id);  /* false: no such row */

/* Returns the row with the same name in another history; the first machine if there is none. */
struct row_id row_remap(const struct rows *old, const struct rows *new, struct row_id id);
/* Copies folding, hiding and filter from the rows of one history to those of another. */
void rows_copy_state(const struct rows *old, struct rows *new);

/* Finds the next row after `from` in the given direction, shown or not, with `text` in its name; wraps around, ignores
 * case. Returns false if there is none. */
bool rows_search(const struct rows *r, const char *text, struct row_id from, int direction, bool include_from,
                 struct row_id *found);
