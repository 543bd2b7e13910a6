/* Look-ups in the guest-mode windows of a vCPU thread: by bisection, or in O(1) near a hint. */
#include "sync/evidence/host_timeline.h"

#include "base/bisect.h"
#include "base/mem.h"

void interval_append(struct ns_interval **array, size_t *len, size_t *cap, int64_t from, int64_t to)
{
	if (from > to)
		return;
	if (*len > 0 && (*array)[*len - 1].to >= from) {
		if ((*array)[*len - 1].to < to)
			(*array)[*len - 1].to = to;
		return;
	}
	*array = array_grow(*array, cap, *len, sizeof **array);
	(*array)[(*len)++] = (struct ns_interval){ from, to };
}

/* Counts the intervals with from <= t; hint: expected result, tried first. */
static size_t count_started(const struct ns_interval *s, size_t n, int64_t t, size_t hint)
{
	if (hint <= n && (hint == 0 || s[hint - 1].from <= t)) {
		for (int i = 0; i < 8; i++, hint++)
			if (hint == n || s[hint].from > t)
				return hint;
	}
	BISECT(hint, n, s[hint].from <= t);
	return hint;
}

size_t interval_find(const struct ns_interval *s, size_t n, int64_t t)
{
	size_t at = count_started(s, n, t, 0);
	return at > 0 && s[at - 1].to >= t ? at - 1 : at;
}

void vthread_add_unknown(struct vthread *th, int64_t from, int64_t to)
{
	interval_append(&th->unknown, &th->unknowns, &th->unknown_cap, from, to);
}

bool vthread_is_unknown(const struct vthread *th, int64_t from, int64_t to)
{
	if (th->unknowns == 0)
		return false;
	size_t n = count_started(th->unknown, th->unknowns, to, 0);
	return n > 0 && th->unknown[n - 1].to >= from;
}

int64_t vthread_known_until(const struct vthread *th, int64_t t)
{
	const size_t n = th->unknowns ? count_started(th->unknown, th->unknowns, t, 0) : 0;
	return n < th->unknowns ? th->unknown[n].from - 1 : INT64_MAX;
}

size_t vthread_count_windows(const struct vthread *th, int64_t t, size_t hint)
{
	return count_started(th->window, th->windows, t, hint);
}

enum guest_mode vthread_mode(const struct vthread *th, int64_t t, size_t *hint)
{
	if (vthread_is_unknown(th, t, t))
		return MODE_UNKNOWN;
	*hint = count_started(th->window, th->windows, t, *hint);
	return *hint > 0 && th->window[*hint - 1].to >= t ? MODE_IN : MODE_OUT;
}
