/* Asks a history everything that its header offers. */
#ifndef STEALSCOPE_TESTS_HISTORY_WALK_H
#define STEALSCOPE_TESTS_HISTORY_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

/* A digest of all answers.  At most `budget` questions of each kind are asked, so that a file made to deceive cannot
 * make it long.  *err holds the first error of any function, history_damage() included (status 0: none). */
uint64_t history_walk(const struct history *h, uint64_t budget, struct error *err);

/* Makes all checksums of a changed file right again, as far as its header still makes sense. */
void history_repair_sums(uint8_t *file, size_t size);
/* How many attributes of a sound file have chunks that count the intervals of another one. */
unsigned history_echoes(const uint8_t *file);

#endif
