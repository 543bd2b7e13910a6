/* Tests of ui/: how much of a wait is visible. Draws rows with known shares and counts their cells in each tier; checks
 * the contrast of the shipped themes for normal and colour-blind eyes (CIEDE2000 after Sharma, Wu, Dalal 2005;
 * dichromacy after Machado, Oliveira, Fernandes 2009). */
#include "test.h"

#include <locale.h>
#include <math.h>
#include <unistd.h>

#include "base/states.h"
#include "ui/core/viewer.h"

#define BEGIN INT64_C(1795176184000000000)
#define ROUND 1000000  /* length of a round, ns; each round starts with the thread's wait */
#define ROUNDS 4096

/* Threads of the test history: the state of most of each round, and the wait at its start, in thousandths of the round. */
static const struct { int tid, waits; enum thread_state wait, else_; } known[] = {
	{ 1, 0, THREAD_PREEMPTED, THREAD_RUNNING }, { 2, 5, THREAD_PREEMPTED, THREAD_RUNNING },
	{ 3, 50, THREAD_VIRT_PREEMPTED, THREAD_RUNNING }, { 4, 100, THREAD_VIRT_PREEMPTED, THREAD_BLOCKED },
	{ 5, 190, THREAD_PREEMPTED, THREAD_RUNNING }, { 6, 340, THREAD_VIRT_PREEMPTED, THREAD_RUNNING },
	{ 7, 490, THREAD_VIRT_PREEMPTED, THREAD_BLOCKED }, { 8, 510, THREAD_VIRT_PREEMPTED, THREAD_RUNNING },
	{ 9, 750, THREAD_PREEMPTED, THREAD_RUNNING }, { 10, 990, THREAD_PREEMPTED, THREAD_RUNNING },
	{ 11, 1000, THREAD_VIRT_PREEMPTED, THREAD_RUNNING },
};

static char path[64] = "/tmp/stealscope-look-XXXXXX";

static int write_world(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	close(mkstemp(path));
	struct history_builder *b = history_create(path, NULL, &err);
	unsigned set = history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT);
	for (int i = 0; i < ROUNDS; i++) {
		for (int wait = 1; wait >= 0; wait--) {
			for (size_t k = 0; k < COUNT(known); k++) {
				char name[64];
				snprintf(name, sizeof name, "/Virtual Machines/V/Threads/%d/Status", known[k].tid);
				uint32_t attr = history_attribute(b, name, HISTORY_STATE, set, &err);
				int64_t t = BEGIN + i * INT64_C(1000) * (ROUND / 1000);
				/* Writes the changes of a round in order of time: all waits start first, then each one ends. */
				if (wait && known[k].waits > 0)
					assert_int_equal(history_set(b, t, attr, known[k].wait, &err), 0);
				else if (!wait && known[k].waits < 1000)
					assert_int_equal(history_set(b, t + known[k].waits * (ROUND / 1000), attr, known[k].else_, &err), 0);
			}
		}
	}
	if (history_finish(b, BEGIN, BEGIN + (int64_t)ROUND * ROUNDS - 1, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int drop_world(void **state)
{
	(void)state;
	return unlink(path);
}

/* Computes the glyphs of a thread's row: 64 cells, each of which covers many rounds. */
static void row_of(const char *glyphs, enum depth depth, int tid, struct glyph glyph[64])
{
	struct app app;
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	struct ui_options o = { .glyphs = glyphs, .width = 92, .height = 24, .config = "/dev/null" };
	assert_non_null(h);
	assert_int_equal(viewer_init(&app, h, &o, &err), 0);
	appearance_set_depth(&app, depth);
	assert_int_equal(app.bounds.cols, 64);
	struct row_id row = { ROW_THREAD, (uint32_t)catalog_find_thread(&app.catalog, 0, tid) };
	struct cell_source src;
	struct cell cell[64];
	uint32_t *attrs;
	appearance_cell_source(&app, row, &src, &attrs);
	assert_int_equal(cells_row(&src, app.view.t0, app.view.step, 64, cell, &err), 0);
	for (int i = 0; i < 64; i++)
		glyph[i] = appearance_glyph(&app, cell[i], false);
	free(attrs);
	viewer_release(&app);
	history_close(h);
}

static struct theme_state looks_of(enum thread_state s)
{
	struct theme t;
	struct error err = ERROR_INIT;
	assert_int_equal(theme_load(&t, NULL, &err), 0);
	return t.state[vis_of_name(thread_state_name[s])];
}

/* Returns the height of this colour in a cell, eighths from below; 0 for the mark on the baseline. */
static int eighths(const struct glyph *g, int16_t hot)
{
	if (g->ch >= 0x2581 && g->ch <= 0x2587 && g->style.fg == hot)
		return (int)(g->ch - 0x2580);
	return g->ch == ' ' && g->style.bg == hot ? 8 : 0;
}

/* Blocks tier: the height of the wait is its share, to 1/16, even if it is the largest state; the rest has the colour of
 * the other state; the smallest wait is a mark on the baseline. */
static void test_share_in_blocks(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(known); k++) {
		struct glyph glyph[64];
		int16_t hot = looks_of(known[k].wait).colour[DEPTH_256].bg, rest = looks_of(known[k].else_).colour[DEPTH_256].bg;
		int sum = 0, marks = 0;
		row_of("blocks", DEPTH_256, known[k].tid, glyph);
		for (int i = 0; i < 64; i++) {
			sum += eighths(&glyph[i], hot);
			marks += glyph[i].ch == '_' && glyph[i].style.fg == hot;
			assert_true(eighths(&glyph[i], hot) == 8 || glyph[i].style.bg == rest);
		}
		assert_true(abs(sum * 1000 - known[k].waits * 64 * 8) <= 64 * 8 * 1000 / 16);
		assert_int_equal(marks, known[k].waits > 0 && known[k].waits < 62 ? 64 : 0);
	}
}

/* Letters: a wait of at least half a cell determines its letter, a wait of at least 1/8 is marked. */
static void test_share_in_letters(void **state)
{
	(void)state;
	static const struct { const char *glyphs; enum depth depth; } tiers[] = {
		{ "ascii", DEPTH_256 }, { "ascii", DEPTH_MONO }, { "cells", DEPTH_MONO } };
	for (size_t t = 0; t < COUNT(tiers); t++) {
		for (size_t k = 0; k < COUNT(known); k++) {
			struct glyph glyph[64];
			char wait = looks_of(known[k].wait).letter, rest = looks_of(known[k].else_).letter;
			int w = known[k].waits, count[128] = { 0 };
			row_of(tiers[t].glyphs, tiers[t].depth, known[k].tid, glyph);
			for (int i = 0; i < 64; i++)
				count[glyph[i].ch & 127]++;
			assert_int_equal(count[w >= 500 ? (int)wait : w >= 125 ? 'i' : (int)rest], 64);
		}
	}
}

/* Cells tier with colours: the same rules for backgrounds; sleep is a letter without background. */
static void test_share_in_cells(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(known); k++) {
		struct glyph glyph[64];
		struct theme_state wait = looks_of(known[k].wait), rest = looks_of(known[k].else_);
		int w = known[k].waits;
		row_of("cells", DEPTH_256, known[k].tid, glyph);
		for (int i = 0; i < 64; i++) {
			assert_int_equal(glyph[i].style.bg, (w >= 500 ? wait : rest).colour[DEPTH_256].bg);
			assert_int_equal(glyph[i].ch, w >= 500 ? ' ' : w >= 125 ? 'i' : rest.colour[DEPTH_256].bg < 0 ? rest.letter
			                 : ' ');
		}
	}
}

/* Without colours shades are drawn from the bottom as well, and a wait is darker than all other states. */
static void test_share_in_shades(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(known); k++) {
		struct glyph glyph[64];
		int w = known[k].waits, expected = (w * 16 / 1000 + 1) / 2;
		row_of("blocks", DEPTH_MONO, known[k].tid, glyph);
		for (int i = 0; i < 64; i++) {
			uint32_t full = looks_of(w >= 940 ? known[k].wait : known[k].else_).glyph;
			if (w >= 125 && w < 940)
				assert_in_range(glyph[i].ch, 0x2580U + (unsigned)expected - 1, 0x2580U + (unsigned)expected + 1);
			else
				assert_int_equal(glyph[i].ch, full);
		}
	}
}

/* ---- Themes -------------------------------------------------------------------------------------------------------- */

enum eye { NORMAL, PROTANOPE, DEUTERANOPE, TRITANOPE, EYES };
struct lab { double l, a, b; };

/* Converts one of xterm's 256 colours to linear light. */
static void light_of(int i, double rgb[3])
{
	static const int level[] = { 0, 95, 135, 175, 215, 255 };
	int v[3];
	assert_in_range(i, 16, 255);
	for (int c = 0; c < 3; c++) {
		v[c] = i >= 232 ? 8 + 10 * (i - 232) : level[(i - 16) / (c == 0 ? 36 : c == 1 ? 6 : 1) % 6];
		double x = v[c] / 255.0;
		rgb[c] = x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
	}
}

static double cube(double t)
{
	return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

static struct lab seen_by(int colour, enum eye eye)
{
	static const double sees[EYES][3][3] = {
		{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
		{ { 0.152286, 1.052583, -0.204868 }, { 0.114503, 0.786281, 0.099216 }, { -0.003882, -0.048116, 1.051998 } },
		{ { 0.367322, 0.860646, -0.227968 }, { 0.280085, 0.672501, 0.047413 }, { -0.011820, 0.042940, 0.968881 } },
		{ { 1.255528, -0.076749, -0.178779 }, { -0.078411, 0.930809, 0.147602 }, { 0.004733, 0.691367, 0.303900 } },
	};
	double linear[3], c[3];
	light_of(colour, linear);
	for (int i = 0; i < 3; i++)
		c[i] = fmin(1, fmax(0, sees[eye][i][0] * linear[0] + sees[eye][i][1] * linear[1] + sees[eye][i][2] * linear[2]));
	double x = cube((0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047);
	double y = cube(0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2]);
	double z = cube((0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883);
	return (struct lab){ 116 * y - 16, 500 * (x - y), 200 * (y - z) };
}

static double degrees(double y, double x)
{
	double h = atan2(y, x) * 180 / M_PI;
	return h < 0 ? h + 360 : h;
}

static double cosd(double d)
{
	return cos(d * M_PI / 180);
}

static double ciede2000(struct lab p, struct lab q)
{
	double c7 = pow((hypot(p.a, p.b) + hypot(q.a, q.b)) / 2, 7), g = 1.5 - 0.5 * sqrt(c7 / (c7 + pow(25, 7)));
	double c1 = hypot(p.a * g, p.b), c2 = hypot(q.a * g, q.b);
	double h1 = degrees(p.b, p.a * g), h2 = degrees(q.b, q.a * g), dh = h2 - h1, hm = (h1 + h2) / 2;
	if (c1 * c2 <= 0) {
		dh = 0;
		hm = h1 + h2;
	} else if (fabs(dh) > 180) {
		hm += h1 + h2 < 360 ? 180 : -180;
		dh += dh < 0 ? 360 : -360;
	}
	double dl = q.l - p.l, dc = c2 - c1, big_h = 2 * sqrt(c1 * c2) * sin(dh / 2 * M_PI / 180);
	double lm = (p.l + q.l) / 2, cm = (c1 + c2) / 2, cm7 = pow(cm, 7);
	double t = 1 - 0.17 * cosd(hm - 30) + 0.24 * cosd(2 * hm) + 0.32 * cosd(3 * hm + 6) - 0.20 * cosd(4 * hm - 63);
	double sl = 1 + 0.015 * (lm - 50) * (lm - 50) / sqrt(20 + (lm - 50) * (lm - 50));
	double sc = 1 + 0.045 * cm, sh = 1 + 0.015 * cm * t;
	double delta_theta = 60 * exp(-((hm - 275) / 25) * ((hm - 275) / 25)) * M_PI / 180;
	double rt = -sin(delta_theta) * 2 * sqrt(cm7 / (cm7 + pow(25, 7)));
	dl /= sl, dc /= sc, big_h /= sh;
	return sqrt(dl * dl + dc * dc + big_h * big_h + rt * dc * big_h);
}

static double least_difference(int a, int b)
{
	double least = 1000;
	for (int eye = 0; eye < EYES; eye++)
		least = fmin(least, ciede2000(seen_by(a, (enum eye)eye), seen_by(b, (enum eye)eye)));
	return least;
}

/* Pairs of colours and distances published with the formula. */
static void test_ciede2000(void **state)
{
	(void)state;
	static const struct { struct lab p, q; double d; } pairs[] = {
		{ { 50, 2.6772, -79.7751 }, { 50, 0, -82.7485 }, 2.0425 }, { { 50, -1, 2 }, { 50, 0, 0 }, 2.3669 },
		{ { 50, 2.5, 0 }, { 73, 25, -18 }, 27.1492 },
		{ { 60.2574, -34.0099, 36.2677 }, { 60.4626, -34.1751, 39.4387 }, 1.2644 },
		{ { 22.7233, 20.0904, -46.6940 }, { 23.0331, 14.9730, -42.5619 }, 2.0373 },
		{ { 2.0776, 0.0795, -1.1350 }, { 0.9033, -0.0636, -0.5514 }, 0.9082 },
	};
	for (size_t i = 0; i < COUNT(pairs); i++)
		assert_true(fabs(ciede2000(pairs[i].p, pairs[i].q) - pairs[i].d) < 0.00006);
}

/* More severe states contrast more with the background, in visible steps. States that fill cells are distinguishable for
 * all eyes, and the two waits for a CPU look related. */
static void test_luminance_follows_severity(void **state)
{
	(void)state;
	static const struct { const char *name; int ground; } themes[] = { { "cvd-dark", 16 }, { "cvd-light", 231 } };
	static const enum vis order[] = { VIS_PREEMPTED, VIS_VIRT_PREEMPTED, VIS_HOST_BLOCKED, VIS_WAKING, VIS_VMM,
		VIS_RUNNING };
	for (size_t k = 0; k < COUNT(themes); k++) {
		struct theme t;
		struct error err = ERROR_INIT;
		double out[COUNT(order)], ground = seen_by(themes[k].ground, NORMAL).l;
		assert_int_equal(theme_load(&t, themes[k].name, &err), 0);
		for (size_t i = 0; i < COUNT(order); i++) {
			int bg = t.state[order[i]].colour[DEPTH_256].bg;
			out[i] = fabs(seen_by(bg, NORMAL).l - ground);
			assert_true(least_difference(bg, themes[k].ground) >= 15.9);
			for (size_t j = 0; j < i; j++)
				assert_true(least_difference(bg, t.state[order[j]].colour[DEPTH_256].bg) >= (i == 1 ? 12 : 15.9));
		}
		for (size_t tier = 0; tier + 2 < COUNT(order); tier += 2)
			assert_true(fmin(out[tier], out[tier + 1]) >= fmax(out[tier + 2], out[tier + 3]) + 5);
		for (int i = 0; i < OWNERS; i++)  /* the state of a pCPU is its owner, not a wait */
			assert_true(fabs(seen_by(t.owner[DEPTH_256][i], NORMAL).l - ground) + 5 <= fmin(out[0], out[1]));
		for (int v = VIS_IDLE; v <= VIS_BLOCKED; v++) {
			assert_true(t.state[v].colour[DEPTH_256].bg < 0);
			assert_true(fabs(seen_by(t.state[v].colour[DEPTH_256].fg, NORMAL).l - ground) < fmin(out[4], out[5]) + 5);
		}
	}
}

/* The host and the first five VMs are distinguishable on pCPU lanes for all eyes, from each other and from the states. With
 * 16 colours each state that fills cells has its own colour, which no such owner has. */
static void test_owners_are_distinct(void **state)
{
	(void)state;
	static const char *const themes[] = { "cvd-dark", "cvd-light" };
	static const enum vis filled[] = { VIS_PREEMPTED, VIS_VIRT_PREEMPTED, VIS_HOST_BLOCKED, VIS_WAKING, VIS_VMM,
		VIS_RUNNING };
	for (size_t k = 0; k < COUNT(themes); k++) {
		struct theme t;
		struct error err = ERROR_INIT;
		assert_int_equal(theme_load(&t, themes[k], &err), 0);
		for (int i = 1; i <= 6; i++) {
			for (int j = 0; j < i; j++)
				assert_true(least_difference(t.owner[DEPTH_256][i], t.owner[DEPTH_256][j]) >= (j ? 11 : 9));
			for (size_t v = 0; v < COUNT(filled); v++)
				assert_true(least_difference(t.owner[DEPTH_256][i], t.state[filled[v]].colour[DEPTH_256].bg) >= 9);
		}
		for (size_t v = 0; v < COUNT(filled); v++) {
			const int bg = t.state[filled[v]].colour[DEPTH_16].bg;
			for (size_t w = 0; w < v; w++)
				assert_int_not_equal(bg, t.state[filled[w]].colour[DEPTH_16].bg);
			for (int i = 1; i <= 6 && filled[v] != VIS_RUNNING; i++)
				assert_int_not_equal(bg, t.owner[DEPTH_16][i]);
		}
	}
}

/* Text in bars is legible in every theme: its contrast is at least 7, or it has the terminal's own colours. */
static void test_text_in_bars(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	assert_true(fabs(colour_contrast(16, 231) - 21) < 0.01 && fabs(colour_contrast(231, 124) - 7.44) < 0.01);
	for (unsigned k = 0; theme_shipped_name(k); k++) {
		struct app app;
		struct history *h = history_open(path, &err);
		struct ui_options o = { .theme = theme_shipped_name(k), .width = 92, .height = 24, .config = "/dev/null" };
		assert_int_equal(viewer_init(&app, h, &o, &err), 0);
		appearance_set_depth(&app, DEPTH_256);
		for (unsigned code = 0; code < VIS_COUNT + OWNERS; code++) {
			const bool owners = code >= VIS_COUNT;
			const struct style s = appearance_bar_style(&app, owners ? code - VIS_COUNT : code, owners);
			assert_true(s.bg < 16 || (s.fg >= 16 && colour_contrast(s.fg, s.bg) >= CONTRAST_MIN));
		}
		viewer_release(&app);
		history_close(h);
	}
}

/* A wait that fills a cell of a small palette has its letter, so that red beside green is not the only difference. */
static void test_letters_of_small_palettes(void **state)
{
	(void)state;
	static const char *const tiers[] = { "blocks", "cells", "ascii" };
	for (size_t k = 0; k < COUNT(tiers); k++)
		for (int depth = DEPTH_8; depth <= DEPTH_16; depth++) {
			struct glyph glyph[64];
			row_of(tiers[k], (enum depth)depth, 11, glyph);
			for (int i = 0; i < 64; i++)
				assert_int_equal(glyph[i].ch, ':');
		}
}

/* With few colours the owners of host CPUs never have the colour of a state, in particular not of a wait for a CPU. */
static void test_owners_are_no_waits(void **state)
{
	(void)state;
	static const enum vis waits[] = { VIS_PREEMPTED, VIS_VCPU_PREEMPTED, VIS_VIRT_PREEMPTED };
	for (unsigned k = 0; theme_shipped_name(k); k++) {
		struct theme t;
		struct error err = ERROR_INIT;
		assert_int_equal(theme_load(&t, theme_shipped_name(k), &err), 0);
		for (int d = DEPTH_8; d < DEPTH_COUNT; d++) {
			bool few = t.owner[d][2] < 16;
			for (int i = 0; i < OWNERS && few; i++)
				for (size_t w = 0; w < COUNT(waits); w++)
					assert_int_not_equal(t.owner[d][i], t.state[waits[w]].colour[d].bg);
			for (int v = VIS_UNKNOWN; v < VIS_COUNT && few; v++)
				assert_true(t.owner[d][1] < 0 || t.owner[d][1] != t.state[v].colour[d].bg);
		}
	}
}

int main(void)
{
	setlocale(LC_ALL, "C.UTF-8");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_in_blocks),
		cmocka_unit_test(test_share_in_letters),
		cmocka_unit_test(test_share_in_cells),
		cmocka_unit_test(test_share_in_shades),
		cmocka_unit_test(test_ciede2000),
		cmocka_unit_test(test_luminance_follows_severity),
		cmocka_unit_test(test_owners_are_no_waits),
		cmocka_unit_test(test_owners_are_distinct),
		cmocka_unit_test(test_letters_of_small_palettes),
		cmocka_unit_test(test_text_in_bars),
	};
	return cmocka_run_group_tests_name("ui look", tests, write_world, drop_world);
}
