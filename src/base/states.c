#include "base/states.h"

#define STATE_NAME(code, name, help) [code] = name,
const char *const vcpu_state_name[VCPU_STATE_COUNT] = { VCPU_STATES(STATE_NAME) };
const char *const thread_state_name[THREAD_STATE_COUNT] = { THREAD_STATES(STATE_NAME) };
const char *const out_reason_name[OUT_REASON_COUNT] = { OUT_REASONS(STATE_NAME) };
const char *const poll_outcome_name[POLL_OUTCOME_COUNT] = { POLL_OUTCOMES(STATE_NAME) };
const char *const pcpu_owner_name[PCPU_VM] = { OWNER_STATES(STATE_NAME) };
