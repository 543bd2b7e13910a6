/* The note table: all sentences that qualify an answer. The program, json output, the manual (stealscope-notes(7))
 * and the tests use it.
 *
 * X(CODE, "name", KIND, "text", "advice")
 *   CODE    NOTE_CODE in C
 *   name    name in json and csv; scripts depend on it, so it never changes
 *   KIND    NOTE_KIND_KIND: how the note limits answers (base/notes.h)
 *   text    printf format; note_text() prepends the machine
 *   advice  advice for the user; "": none */
#pragma once

/* Notes of src/trace/: reading traces */
#define TRACE_NOTES(X) \
	X(LOST_EVENTS, "lost-events", LOSS, "the tracer lost %llu of %llu events", "record with larger buffers") \
	X(INDEX_DAMAGED, "index-damaged", DAMAGE, "%s/index/%s.idx: damaged", "") \
	X(STREAM_UNREADABLE, "stream-unreadable", DAMAGE, "%s/%s: the stream cannot be decoded and is skipped: %s", "") \
	X(STREAM_TRUNCATED, "stream-truncated", DAMAGE, "%s/%s: truncated, bytes missing at the end: %llu", "") \
	X(DUPLICATE_TRACE, "duplicate-trace", INFO, "%s: skipped, it is a copy of %s", "") \
	X(STREAMS_EMPTY, "streams-empty", DAMAGE, "%s: empty streams: %zu; the first is %s", "") \
	X(STREAM_DATA_MISSING, "stream-data-missing", DAMAGE, \
	  "%s: the stream is %s, but its index exists: its events are missing", "") \
	X(LIVE_TRUNCATED, "live-truncated", DAMAGE, "%s: %s; later events are missing", "") \
	X(LIVE_STOPPED, "live-stopped", INFO, \
	  "reading stopped during the recording; the history ends with the data received until then", "") \
	X(UNCOUNTED_LOSSES, "uncounted-losses", LOSS, "losses of events that the tracer did not count: %llu", \
	  "record with larger buffers") \
	X(LOST_PACKETS, "lost-packets", LOSS, "packets missing from the trace: %llu", "") \
	X(UNTIMED_EVENTS, "untimed-events", LOSS, "events skipped because they have no usable time: %llu", "") \
	X(TOO_MANY_NAMES, "too-many-names", LOSS, "too many different names; some are skipped", "") \
	X(TRACE_EMPTY, "trace-empty", LOSS, "the trace in %s is empty: no event was recorded", "") \
	X(TRACE_SKIPPED, "trace-skipped", DAMAGE, "%s; skipped (%s)", "") \
	X(FILE_SKIPPED, "file-skipped", DAMAGE, "%s: %s; skipped (%s)", "") \
	X(PERF_CONVERTED, "perf-converted", INFO, "%s: not read, because its conversion to CTF is read", "remove one of both") \
	X(NO_LAYOUT, "no-layout", DAMAGE, "no layout describes the events of this trace", \
	  "name one with --layout, see stealscope-layout(5)") \
	X(STREAM_DAMAGED, "stream-damaged", DAMAGE, \
	  "stream %s is damaged, readable events before it: %llu; the rest of the %s was skipped: %s", "") \
	X(STREAM_DAMAGED_MORE, "stream-damaged-more", DAMAGE, "stream %s: more damaged parts, not listed: %zu", "") \
	X(CLOCK_BACKWARDS, "clock-backwards", CLOCK, "the clock went backwards; events whose time was raised: %llu", "") \
	X(CLOCK_SETBACK, "clock-setback", CLOCK, \
	  "the clock was set back, so %s of its time occur twice; what happened then is unknown", "") \
	X(CLOCK_LOCAL, "clock-local", CLOCK, \
	  "recorded with the clock 'local', which differs between CPUs; the order of events on different CPUs is uncertain", \
	  "record with -C mono") \
	X(CLOCK_PERF, "clock-perf", CLOCK, \
	  "recorded with perf's default clock, which may differ between CPUs and has no known real time", \
	  "record with perf record -k CLOCK_MONOTONIC") \
	X(TEXT_TRACE, "text-trace", INFO, \
	  "read from text: times have the precision of the text, often 1 us; arguments that the text lacks are unknown", \
	  "keep trace.dat, perf.data or the ring buffers for exact figures") \
	X(CLOCK_NOT_NS, "clock-not-ns", CLOCK, "recorded with the clock '%s', whose unit is not ns", "record with -C mono") \
	X(XENTRACE_CUT, "xentrace-cut", DAMAGE, "%s (byte %llu of %llu); the rest is skipped", \
	  "copy the file again after xentrace has finished") \
	X(XEN_NAMES_UNKNOWN, "xen-names-unknown", INFO, "no text beside the trace contains the names of the domains", \
	  "put the output of `xl list` into a file beside it, or index with --domain ID=NAME") \
	X(PERFETTO_DAMAGED, "perfetto-damaged", DAMAGE, \
	  "%llu damaged packets: %s (first at byte %llu of %llu); their events are skipped", \
	  "copy the file again after perfetto has finished") \
	X(PERFETTO_EXIT_REASONS, "perfetto-exit-reasons", INFO, \
	  "Perfetto does not record the reasons of VM exits on x86; guests without a trace are idle only while their vCPU " \
	  "threads sleep", "record the guests as well, or the host with stealscope record") \
	X(CLOCK_CORRECTED, "clock-corrected", INFO, "the tracer corrected the times to the host's clock", "") \

/* Notes of src/sync/: clocks, and matches of guests and VMs */
#define SYNC_NOTES(X) \
	X(IMPLAUSIBLE_TIMES, "implausible-times", CLOCK, \
	  "its times are implausible (more than 73 years from 1970, or a trace of more than ten years): not synchronized", \
	  "set the machine's clock before recording") \
	X(CLOCK_UNKNOWN, "clock-unknown", CLOCK, \
	  "clock not synchronized (%s), times are shown on the guest's own clock%s%s", "") \
	X(CLOCK_FROM_TIMERS, "clock-from-timers", CLOCK, \
	  "recorded in TSC cycles; times count from its boot (CLOCK_MONOTONIC), converted at %.6f MHz as its timers show", "") \
	X(CLOCK_FROM_HZ, "clock-from-hz", CLOCK, \
	  "recorded in TSC cycles; times count from the zero of its TSC, converted at %.6f MHz as given by the user", "") \
	X(CLOCK_FROM_RATE, "clock-from-rate", CLOCK, \
	  "recorded in TSC cycles; times count from the zero of its TSC, converted at %.6f MHz", "") \
	X(CLOCK_UNKNOWN_ALIGNED, "clock-unknown-aligned", CLOCK, \
	  "clock not synchronized (%s), times are shown as if its trace had begun with the host's%s%s", "") \
	X(VM_UNKNOWN, "vm-unknown", LIMIT, "not matched to a VM of the host (%s)%s%s", "") \
	X(NO_COMMON_TIME, "no-common-time", LIMIT, \
	  "by its clock its trace and the host's have no time in common and cannot be compared", \
	  "check its clock, and that the traces are of one recording") \
	X(LOW_CONTAINMENT, "low-containment", CLOCK, "only %.2f %% of its events are in guest mode of its vCPUs", \
	  "do not trust its clock") \
	X(CLOCK_CONTRADICTED, "clock-contradicted", CLOCK, \
	  "events outside guest mode beyond the error bounds of its clock: %llu, by up to %s, times there are wrong by an " \
	  "unknown amount", "record with the beacon") \
	X(CLOCK_PARTS_AMBIGUOUS, "clock-parts-ambiguous", CLOCK, \
	  "events outside guest mode: %llu, by up to %s, where other clocks fit as well, times there are wrong by an unknown " \
	  "amount", "record with the beacon") \
	X(STEP_NOT_EXCLUDED, "step-not-excluded", CLOCK, \
	  "its events do not exclude a clock step during the trace, after which times would be wrong by an unknown amount", \
	  "record with the beacon") \
	X(STEP_NOT_EXCLUDED_BEFORE, "step-not-excluded-before", CLOCK, \
	  "too few events before %s to exclude a clock step, times before are unverified", "record with the beacon") \
	X(STEP_NOT_EXCLUDED_AFTER, "step-not-excluded-after", CLOCK, \
	  "too few events after %s to exclude a clock step, times after are unverified", "record with the beacon") \
	X(CLOCK_AMBIGUOUS, "clock-ambiguous", CLOCK, \
	  "other clocks fit its events as well, times are right within the error bounds", "record with the beacon") \
	X(STEP_TIME_UNKNOWN, "step-time-unknown", CLOCK, \
	  "its clock stepped between %s and %s at an unknown time, times in between may be off by %s", "") \
	X(SETBACK_TIME_UNKNOWN, "setback-time-unknown", CLOCK, \
	  "its clock was set back between %s and %s at an unknown time, events in between are ambiguous", "") \
	X(TSC_CONTRADICTED, "tsc-contradicted", CLOCK, \
	  "by the TSC only %.2f %% of its events would be in guest mode: its clock is estimated by containment instead", "") \
	X(TSC_UNKNOWN, "tsc-unknown", CLOCK, \
	  "the TSC of the guest or of the host is unknown: its clock is estimated by containment instead", "") \
	X(PAIRS_IGNORED, "pairs-ignored", INFO, \
	  "synchronization pairs ignored because they contradict the others: %llu of %llu", "") \
	X(CLOCK_CHANGE, "clock-change", INFO, \
	  "its clock changes at %s (host, %lld ns guest time) by %s (%+lld ns, drift %+.3f -> %+.3f ppm): a pause, a step or " \
	  "another rate", "") \
	X(MANUAL_OFFSET, "manual-offset", INFO, "manual clock offset %+lld ns", "") \
	X(MANUAL_OFFSET_EFFECT, "manual-offset-effect", INFO, \
	  "manual clock offset %+lld ns: events in guest mode %.3f %% without it, %.3f %% with it (%+.3f)", "") \
	X(MANUAL_OFFSET_IGNORED, "manual-offset-ignored", INFO, \
	  "manual clock offset ignored: there is no synchronized clock to add it to", "") \
	X(NESTED_GUEST, "nested-guest", INFO, "runs inside %s", "") \
	X(VM_MIGRATED, "vm-migrated", INFO, "live migration from process %d to %d (%s) at %s (host), downtime %s", "") \
	X(VM_MAY_HAVE_MIGRATED, "vm-may-have-migrated", LIMIT, \
	  "does not run after %s (host), and process %d (%s) started to run later: it migrated there or is paused", \
	  "record the guest, or start both processes with the same -name guest=")

/* Notes of src/model/: states */
#define MODEL_NOTES(X) \
	X(CPU_STATE_LOST, "cpu-state-lost", LOSS, "events were lost: the state of its CPUs is unknown for %s of CPU time", \
	  "record with larger buffers") \
	X(CONTRADICTING_EVENTS, "contradicting-events", LOSS, \
	  "events that contradict the events before them: %llu (%s); other events are missing from the trace", "") \
	X(SELF_CHECK_FAILED, "self-check-failed", LIMIT, \
	  "stealscope may misread this trace: no event was lost, but events that contradict the states computed from it: " \
	  "%llu (%s)", "do not trust the states around them; report this trace as a defect of stealscope or its layout") \
	X(HIDDEN_THREADS, "hidden-threads", LIMIT, \
	  "the kernel hides the events of %zu threads (%s): %llu times one left its CPU unseen; when they ran or waited, and " \
	  "whom they woke, is unknown", "") \
	X(THROTTLED_MISSED, "throttled-missed", LIMIT, \
	  "group %s was throttled for %s by cpu.stat, for %s by the events: part of what others seem to have taken from it " \
	  "is its own quota's", "") \
	X(QUOTA_POSSIBLE, "quota-possible", LIMIT, \
	  "its vCPUs waited %s while others had their CPUs, %s of it until a timer that expires every %s, as with a CPU " \
	  "quota: its own limit may have taken part of the time that others seem to have taken", \
	  "record cpu.max and cpu.stat (stealscope record)") \
	X(GROUP_LIMIT_UNKNOWN, "group-limit-unknown", LIMIT, \
	  "control groups with unknown limits, created and removed during the recording: %zu (first: %s); their threads " \
	  "waited %s, and their own quotas may have taken part of it, although others seem to have taken it", \
	  "record where BPF loads: it shows each throttled thread") \
	X(THREADS_MOVED, "threads-moved", LIMIT, \
	  "threads that moved to another control group after more than %s: %zu (first: TID %d); group rows count all their " \
	  "time for the last group", "ask about the threads instead of the groups") \
	X(ENDS_WITHOUT_START, "ends-without-start", INFO, \
	  "probes recorded ends of requests without their start: %llu; they began before the recording, or no probe shows " \
	  "their start", "") \
	X(IDLE_UNKNOWN, "idle-unknown", LIMIT, \
	  "vCPUs that do not halt, but stop repeatedly at the same kernel address: %u; idle and running time " \
	  "cannot be distinguished there (idle=poll, or halts without VM exits)", "record the guest") \
	X(NO_STEAL_CLOCK, "no-steal-clock", LIMIT, \
	  "No host trace and no steal clock: time taken by the host is invisible here and counts as running", \
	  "record the host as well, or record in the guest with --guest-only") \
	X(MACHINE_KIND_UNKNOWN, "machine-kind-unknown", LIMIT, \
	  "The recording does not show whether this is a physical machine or a VM: time taken by a host would be invisible " \
	  "and count as running", "index it with --host if it is a physical machine, with --guest NAME=DIR if it is a VM") \
	X(VM_BY_THREAD, "vm-by-thread", LIMIT, \
	  "A thread with the name %s shows that this is a VM; without a host trace and a steal clock, time taken by the " \
	  "host is invisible here and counts as running", \
	  "record the host as well; index it with --host if it is a physical machine") \
	X(NO_STEAL_SOURCE, "no-steal-source", LIMIT, \
	  "No host trace and no steal clock: time taken by the host is invisible here and counts as running", \
	  "record the host as well: this guest offers no counter that index evaluates (its about.yaml lists the reasons)") \
	X(STEAL_CLOCK_CHECK, "steal-clock-check", INFO, \
	  "the steal clock of %s rose by %.1f ms, the host's trace shows %.1f ms", "") \
	X(COUNTERS_UNKNOWN, "counters-unknown", LIMIT, \
	  "hardware counters stood still or have impossible values in %.1f %% of the time (%s of CPU time), instructions per " \
	  "cycle are unknown there", "record fewer counters at a time") \
	X(STEAL_CLOCK_DIFFERS, "steal-clock-differs", LIMIT, \
	  "the steal clock of vCPU%u rose by %.1f ms, the host's trace shows %.1f ms (unknown: %.1f ms): its clock, its " \
	  "vCPU, or the host's trace is wrong", "compare the clock with stealscope sync --audit") \
	X(STEAL_UNPLACED, "steal-unplaced", LIMIT, \
	  "the steal clock shows %s that fit between no two events: they count as running", "") \
	X(NO_SCHEDULER_EVENTS, "no-scheduler-events", LIMIT, \
	  "its trace has no scheduler event: which threads ran, and which waited, is unknown", \
	  "record sched_switch, sched_waking and sched_wakeup") \
	X(NO_WAKEUPS, "no-wakeups", LIMIT, \
	  "its trace has no wakeups: if others had the CPU of a sleeping thread, it is unknown whether it slept or waited", \
	  "record sched_waking and sched_wakeup") \
	X(NO_WAKERS, "no-wakers", LIMIT, "its trace has no sched_waking: sleeps with an unknown waker: %llu", \
	  "record sched_waking") \
	X(CPUS_ASSUMED, "cpus-assumed", LIMIT, \
	  "its trace has neither sched_wakeup nor sched_migrate_task: %llu waits are assumed to be for the CPU on which the " \
	  "thread then ran, and for what ran there", "record sched_wakeup and sched_migrate_task") \
	X(CPU_BEGINS_LATE, "cpu-begins-late", LOSS, \
	  "the recording of CPU%u begins at %s (host), %s later than that of other CPUs: its state before is known only " \
	  "as far as the host's events show it", "") \
	X(CPU_ENDS_EARLY, "cpu-ends-early", LOSS, \
	  "the recording of CPU%u ends at %s (host), %s earlier than that of other CPUs: its state after is known only " \
	  "as far as the host's events show it", "") \
	X(CPUS_BEGIN_LATE, "cpus-begin-late", LOSS, \
	  "the recordings of %u CPUs begin later than that of the first one, by up to %s (CPU%u): their states before are " \
	  "known only as far as events of other CPUs show them", "") \
	X(CPUS_END_EARLY, "cpus-end-early", LOSS, \
	  "the recordings of %u CPUs end earlier than that of the last one, by up to %s (CPU%u): their states after are " \
	  "known only as far as events of other CPUs show them", "") \
	X(CPUS_NOT_RECORDED, "cpus-not-recorded", LOSS, \
	  "no events were recorded on %s%s, but threads moved there: what ran there is unknown, and the state of threads " \
	  "that were on none of the other CPUs, unless such a CPU woke them from sleep", "record all CPUs")

/* Notes of src/cli/, src/compare/ and src/latency/: reports */
#define REPORT_NOTES(X) \
	X(ROWS_OMITTED, "rows-omitted", INFO, "%llu of %llu %s shown", "raise --top") \
	X(NO_LOCK_EVENTS, "no-lock-events", LIMIT, "no lock events were recorded", \
	  "record lock:contention_begin and lock:contention_end (Linux 5.19), or the futex system calls") \
	X(NO_EXIT_EVENTS, "no-exit-events", LIMIT, "VM exits of %s are unknown", \
	  "record kvm_entry and kvm_exit on the host (LTTng: kvm_x86_entry, kvm_x86_exit)") \
	X(EXIT_TIMES_UNKNOWN, "exit-times-unknown", LIMIT, \
	  "the times of all VM exits are unknown: the trace contains no VM entries", "") \
	X(HYPERVISOR_SILENT, "hypervisor-silent", LIMIT, \
	  "%s %s are unknown: the trace of the hypervisor does not contain them", \
	  "") \
	X(NO_IDLE_VCPUS, "no-idle-vcpus", LIMIT, "no idle vCPU was recorded", \
	  "record kvm_entry, kvm_exit, sched_switch and sched_waking on the host") \
	X(WAKEUPS_UNKNOWN, "wakeups-unknown", LIMIT, \
	  "the wakeup reason of %s is unknown: no recorded event caused it, or events were lost", \
	  "record sched_waking and the events of interrupts, softirqs and timers on the host") \
	X(NO_HALT_POLLING_EVENTS, "no-halt-polling-events", LIMIT, "halt polling of %s is unknown", \
	  "record kvm_vcpu_wakeup and kvm_halt_poll_ns on the host") \
	X(HALT_POLLING_UNKNOWN, "halt-polling-unknown", LIMIT, \
	  "halt polling of %s is unknown for %s: before the first event kvm_halt_poll_ns", "") \
	X(PATH_UNKNOWN, "path-unknown", LIMIT, "%s of %s are unknown: no event shows the end of these waits", "") \
	X(PATH_UNTRACED, "path-untraced", LIMIT, "%s of %s are inside %s, which was not traced: its threads are unknown", \
	  "record that guest as well") \
	X(KERNEL_PREEMPTIONS, "kernel-preemptions", LIMIT, \
	  "preempted inside the guest's kernel: %s; candidates for lock-holder preemption, but held locks are unknown", "") \
	X(NO_INSTRUCTION_POINTERS, "no-instruction-pointers", LIMIT, "preempted instructions of %s are unknown", \
	  "record kvm_exit with guest_rip and isa, or vcpu_pc, on the host") \
	X(SYMBOLS_MISMATCH, "symbols-mismatch", LIMIT, \
	  "not found in the symbol file: %s; the file is from another kernel or another boot", "copy /proc/kallsyms again") \
	X(REPLAY_INACCURATE, "replay-inaccurate", LIMIT, \
	  "the replay reproduces only %.0f%% of the waits: its results are estimates", "") \
	X(REPLAY_WAIT_DIFFERS, "replay-wait-differs", LIMIT, \
	  "%s waited for a very different time than in the unchanged replay: its weight or allowed CPUs differ from the " \
	  "recorded ones (SCHED_IDLE, control groups); its results are estimates", "") \
	X(REPLAY_WEIGHTS_DIFFER, "replay-weights-differ", LIMIT, \
	  "wait lengths in the unchanged replay differ from the recorded ones: weights may differ from nice levels " \
	  "(SCHED_IDLE, control groups)", "") \
	X(REPLAY_WEIGHTS_UNTESTED, "replay-weights-untested", LIMIT, \
	  "relative weights of %s%s never mattered in this recording: they are taken from nice levels and may differ " \
	  "(SCHED_IDLE, control groups)", "") \
	X(REPLAY_PINNING_UNKNOWN, "replay-pinning-unknown", LIMIT, \
	  "results omitted: %zu, which depend on whether %s may leave the only CPU that each used in the recording", \
	  "add 'free TARGET' or 'pin TARGET -> CPUn' as a further change") \
	X(REPLAY_CORE_SHARED, "replay-core-shared", LIMIT, \
	  "CPU%u shares its core with CPU%u, which was busy for %.0f %% of the time (%s: %.0f %%); the replay does not slow " \
	  "down CPUs of a shared core", "choose a CPU of an idle core; stealscope steal --by core lists the users of cores") \
	X(REPLAY_TOO_UNCERTAIN, "replay-too-uncertain", LIMIT, \
	  "omitted as too uncertain (from no change to several times as much or as little): %s", "") \
	X(REQUESTS_OVERLOADED, "requests-overloaded", LIMIT, \
	  "%s: no latency estimate: if requests arrive at fixed times, %zu of %zu are unanswered at the end of the " \
	  "window, and a longer window would increase their latency", "") \
	X(REQUESTS_REORDERED, "requests-reordered", LIMIT, \
	  "%s: no estimate (%s): %.0f%% %s of the requests would overlap, and the order in which the guest would serve " \
	  "them is unknown", "") \
	X(REQUESTS_CLOSED_LOOP, "requests-closed-loop", LIMIT, \
	  "%s: its vCPU was runnable for %.0f%% of the time: results about its requests are valid only if each arrives " \
	  "after the previous answer", "") \
	X(REQUESTS_NOT_REPLAYED, "requests-not-replayed", LIMIT, \
	  "not replayed: %s; served outside the VMs of this host, or on an unknown vCPU", "") \
	X(REQUESTS_NOT_SPLIT, "requests-not-split", LIMIT, \
	  "latency of the requests of thread %d is not split by cause: too many switches", "") \
	X(REQUESTS_CUT, "requests-cut", INFO, \
	  "requests skipped because they begin or end outside the recording: %zu; its window: %s to %s", "") \
	X(REQUESTS_DROPPED, "requests-dropped", INFO, \
	  "requests skipped because no end was recorded: %zu; they failed, or events were lost", "") \
	X(REQUESTS_LOST_EVENTS, "requests-lost-events", LOSS, "unknown time, included in the upper bound: %s", "") \
	X(SPANS_UNPLACED, "spans-unplaced", LIMIT, \
	  "skipped because their attributes name no machine of the recording: %s; names in the spans: %s; machines: %s", \
	  "give --machine-of KEY=VALUE=MACHINE, or set host.name to the name of the machine") \
	X(SPANS_WITHOUT_CLOCK, "spans-without-clock", LIMIT, \
	  "skipped because the recording has no times since 1970 of their machine: %s", "") \
	X(SPANS_INCOMPLETE, "spans-incomplete", INFO, "skipped because an id, the start or the end is missing: %s", "") \
	X(SPANS_OF_MACHINE, "spans-of-machine", LIMIT, \
	  "process unknown, the upper bound includes the whole machine: %s", "set process.pid, outside of containers") \
	X(SPANS_WITHOUT_THREAD, "spans-without-thread", LIMIT, \
	  "lower bound 0, because no thread of the process ran under their thread.id: %s", \
	  "set thread.id to the kernel's TID") \
	X(SPANS_INTERLEAVED, "spans-interleaved", LIMIT, \
	  "lower bound 0, because the thread works for several spans in turns: %s", "") \
	X(SPANS_ASYNCHRONOUS, "spans-asynchronous", INFO, \
	  "not on the critical path, because their parent did not wait for them: %s", "") \
	X(SPANS_CLOCK_ERROR, "spans-clock-error", CLOCK, \
	  "bounds include the difference of the clocks of spans and trace, at most %s", \
	  "give --clock-error if it is known to be smaller") \
	X(MODEL_RANGE, "model-range", LIMIT, \
	  "outside the range of the model's training data (mostly %s): %s; predictions are unreliable", \
	  "train the model with such runs") \
	X(DIFF_NO_HOST, "diff-no-host", LIMIT, "no host trace in %s: its loss there is unknown", "") \
	X(DIFF_ONE_SIDE, "diff-one-side", LIMIT, "only in %s: its loss there cannot be compared", "") \
	X(DIFF_CPUS_CHANGED, "diff-cpus-changed", INFO, "number of %ss: %u, before %u", "") \
	X(DIFF_OVERLAP, "diff-overlap", LIMIT, "the windows overlap by %s: changes within the overlap are not visible", "")

#define NOTE_TABLE(X) TRACE_NOTES(X) SYNC_NOTES(X) MODEL_NOTES(X) REPORT_NOTES(X)
