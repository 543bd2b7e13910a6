/* Loads the BPF program that prints which threads are throttled (throttle.bpf.c). */
#include <errno.h>

#include <bpf/libbpf.h>

#include "base/base.h"
#include "live/bpf_maps.h"
#include "live/live.h"
#include "live/throttle_object.h"

#define PROGRAMS 3

struct throttle_program {
	struct bpf_object *object;
	struct bpf_link *link[PROGRAMS];
};

/* Loads the programs. with_calls: also the one for function calls of other CPUs, which only x86 has as an event. */
static int load(struct throttle_program *p, bool with_calls)
{
	p->object = bpf_object__open_mem(throttle_object, sizeof throttle_object, NULL);
	if (!p->object)
		return -errno;
	if (!with_calls)
		bpf_program__set_autoload(bpf_object__find_program_by_name(p->object, "at_call"), false);
	const int rc = bpf_object__load(p->object);
	if (rc) {
		bpf_object__close(p->object);
		p->object = NULL;
	}
	return rc;
}

struct throttle_program *throttle_program_open(struct error *err)
{
	/* The timer first: what a switch adds must be removable. */
	static const char *const name[PROGRAMS] = { "at_timer", "at_call", "at_switch" };
	struct throttle_program *p = mem_new(1, sizeof *p);
	bpf_quiet();
	bool with_calls = true;
	int rc = load(p, with_calls);
	if (rc)
		rc = load(p, with_calls = false);
	for (int i = 0; i < PROGRAMS && rc == 0; i++) {
		if (i == 1 && !with_calls)
			continue;
		p->link[i] = bpf_program__attach(bpf_object__find_program_by_name(p->object, name[i]));
		rc = p->link[i] ? 0 : -errno;
	}
	if (rc == 0)
		return p;
	throttle_program_close(p);
	errno = -rc;
	error_system(err, "this needs root and BPF", "loading the BPF program that shows throttled threads");
	return NULL;
}

void throttle_program_close(struct throttle_program *p)
{
	for (int i = PROGRAMS - 1; p && i >= 0; i--)
		bpf_link__destroy(p->link[i]);
	if (p)
		bpf_object__close(p->object);
	free(p);
}
