#include "trace/tracecmd/tracecmd_offset.h"

#include "base/int128.h"

#define RANGE (INT64_MAX / 4)

static bool in_range(int64_t v)
{
	return v > -RANGE && v < RANGE;
}

static int64_t corrected_of(const struct shift_point *p)
{
	return p->time + p->offset;
}

bool shift_is_sane(const struct shift *s)
{
	for (size_t i = 0; i < s->points; i++) {
		const struct shift_point *p = &s->point[i];
		if (!in_range(p->time) || !in_range(p->offset))
			return false;
		if (i && (p->time <= p[-1].time || corrected_of(p) <= corrected_of(p - 1)))
			return false;
	}
	return s->points > 0;
}

int64_t shift_undo(const struct shift *s, int64_t corrected)
{
	if (s->points == 1)
		return corrected - s->point[0].offset;
	size_t i = 0;  /* the line through points i and i + 1; the first and the last one go on for ever */
	while (i + 2 < s->points && corrected >= corrected_of(&s->point[i + 1]))
		i++;
	const struct shift_point *a = &s->point[i], *b = a + 1;
	const int128 since = (int128)corrected - corrected_of(a);
	return (int64_t)(a->time + since * (b->time - a->time) / (corrected_of(b) - corrected_of(a)));
}
