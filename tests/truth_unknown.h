/* What the clocks that were found say that they may be off, place by place: so much a row of a history may differ from the
 * truth, and only there. */
#ifndef STEALSCOPE_TESTS_TRUTH_DOUBT_H
#define STEALSCOPE_TESTS_TRUTH_DOUBT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sync/sync.h"
#include "truth_file.h"

#define DOUBT_PARTS 64   /* equal ones of the run, each as doubtful as the clock is anywhere in it */
#define DOUBT_GUESTS 16
#define DOUBT_ALL (INT64_MAX / 4)  /* ns: nothing is said of the clock there */

struct doubt_jump { int64_t from, to, tolerance; };  /* host ns: where a clock says that it may have jumped */

struct guest_doubt {
	char machine[32];
	bool known;                 /* its clock has a corridor */
	int64_t part[DOUBT_PARTS];  /* ns */
	struct doubt_jump jump[8];
	size_t jumps;
};

struct truth_unknown {
	int64_t begin, length;      /* host ns; of a part */
	int64_t least;              /* ns; 0 = exact */
	bool nested;                /* a row of one guest may depend on another one's clock */
	struct guest_doubt guest[DOUBT_GUESTS];
	size_t guests;
};

/* The corridor of a guest's clock, from low to high ns off the true one, does not hold that at that host time; low > high:
 * there is none. */
typedef void doubt_outside_fn(void *arg, const char *machine, int64_t host, int64_t low, int64_t high);

void doubt_begin(struct truth_unknown *d, const struct truth_file *truth, int64_t slack);
/* Notes what that clock says of itself; tells the first place at which it is wrong. */
void doubt_add(struct truth_unknown *d, const struct truth_file *truth, const struct sync_vm *vm, doubt_outside_fn *outside,
               void *arg);
void doubt_add_unknown(struct truth_unknown *d, const struct sync_vm *vm);  /* one of which nothing is known, and that is said */
bool doubt_unknown(const struct truth_unknown *d);                          /* is there any? */
bool doubt_knows(const struct truth_unknown *d, const char *path);          /* all clocks that have a say in that attribute */
/* What a time of that attribute may be off at t; *until: so long it holds. */
int64_t doubt_at(const struct truth_unknown *d, const char *path, int64_t t, int64_t *until);
/* Cuts the window to what is known of the attribute. */
void doubt_window(const struct truth_unknown *d, const char *path, int64_t *from, int64_t *to);
double doubt_share(const struct truth_unknown *d);  /* of all guests' time, 0..1: where nothing is said of the clock */
int64_t doubt_most(const struct truth_unknown *d);  /* anywhere, but where a clock may have jumped */

#endif
