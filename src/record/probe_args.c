/* Arguments of functions and static probes as fetch arguments of tracefs. */
#include <elf.h>

#include "base/base.h"
#include "record/elf_probes.h"

#define ARGS_MAX 16  /* most arguments of a static probe */
#define WORD_MAX 80  /* maximum length of one of them */

/* Registers of function arguments by the machine's calling convention, in the names of tracefs. */
static const struct { unsigned machine; const char *reg[8]; } conventions[] = {
	{ EM_X86_64, { "%di", "%si", "%dx", "%cx", "%r8", "%r9" } },
	{ EM_AARCH64, { "%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7" } },
	{ EM_RISCV, { "%a0", "%a1", "%a2", "%a3", "%a4", "%a5", "%a6", "%a7" } },
};

static const char *function_arg(unsigned machine, unsigned n)
{
	for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++)
		if (conventions[i].machine == machine && n >= 1 && n <= 8)
			return conventions[i].reg[n - 1];
	return NULL;
}

/* Returns the name in tracefs of an x86 register such as rax, eax, ax, al, r8d; NULL: unknown. The first three columns of
 * the table are names of 64, 32 and 16 bits. */
static const char *x86_register(const char *name)
{
	static const char *const regs[][4] = {
		{ "rax", "eax", "ax", "al" }, { "rbx", "ebx", "bx", "bl" }, { "rcx", "ecx", "cx", "cl" },
		{ "rdx", "edx", "dx", "dl" }, { "rsi", "esi", "si", "sil" }, { "rdi", "edi", "di", "dil" },
		{ "rbp", "ebp", "bp", "bpl" }, { "rsp", "esp", "sp", "spl" },
		{ "r8", "r8d", "r8w", "r8b" }, { "r9", "r9d", "r9w", "r9b" }, { "r10", "r10d", "r10w", "r10b" },
		{ "r11", "r11d", "r11w", "r11b" }, { "r12", "r12d", "r12w", "r12b" }, { "r13", "r13d", "r13w", "r13b" },
		{ "r14", "r14d", "r14w", "r14b" }, { "r15", "r15d", "r15w", "r15b" },
	};
	for (size_t i = 0; i < sizeof regs / sizeof *regs; i++)
		for (size_t k = 0; k < 4; k++)
			if (strcmp(regs[i][k], name) == 0)
				return i < 8 ? regs[i][2] : regs[i][0];
	return NULL;
}

static bool is_number(const char *s)
{
	s += *s == '-' || *s == '+';
	return *s && strspn(s, "0123456789") == strlen(s) && strlen(s) < 20;
}

/* Formats a value of memory: "+8(%ax)". */
static char *memory_arg(const char *offset, const char *reg)
{
	const char *sign = *offset == '-' || *offset == '+' ? "" : "+";
	return mem_printf("%s%s(%%%s)", sign, *offset ? offset : "0", reg);
}

/* x86: "%rbx", "$5", "-16(%rbp)", "(%rax)". */
static char *x86_operand(const char *text)
{
	char offset[24] = "", reg[8] = "";
	int used = 0;
	const char *name;
	if (*text == '$' && is_number(text + 1))
		return mem_printf("\\%s", text + 1);
	if (*text == '%' && (name = x86_register(text + 1)) != NULL)
		return mem_printf("%%%s", name);
	const char *memory = text + strspn(text, "+-0123456789");
	if (memory - text >= (ptrdiff_t)sizeof offset || sscanf(memory, "(%%%7[a-z0-9])%n", reg, &used) != 1 || !used ||
	    memory[used])
		return NULL;
	memcpy(offset, text, (size_t)(memory - text));
	name = x86_register(reg);
	return name && (!*offset || is_number(offset)) ? memory_arg(offset, name) : NULL;
}

static bool is_arm_register(const char *name)
{
	const char *digits = name + (*name == 'x' || *name == 'w');
	return strcmp(name, "sp") == 0 || (digits > name && is_number(digits) && atoi(digits) <= 30);
}

/* arm64: "x0", "w3", "5", "[sp, 16]", "[x29]". */
static char *arm_operand(const char *text)
{
	char offset[24] = "", reg[8] = "";
	int used = 0;
	if (is_number(text))
		return mem_printf("\\%s", text);
	if (is_arm_register(text))
		return *text == 's' ? mem_dup("%sp") : mem_printf("%%x%s", text + 1);
	if (sscanf(text, "[%7[a-z0-9]%n", reg, &used) != 1 || !is_arm_register(reg) || *reg == 'w')
		return NULL;
	const char *rest = text + used;
	if (*rest == ',' && (sscanf(rest, ", %23[-0-9]%n", offset, &used) != 1 || !is_number(offset)))
		return NULL;
	if (strcmp(*rest == ',' ? rest + used : rest, "]") != 0)
		return NULL;
	return memory_arg(offset, reg);
}

/* Finds word n (from 1) of the arguments; spaces within brackets do not separate words. */
static bool find_word(const char *args, unsigned n, char word[WORD_MAX])
{
	for (unsigned i = 1; i <= ARGS_MAX; i++) {
		size_t len = 0;
		bool inside = false;
		args += strspn(args, " ");
		for (; args[len] && (inside || args[len] != ' '); len++)
			inside = args[len] == '[' || (inside && args[len] != ']');
		if (!len)
			return false;
		if (i == n && len < WORD_MAX) {
			memcpy(word, args, len);
			word[len] = '\0';
			return true;
		}
		args += len;
	}
	return false;
}

/* Converts "SIZE@OPERAND"; the size is negative for signed values. */
static char *probe_operand(unsigned machine, const char *word)
{
	int size = 0, used = 0;
	if (sscanf(word, "%2d@%n", &size, &used) != 1 || !used || (size != 1 && size != 2 && size != 4 && size != 8 &&
	    size != -1 && size != -2 && size != -4 && size != -8))
		return NULL;
	char *operand = machine == EM_X86_64 ? x86_operand(word + used)
	              : machine == EM_AARCH64 ? arm_operand(word + used) : NULL;
	if (!operand)
		return NULL;
	char *out = mem_printf("%s:%c%d", operand, size < 0 ? 's' : 'u', 8 * abs(size));
	free(operand);
	return out;
}

char *elf_place_arg(const struct elf_places *p, const struct elf_place *place, unsigned n, struct error *err)
{
	if (!place->args) {
		const char *reg = function_arg(p->machine, n);
		if (reg)
			return mem_printf("%s:u64", reg);
		error_set(err, STATUS_INPUT, NULL, "%s: argument %u cannot be read on this machine", place->name, n);
		return NULL;
	}
	char word[WORD_MAX];
	if (!find_word(place->args, n, word)) {
		error_set(err, STATUS_INPUT, "see --list-requests", "%s: the probe has no argument %u", place->name, n);
		return NULL;
	}
	char *out = probe_operand(p->machine, word);
	if (!out)
		error_set(err, STATUS_INPUT, NULL, "%s: the kernel cannot read argument %u", place->name, n);
	return out;
}
