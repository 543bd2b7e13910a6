#include "record/quota_samples.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "record/control_group.h"

#define PERIOD 100000000  /* ns */
#define STAT_BYTES 1024

struct quota_samples {
	struct sampled_group { int stat; size_t number; } *group;  /* stat: descriptor of its cpu.stat */
	size_t groups, cap;
	int marker;     /* descriptor of trace_marker */
	int64_t next;   /* monotonic time of the next sample, ns */
};

static void take_sample(struct quota_samples *s)
{
	for (size_t i = 0; i < s->groups; i++) {
		char text[STAT_BYTES];
		struct cgroup_stat stat;
		const ssize_t n = pread(s->group[i].stat, text, sizeof text - 1, 0);
		if (n <= 0)  /* the group was removed */
			continue;
		text[n] = '\0';
		cgroup_stat_parse(text, &stat);
		const int length = snprintf(text, sizeof text, "stealscope group %zu %" PRId64 "\n", s->group[i].number,
		                            stat.throttled_ns);
		if (write(s->marker, text, (size_t)length) < 0)
			continue;  /* the tracer is off */
	}
	s->next = now_ns() + PERIOD;
}

struct quota_samples *quota_samples_begin(const struct cgroups *groups, const char *root, const char *tracer)
{
	struct quota_samples *s = mem_new(1, sizeof *s);
	char *path = mem_printf("%s/trace_marker", tracer);
	s->marker = open(path, O_WRONLY | O_CLOEXEC);
	free(path);
	for (size_t number = 0; (path = cgroups_quota_file(groups, root, &number)); number++) {
		const int stat = open(path, O_RDONLY | O_CLOEXEC);
		free(path);
		if (stat >= 0)
			*ARRAY_PUSH(s->group, s->groups, s->cap) = (struct sampled_group){ .stat = stat, .number = number };
	}
	if (s->groups && s->marker >= 0) {
		take_sample(s);
		return s;
	}
	for (size_t i = 0; i < s->groups; i++)
		close(s->group[i].stat);
	s->groups = 0;
	quota_samples_end(s);
	return NULL;
}

void quota_samples_tick(struct quota_samples *s)
{
	if (s && now_ns() >= s->next)
		take_sample(s);
}

void quota_samples_end(struct quota_samples *s)
{
	if (!s)
		return;
	if (s->groups)
		take_sample(s);
	for (size_t i = 0; i < s->groups; i++)
		close(s->group[i].stat);
	if (s->marker >= 0)
		close(s->marker);
	free(s->group);
	free(s);
}
