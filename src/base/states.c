#include "base/states.h"

#define STATE_NAME(code, name, help) [code] = name,
const char *const vcpu_state_name[VCPU_STATE_COUNT] = { VCPU_STATES(STATE_NAME) };
const char *const thread_state_name[THREAD_STATE_COUNT] = { THREAD_STATES(STATE_NAME) };
#define REASON_NAME(code, name, meaning, label, words, clause, advice) [code] = name,
const char *const out_reason_name[OUT_REASON_COUNT] = { OUT_REASONS(REASON_NAME) };
#define REASON_ROW(code, name, meaning, label, words, clause, advice) [code] = { label, words, clause, advice },
const struct out_reason_row out_reason_row[OUT_REASON_COUNT + 1] = {
	OUT_REASONS(REASON_ROW)
	[OUT_REASON_COUNT] = { "limit", "a limit", "a limit kept %s off the CPU for %s", "find out what limits its CPU time" },
};
const char *const poll_outcome_name[POLL_OUTCOME_COUNT] = { POLL_OUTCOMES(STATE_NAME) };
const char *const pcpu_owner_name[PCPU_VM] = { OWNER_STATES(STATE_NAME) };
