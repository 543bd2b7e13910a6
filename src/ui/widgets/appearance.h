/* How things look: theme, colours, glyphs; and from a row to what its cells are made of. */
#ifndef STEALSCOPE_UI_WIDGETS_APPEARANCE_H
#define STEALSCOPE_UI_WIDGETS_APPEARANCE_H

#include "ui/widgets/cells.h"
#include "ui/core/rows.h"
#include "ui/widgets/theme.h"

struct app;

enum tier { TIER_ASCII, TIER_CELLS, TIER_BLOCKS, TIERS };

extern const char *const tier_name[TIERS];

#define OWNER_UNKNOWN (HISTORY_STATES - 2)  /* code of an owner that nobody knows */
#define OWNER_OTHER (HISTORY_STATES - 3)    /* of all VMs that are too many to have one */

/* Meaning of a row's states: one per state vocabulary of the history. */
struct vocabulary {
	uint8_t code[HISTORY_STATES];
	uint8_t severity[HISTORY_STATES];
	bool owners;  /* codes are owners of a pCPU, not enum vis */
};

struct look {
	struct theme theme;
	struct palette palette;
	enum depth depth;
	char color[16];              /* what was asked for, by --color or the configuration; "" = auto */
	enum tier tier, best_tier;   /* chosen; the richest that the terminal shows */
	bool coarse;                 /* draw cells instead of blocks: a key repeats */
	struct vocabulary vcpu, thread, request, *owner;  /* owner: per CPU of the topology, NULL without pCPUs */
	char letter[HISTORY_STATES];  /* of the owners of pCPUs, by code */
};

void look_learn(struct app *app);  /* the states of a history that was not shown before */
void look_set_theme(struct app *app, const struct theme *theme);
void look_set_depth(struct app *app, enum depth depth);
void look_next_tier(struct app *app);

/* The row's cells; scratch attrs live in *attrs_out, to be freed. */
void look_source(const struct app *app, struct row_id row, struct cell_source *src, uint32_t **attrs_out);
struct glyph look_glyph(const struct app *app, struct cell c, bool owners);
/* The machine that a host's CPU shows by this code (2 ..): its name; NULL: there are no more. */
const char *look_owner(const struct app *app, unsigned code, char *letter, struct style *style);
uint32_t look_bar(const struct app *app, double part);  /* as high as this part, 0 .. 1 */
const char *look_code_label(const struct app *app, struct row_id row, unsigned code);

#endif
