/* What programs are made of. */
#ifndef STEALSCOPE_TRACE_CTF_PROGRAM_OPS_H
#define STEALSCOPE_TRACE_CTF_PROGRAM_OPS_H

#include "trace/ctf/program.h"

#define CTF_OPS(X) \
	X(OP_BLOCK)       /* n bits lie here: what reads of it says its offset in it */ \
	X(OP_U8) X(OP_S8) \
	X(OP_LE_U16) X(OP_LE_U32) X(OP_LE_64) X(OP_LE_S16) X(OP_LE_S32) \
	X(OP_BE_U16) X(OP_BE_U32) X(OP_BE_64) X(OP_BE_S16) X(OP_BE_S32) \
	X(OP_BITS)        /* any integer */ \
	X(OP_VARIABLE)    /* an integer of seven bits a byte (LEB128), at a byte */ \
	X(OP_CHARACTERS)  /* a text of n bytes */ \
	X(OP_TIME)        /* the slot's value is one, of `size` bits */ \
	X(OP_CLASS)       /* the slot's value is the event's class */ \
	X(OP_ALIGN)       /* to n bits */ \
	X(OP_STRING)      /* up to a zero byte */ \
	X(OP_ARRAY)       /* as many elements as the teller says, of n bits each */ \
	X(OP_REPEAT)      /* as many times as the teller says, or n: the operations up to op + skip */ \
	X(OP_VARIANT)     /* goes to the option that the teller says */ \
	X(OP_JUMP)        /* to op + skip */

#define CTF_CODE(code) code,
enum ctf_code { CTF_OPS(CTF_CODE) };
#undef CTF_CODE

struct ctf_option {
	uint64_t lower, upper;  /* of the teller's value */
	uint32_t skip;
};

struct ctf_op {
	enum ctf_code code;
	uint8_t size;                 /* bits */
	bool is_signed, is_big;
	uint32_t slot, teller, skip;
	uint64_t offset, n;           /* bits, but for OP_REPEAT and OP_CHARACTERS */
	struct ctf_option *option;
	size_t options, options_cap;
};

#endif
