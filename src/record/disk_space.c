#include "record/disk_space.h"

#include "base/number.h"

/* Returns the bytes that a guest may record in `duration` ns, from the rate that it measured; at most 10^15. */
static uint64_t expected_bytes(const struct guest *g, int64_t duration)
{
	const double bytes = (double)g->rate * 1024 * (double)g->vm->vcpus * (double)duration / NS_PER_S;
	return g->state < GUEST_READY || !guest_is_open(g) ? 0 : bytes < 1e15 ? (uint64_t)bytes : (uint64_t)1e15;
}

uint64_t disk_space_buffered(const struct participants *p)
{
	const struct forecast *f = &p->host.forecast;
	const uint64_t own = f->complete ? f->bytes : 2 * f->rate, size = f->kilobytes * 1024 * f->cpus;
	uint64_t bytes = own < size ? own : size;
	for (size_t i = 0; i < p->vms; i++) {
		const uint64_t expected = expected_bytes(p->guest[i], 2 * NS_PER_S);
		const uint64_t held = p->guest[i]->kilobytes * 1024 * p->vm[i].vcpus;
		bytes += expected < held ? expected : held;
	}
	return bytes;
}

uint64_t disk_space_select_guests(const struct participants *p, int64_t duration, uint64_t available)
{
	for (;;) {
		struct guest *largest = NULL;
		uint64_t sum = 0, max = 0;
		for (size_t i = 0; i < p->vms; i++) {
			const uint64_t bytes = expected_bytes(p->guest[i], duration);
			sum += bytes;
			if (bytes > max) {
				max = bytes;
				largest = p->guest[i];
			}
		}
		if (sum <= available || !largest)
			return sum;
		guest_fail(largest, "use a shorter -t, or -o on another disk",
		           "too little disk space: the guest expects to record about %llu MB; %llu MB are available",
		           (unsigned long long)(max >> 20) + 1, (unsigned long long)(available >> 20));
	}
}
