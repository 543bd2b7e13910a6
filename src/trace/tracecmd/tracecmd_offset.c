#include "trace/tracecmd/tracecmd_offset.h"

#include "base/int128.h"

#define VALUE_MAX (INT64_MAX / 4)

static bool in_range(int64_t v)
{
	return v > -VALUE_MAX && v < VALUE_MAX;
}

static int64_t corrected_time(const struct time_shift_point *p)
{
	return p->time + p->offset;
}

bool time_shift_is_valid(const struct time_shift *s)
{
	for (size_t i = 0; i < s->points; i++) {
		const struct time_shift_point *p = &s->point[i];
		if (!in_range(p->time) || !in_range(p->offset))
			return false;
		if (i && (p->time <= p[-1].time || corrected_time(p) <= corrected_time(p - 1)))
			return false;
	}
	return s->points > 0;
}

int64_t time_shift_apply(const struct time_shift *s, int64_t recorded)
{
	if (s->points == 1)
		return recorded + s->point[0].offset;
	size_t i = 0;  /* the segment from point i to point i + 1; the first and the last segment extend to infinity */
	while (i + 2 < s->points && recorded >= s->point[i + 1].time)
		i++;
	const struct time_shift_point *a = &s->point[i], *b = a + 1;
	const int128 since = (int128)recorded - a->time;
	return (int64_t)(recorded + a->offset + since * (b->offset - a->offset) / (b->time - a->time));
}
