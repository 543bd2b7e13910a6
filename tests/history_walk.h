/* Asks a history every query that its header offers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

/* Returns a digest of all answers. Asks at most `budget` queries of each kind, so that a forged file cannot make the
 * walk long. *err: the first error of any query, history_damage() included (status 0: none). */
uint64_t history_walk(const struct history *h, uint64_t budget, struct error *err);

/* Corrects all checksums of a modified file, as far as its header is still plausible. */
void history_repair_sums(uint8_t *file, size_t size);
/* Returns the number of attributes of a valid file with chunks that refer to the intervals of another attribute. */
unsigned history_echoes(const uint8_t *file);
