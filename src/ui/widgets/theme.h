/* Themes: the appearance of states. A theme is a YAML text (stealscope-theme(5)); the shipped themes are compiled in as
 * text and parsed like files. A theme contains all colour depths; theme_palette() selects one. */
#pragma once

#include "base/base.h"
#include "ui/terminal/screen.h"

/* States that a cell can show: X(code, key in a theme, state name in a history, description). Letters, labels and
 * severities come from the theme. VIS_NONE: the thread or vCPU does not exist. */
#define VIS_STATES(X) \
	X(VIS_NONE, "none", "", "does not exist at this time") \
	X(VIS_UNKNOWN, "unknown", "UNKNOWN", "events were lost") \
	X(VIS_IDLE, "idle", "IDLE", "vCPU: no runnable thread") \
	X(VIS_BLOCKED, "blocked", "BLOCKED", "thread: sleeps until a thread, interrupt or timer wakes it") \
	X(VIS_RUNNING, "running", "RUNNING", "executes") \
	X(VIS_VMM, "vmm", "VMM", "vCPU: VM exit, the hypervisor works for it") \
	X(VIS_WAKING, "waking", "WAKING", "vCPU: woken, waits for a CPU of the host") \
	X(VIS_HOST_BLOCKED, "host-blocked", "HOST_BLOCKED", "vCPU: not idle, but its host thread is blocked") \
	X(VIS_VIRT_PREEMPTED, "virt-preempted", "VIRT_PREEMPTED", "thread: running in the guest, but its vCPU is off the CPU") \
	X(VIS_PREEMPTED, "preempted", "PREEMPTED", "thread: runnable, others have its CPU") \
	X(VIS_VCPU_PREEMPTED, "vcpu-preempted", "", "vCPU: runnable, the host runs others instead")

/* Styles of screen parts that are not states. */
#define PARTS(X) \
	X(PART_NORMAL, "normal") \
	X(PART_HEADER, "header") \
	X(PART_RULER, "ruler") \
	X(PART_LABEL, "label") \
	X(PART_SELECTED, "selected") \
	X(PART_STEAL, "steal") \
	X(PART_TITLE, "title") \
	X(PART_STATUS, "status") \
	X(PART_MARK, "mark") \
	X(PART_DIM, "dim") \
	X(PART_ERROR, "error")

#define VIS_CODE(code, key, name, description) code,
enum vis { VIS_STATES(VIS_CODE) VIS_COUNT };
#undef VIS_CODE
#define PART_CODE(code, key) code,
enum part { PARTS(PART_CODE) PART_COUNT };
#undef PART_CODE

enum depth { DEPTH_MONO, DEPTH_8, DEPTH_16, DEPTH_256, DEPTH_COUNT };

#define OWNERS 12  /* colours for owners of a pCPU; further owners reuse them */

struct colours {
	int16_t fg, bg;   /* palette indices; -1: default colour of the terminal */
};

struct theme {
	char name[32], about[80];
	bool mono;              /* never uses colours */
	bool light;             /* the theme is made for a light background */
	struct theme_state {
		char letter;
		uint32_t glyph;     /* glyph of the blocks tier if the depth has no colours or the state has no background */
		uint8_t severity;   /* 0 .. 15; >= WAIT_SEVERITY (cells.h): a wait, drawn from the cell's bottom */
		char label[20];
		struct colours colour[DEPTH_COUNT];
		uint16_t mono;      /* attributes in DEPTH_MONO */
	} state[VIS_COUNT];
	struct theme_part {
		struct colours colour[DEPTH_COUNT];
		uint16_t attr, mono;
	} part[PART_COUNT];
	int16_t owner[DEPTH_COUNT][OWNERS];
};

/* A theme at one colour depth, as styles. */
struct palette {
	enum depth depth;
	struct style state[VIS_COUNT];  /* style of the letter on its background */
	struct style part[PART_COUNT];
	struct style owner[OWNERS];
};

extern const char *const vis_key[VIS_COUNT];
extern const char *const vis_history_name[VIS_COUNT];
extern const char *const vis_description[VIS_COUNT];
enum vis vis_of_name(const char *state_name);  /* VIS_UNKNOWN: unknown name */

#define THEME_LIGHT "cvd-light"  /* the default on a light background */

/* Returns the name of shipped theme i; NULL: there are no more. The first is the default. */
const char *theme_shipped_name(unsigned i);

/* Loads a theme. name: a shipped theme, a file, or a name in $XDG_CONFIG_HOME/stealscope/themes; NULL: the default.
 * Returns 0, or -1. */
int theme_load(struct theme *t, const char *name, struct error *err);
/* Parses YAML text; settings missing in the text keep their value in *t. file: name for messages. Returns 0, or -1. */
int theme_parse(struct theme *t, const char *yaml, const char *file, struct error *err);
void theme_palette(const struct theme *t, enum depth depth, struct palette *p);
