// SPDX-License-Identifier: GPL-2.0
/* The BPF program of `stealscope record --counters`: at each switch, prints instructions and cycles of the CPU into the
 * kernel's trace event bpf_trace_printk, which the recording contains. It is attached before the recorder enables
 * sched_switch, so its event precedes the sched_switch of the same CPU. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct counter_map {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(int));
	__uint(value_size, sizeof(int));
	__uint(max_entries, 1);  /* user space sets the CPU count */
};
struct counter_map instructions SEC(".maps"), cycles SEC(".maps");

/* Returns the value; 0: the counter does not count, or did not count all the time. */
static __always_inline unsigned long long counter_value(void *map)
{
	struct bpf_perf_event_value v = { 0 };
	return bpf_perf_event_read_value(map, BPF_F_CURRENT_CPU, &v, sizeof v) || v.enabled != v.running ? 0 : v.counter;
}

SEC("raw_tp/sched_switch")
int print_counters(void *ctx)
{
	static const char format[] = "stealscope counters %llu %llu";
	(void)ctx;
	bpf_trace_printk(format, sizeof format, counter_value(&instructions), counter_value(&cycles));
	return 0;
}
