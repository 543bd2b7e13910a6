/* Reasons why a guest's clock or its VM is unknown. The columns are those of base/note_table.h:
 *
 * X(CODE, "name", "text", "advice")
 *   CODE    SYNC_REASON_CODE in C
 *   name    stable: tests and scripts may depend on it
 *   text    a clause without a subject's name; notes show it in parentheses
 *   advice  what the user can do; "": nothing */
#pragma once

#define SYNC_REASONS(X) \
	/* no trace to compare with */ \
	X(NO_HOST_TRACE, "no-host-trace", "no trace of its host: none contains kvm events", \
	  "add the trace of the host, recorded with kvm_entry and kvm_exit") \
	X(HOST_WITHOUT_KVM, "host-without-kvm", "the host's trace contains no kvm events", \
	  "record the host with kvm_entry and kvm_exit") \
	X(MAYBE_SWAPPED, "maybe-swapped", "it contains kvm events and the host's trace contains none: they may be swapped", \
	  "name the host's trace with --host") \
	X(NO_EVIDENCE, "no-evidence", "the trace contains no synchronization events, and no VM of the host is left for it", \
	  "check that the host was recorded while this VM ran") \
	X(DUPLICATE_TRACE, "duplicate-trace", "the same trace was given for another machine", "give each trace once") \
	/* reasons from containment */ \
	X(NO_OFFSET, "no-offset-fits", "no clock offset places its events in guest mode", \
	  "check that the traces are of one recording and that the VM did not migrate to another host") \
	X(FEW_EVENTS, "too-few-events", "the guest recorded too few events to distinguish the right clock offset from chance", \
	  "record longer, or with the beacon") \
	X(SEVERAL_OFFSETS, "several-offsets", "several clock offsets fit its events equally well", "record with the beacon") \
	X(PERIODIC_EVENTS, "periodic-events", "its events repeat periodically and several clock offsets may fit", \
	  "record with the beacon") \
	X(SEARCH_LIMIT, "search-limit", "the search for its clock was ended after the largest allowed amount of work", \
	  "record with the beacon, or for a shorter time") \
	/* reasons from synchronization events */ \
	X(EVENTS_DO_NOT_FIT, "events-do-not-fit", "its synchronization events do not fit those of the host", \
	  "check that the traces are of one recording") \
	/* reasons why the VM is unknown */ \
	X(SEVERAL_VMS, "several-vms", "it fits more than one VM", "name its vcpus in a session file") \
	X(OTHER_VM_BETTER, "other-vm-better", "it fits another VM better", "name its vcpus in a session file") \
	X(VM_TAKEN, "vm-taken", "the VM that it fits belongs to another guest", "name its vcpus in a session file") \
	X(VM_OF_OTHER_GUEST, "vm-of-other-guest", "that VM is proven to be another guest", "name its vcpus in a session file") \
	X(INSIDE_OTHER_GUEST, "inside-other-guest", "it is nested: a guest inside that VM runs it", "") \
	X(CIRCULAR_NESTING, "circular-nesting", "circular nesting: the VM's machine runs inside this guest", \
	  "name its parent in a session file") \
	/* reasons about a clock given by --sync or a session file */ \
	X(GIVEN_CLOCK_NO_BETTER, "given-clock-no-better", \
	  "with the given clock no more of its events are in guest mode than by chance", "check the given clock") \
	X(NO_OVERLAP, "no-overlap", "with the given clock its trace and the host's have no time in common", \
	  "check the given clock, and that the traces are of one recording") \
	X(UNCONFIRMED_CLOCK, "unconfirmed-clock", "only its clock is given, and no VM confirms it", \
	  "name its vcpus in a session file")
