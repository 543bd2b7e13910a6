/* Thresholds that decide when an estimated clock is trusted (private to sync/).
 *
 * They are in one file because each stage's test relies on the thresholds of other stages. Each has its unit and
 * its reason. Contained shares are the share of the guest's events that lie in guest mode, 0..1. Evidence is in nats:
 * x nats mean that chance yields the same with probability e^-x. */
#pragma once

/* ---- contained shares */

/* Contained share that an offset estimate needs after the first sweep. Later sweeps only refine offset and drift: from
 * a smaller share they do not reach CANDIDATE_SHARE_MIN. */
#define FIRST_SWEEP_SHARE_MIN 0.8
/* Contained share that a candidate needs. Its drift is not refined yet, so events near the window edges may still
 * be outside. */
#define CANDIDATE_SHARE_MIN 0.9
/* An offset is rejected without a search if more than one in PRECHECK_ONE_IN events is outside: a contained share of
 * 0.75, safely below CANDIDATE_SHARE_MIN because the drift is unknown. */
#define PRECHECK_ONE_IN 4
/* Contained share that a one-line clock found by containment alone needs. All events of the right VM are inside;
 * 0.005 allows for rounding at window edges, and a VM that runs 99 % of the time has 0.99 under a wrong clock. */
#define LINE_SHARE_MIN 0.995
/* Contained share that a clock with steps needs (events around a step belong to neither segment), and a clock that
 * sync events prove as well. */
#define PROVEN_SHARE_MIN 0.98
/* Contained share below which a warning about the clock is issued: one event in a hundred outside is no rounding error. */
#define TRUSTED_SHARE_MIN 0.99
/* An event count is notable if it is more than one in NOTABLE_ONE_IN: the complement of TRUSTED_SHARE_MIN. */
#define NOTABLE_ONE_IN 100
/* Contained share below which a match by sync events matches equal keys by chance: another host's guest lies in
 * windows about as often as the VM runs. */
#define PLAUSIBLE_SHARE_MIN 0.5

/* ---- events outside guest mode */

/* Another clock counts as equally good as a clock with n events outside if it has at most VIOLATIONS_FACTOR * n +
 * VIOLATIONS_EXTRA: the number of events at window edges varies that much between equally good clocks. */
#define VIOLATIONS_FACTOR 3
#define VIOLATIONS_EXTRA 10

/* ---- evidence, nats */

/* Evidence that a clock by containment needs. A search tries up to 2^27 offsets and some 10^3 drifts, ln(10^11) = 26
 * nats; the other 14 leave a chance of 10^-6 that any of them fits by chance. */
#define EVIDENCE_MIN_NATS 40.0
/* Evidence that a part of the trace needs, with the clock of the rest: a single test, by chance e^-10 = 5 * 10^-5. */
#define PART_EVIDENCE_MIN_NATS 10.0

/* ---- pairs */

/* Consecutive suspect pairs on one side that show that the clock changed. At an outlier share of
 * OUTLIER_SHARE_MAX, six in a row occur by chance once in 10^6 pairs. */
#define FIT_SUSPECTS 6
/* Pair count that proves a segment: three times as many as are needed to start one. */
#define SUPPORT_MIN (3 * FIT_SUSPECTS)
/* Share of contradicting pairs, 0..1, at which the pairs no longer agree. */
#define OUTLIER_SHARE_MAX 0.1

/* ---- time, ns */

/* Clocks closer than this count as one: one bin of the cross-correlation (50 us) and two rounding errors. */
#define DISTINCT_NS 60000
/* Range around a clock, to both sides, that is searched for clocks that fit as well: the error of the cross-correlation
 * (150 us) and one bin. */
#define AMBIGUITY_NS 200000
/* The same range for the trace's ends, reached in four doublings: less than a 250 Hz timer tick's period, at
 * which each clock of a periodic guest fits again. */
#define END_SEARCH_MAX_NS (16 * AMBIGUITY_NS)
/* Gap between adjacent segments' error bounds above which the clock stepped: more than the usual delay between a
 * VM entry and the first event (15 us), which is a bound's error. */
#define STEP_MIN_NS 20000

/* ---- drift, ppm */

/* A VM clock's greatest drift against the host's: NTP slews by at most 500 ppm, on either side. */
#define DRIFT_LIMIT_PPM 1000
/* Rate change above which the oscillator's temperature is not the cause. */
#define DRIFT_CHANGE_MIN_PPM 10.0
/* Drift tolerated between neighbouring pairs when gross outliers are rejected. */
#define NEIGHBOUR_DRIFT_PPM 300
/* Deviation from a line, relative to the line's length, that counts as wander and not as a rate change. */
#define WANDER_PPM 0.1

/* ---- VMs */

/* Of two VMs that fit one guest, one is closer if its window edges are closer in at least CLOSER_MIN slices of the
 * trace, and in CLOSER_TIMES as many slices as the other VM's: eight out of eight have probability 2^-8 by chance. */
#define CLOSER_MIN 8
#define CLOSER_TIMES 3
/* Slices (of SYNC_DELAY_SLICES) without pairs within which a clock may have changed and changed back
 * unnoticed: 6 % of the trace. */
#define UNCOVERED_SLICES_MAX 4
