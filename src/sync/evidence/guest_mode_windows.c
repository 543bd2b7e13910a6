/* Moments among the spans of a thread that runs a vCPU: is it in guest mode then, and is that known at all?  By bisection,
 * or at once where the guess of the one who asks is near. */
#include "sync/evidence/host_timeline.h"

#include "base/bisect.h"
#include "base/mem.h"

void span_push(struct span **array, size_t *len, size_t *cap, int64_t from, int64_t to)
{
	if (from > to)
		return;
	if (*len > 0 && (*array)[*len - 1].to >= from) {
		if ((*array)[*len - 1].to < to)
			(*array)[*len - 1].to = to;
		return;
	}
	*array = mem_room(*array, cap, *len, sizeof **array);
	(*array)[(*len)++] = (struct span){ from, to };
}

/* Number of spans with from <= t, found from a guess. */
static size_t spans_until(const struct span *s, size_t n, int64_t t, size_t guess)
{
	if (guess <= n && (guess == 0 || s[guess - 1].from <= t)) {
		for (int i = 0; i < 8; i++, guess++)
			if (guess == n || s[guess].from > t)
				return guess;
	}
	BISECT(guess, n, s[guess].from <= t);
	return guess;
}

size_t span_find(const struct span *s, size_t n, int64_t t)
{
	size_t at = spans_until(s, n, t, 0);
	return at > 0 && s[at - 1].to >= t ? at - 1 : at;
}

void vthread_hide(struct vthread *th, int64_t from, int64_t to)
{
	span_push(&th->blind, &th->blinds, &th->blind_cap, from, to);
}

bool vthread_blind(const struct vthread *th, int64_t from, int64_t to)
{
	if (th->blinds == 0)
		return false;
	size_t n = spans_until(th->blind, th->blinds, to, 0);
	return n > 0 && th->blind[n - 1].to >= from;
}

size_t vthread_windows(const struct vthread *th, int64_t t, size_t near)
{
	return spans_until(th->window, th->windows, t, near);
}

enum guest_mode vthread_mode(const struct vthread *th, int64_t t, size_t *near)
{
	if (vthread_blind(th, t, t))
		return MODE_BLIND;
	*near = spans_until(th->window, th->windows, t, *near);
	return *near > 0 && th->window[*near - 1].to >= t ? MODE_IN : MODE_OUT;
}
