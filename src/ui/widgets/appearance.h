/* Theme, colours and glyphs, and the attributes shown by each row's cells. */
#pragma once

#include "ui/widgets/cells.h"
#include "ui/core/rows.h"
#include "ui/widgets/theme.h"

struct app;

enum tier { TIER_ASCII, TIER_CELLS, TIER_BLOCKS, TIERS };

extern const char *const tier_name[TIERS];

#define OWNER_UNKNOWN (HISTORY_STATES - 2)  /* an unknown owner's code */
#define OWNER_OTHER (HISTORY_STATES - 3)    /* code shared by the VMs for which no code was left */

/* Maps the states of an attribute to codes and severities. Rows of the same kind share one. */
struct vocabulary {
	uint8_t code[HISTORY_STATES];
	uint8_t severity[HISTORY_STATES];
	bool owners;  /* codes stand for owners of a pCPU, not for enum vis */
};

struct appearance {
	struct theme theme;
	struct palette palette;
	enum depth depth;
	char color[16];              /* colour mode requested by --color or the configuration; "": auto */
	enum tier tier, best_tier;   /* tier: chosen glyphs; best_tier: richest glyphs that the terminal can show */
	bool follows_background;     /* nobody chose a theme */
	bool coarse;                 /* simpler frames without block glyphs, while a key repeats */
	struct vocabulary vcpu, thread, request, provider;
	struct vocabulary *owner;    /* one entry per CPU of the catalog, used for pCPUs */
	char letter[HISTORY_STATES];  /* letters of the owners of pCPUs, indexed by code */
};

void appearance_read_states(struct app *app);  /* reads the states of a history that replaces the previous one */
void appearance_set_theme(struct app *app, const struct theme *theme);
void appearance_follow_light(struct app *app);  /* uses the light theme if nobody chose a theme */
void appearance_set_depth(struct app *app, enum depth depth);
void appearance_next_tier(struct app *app);

/* Fills *src for a row's cells. *src refers to *attrs_out, which the caller frees after the last use of *src. */
void appearance_cell_source(const struct app *app, struct row_id row, struct cell_source *src, uint32_t **attrs_out);
struct glyph appearance_glyph(const struct app *app, struct cell c, bool owners);
#define CONTRAST_MIN 7.0  /* of text in bars, with 256 colours */
/* Returns the contrast (WCAG 2.2: 1 to 21) of two of the upper 240 colours. */
double colour_contrast(int a, int b);
/* Returns the style of text inside a bar of this state or owner: that of the bar if the text is legible there, otherwise
 * that of normal text. */
struct style appearance_bar_style(const struct app *app, unsigned code, bool owners);
/* Returns the name of the owner with this code (0: idle, 1: host, 2 ..: VMs), its letter and its style; NULL: no owner
 * has it. */
const char *appearance_owner(const struct app *app, unsigned code, char *letter, struct style *style);
uint32_t appearance_bar(const struct app *app, double part);  /* bar glyph of height `part`, 0 .. 1 */
const char *appearance_code_label(const struct app *app, struct row_id row, unsigned code);
