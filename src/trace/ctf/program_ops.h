/* Operations of the programs that decode CTF structures (program.h). */
#pragma once

#include "trace/ctf/program.h"

#define CTF_OPS(X) \
	X(OP_BLOCK)       /* block of n bits; the following operations use offsets in the block */ \
	X(OP_U8) X(OP_S8) \
	X(OP_LE_U16) X(OP_LE_U32) X(OP_LE_64) X(OP_LE_S16) X(OP_LE_S32) \
	X(OP_BE_U16) X(OP_BE_U32) X(OP_BE_64) X(OP_BE_S16) X(OP_BE_S32) \
	X(OP_BITS)        /* integer of any size at any bit offset */ \
	X(OP_LEB128)    /* LEB128 integer at a byte boundary */ \
	X(OP_CHARACTERS)  /* string of n bytes */ \
	X(OP_UPDATE_CLOCK)        /* extends the timestamp of `size` bits in the slot */ \
	X(OP_SET_CLASS)       /* stores the event class id in the slot */ \
	X(OP_ALIGN)       /* advance to a multiple of n bits */ \
	X(OP_STRING)      /* NUL-terminated string */ \
	X(OP_ARRAY)       /* elements of n bits each; control_slot contains their number */ \
	X(OP_REPEAT)      /* repeat the operations before op + skip: n times, or the number in control_slot */ \
	X(OP_VARIANT)     /* jump to the option that the value in control_slot selects */ \
	X(OP_JUMP)        /* jump to op + skip */

#define CTF_CODE(code) code,
enum ctf_code { CTF_OPS(CTF_CODE) };
#undef CTF_CODE

struct ctf_option {
	uint64_t lower, upper;  /* range of selector values for this option */
	uint32_t skip;
};

struct ctf_op {
	enum ctf_code code;
	uint8_t size;  /* bits */
	bool is_signed, is_big;
	uint32_t slot, control_slot, skip;
	uint64_t offset, n;  /* bits; OP_REPEAT: n elements, OP_CHARACTERS: n bytes */
	struct ctf_option *option;
	size_t options, options_cap;
};
