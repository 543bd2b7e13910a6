/* Themes: how states look.  A theme is YAML (stealscope-theme(5)); the shipped ones are compiled in as text and go
 * through the same parser.  A theme holds all colour depths; theme_palette() picks one. */
#ifndef STEALSCOPE_UI_WIDGETS_THEME_H
#define STEALSCOPE_UI_WIDGETS_THEME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ui/terminal/screen.h"

/* What a cell can show.  X(code, key in a theme, state name in a history, what it says to a person).  Letters, labels
 * and severities come from the theme; VIS_NONE is "not alive". */
#define VIS_STATES(X) \
	X(VIS_NONE, "none", "", "does not live here") \
	X(VIS_UNKNOWN, "unknown", "UNKNOWN", "events were lost: nobody knows") \
	X(VIS_IDLE, "idle", "IDLE", "vCPU: nothing in it wants to run") \
	X(VIS_BLOCKED, "blocked", "BLOCKED", "thread: sleeps until somebody or a timer wakes it") \
	X(VIS_RUNNING, "running", "RUNNING", "executes") \
	X(VIS_VMM, "vmm", "VMM", "vCPU: the hypervisor works for it") \
	X(VIS_WAKING, "waking", "WAKING", "vCPU: was woken and queues for a CPU of the host") \
	X(VIS_HOST_BLOCKED, "host-blocked", "HOST_BLOCKED", "vCPU: wants to run, but the host lets it sleep") \
	X(VIS_VIRT_PREEMPTED, "virt-preempted", "VIRT_PREEMPTED", "thread: believes it runs, but its vCPU does not") \
	X(VIS_PREEMPTED, "preempted", "PREEMPTED", "thread: ready to run, others have its CPU") \
	X(VIS_VCPU_PREEMPTED, "vcpu-preempted", "", "vCPU: wants to run, the host runs others instead")

/* Parts of the screen that are not states. */
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

#define VIS_CODE(code, key, name, says) code,
enum vis { VIS_STATES(VIS_CODE) VIS_COUNT };
#undef VIS_CODE
#define PART_CODE(code, key) code,
enum part { PARTS(PART_CODE) PART_COUNT };
#undef PART_CODE

enum depth { DEPTH_MONO, DEPTH_8, DEPTH_16, DEPTH_256, DEPTH_COUNT };

#define OWNERS 12  /* colours for owners of a pCPU; more owners start again at the first */

struct colours {
	int16_t fg, bg;   /* -1 = the terminal's own */
};

struct theme {
	char name[32], about[80];
	bool mono;              /* uses no colours, whatever the terminal has */
	bool light;             /* is made for a light background */
	struct theme_state {
		char letter;
		uint32_t glyph;     /* stands for the state where there are block glyphs but no colours, or no background */
		uint8_t severity;   /* 0 .. 15; from SUFFERS (cells.h) on it is a wait, which stands from the bottom of a cell */
		char label[20];
		struct colours colour[DEPTH_COUNT];
		uint16_t mono;      /* attributes when there are no colours */
	} state[VIS_COUNT];
	struct theme_part {
		struct colours colour[DEPTH_COUNT];
		uint16_t attr, mono;
	} part[PART_COUNT];
	int16_t owner[DEPTH_COUNT][OWNERS];
};

/* A theme at one depth: ready-made styles. */
struct palette {
	enum depth depth;
	struct style state[VIS_COUNT];  /* letter on its background */
	struct style part[PART_COUNT];
	struct style owner[OWNERS];
};

extern const char *const vis_key[VIS_COUNT];
extern const char *const vis_history_name[VIS_COUNT];
extern const char *const vis_says[VIS_COUNT];
enum vis vis_of_name(const char *state_name);  /* VIS_UNKNOWN for a name nobody knows */

/* The shipped themes, made from themes/ *.yaml at build time; the first is the default; ends with a NULL name. */
struct shipped_theme { const char *name, *yaml; };
extern const struct shipped_theme shipped_theme[];
const char *theme_shipped_name(unsigned i);  /* NULL past the last */

/* `name` is a shipped theme, a file, or a name in $XDG_CONFIG_HOME/stealscope/themes; NULL = the default. */
int theme_load(struct theme *t, const char *name, struct error *err);
/* Parses YAML text; what it leaves out stays as it is in *t.  `file` is for messages. */
int theme_parse(struct theme *t, const char *yaml, const char *file, struct error *err);
void theme_palette(const struct theme *t, enum depth depth, struct palette *p);

#endif
