#include "model/state/exit_reasons.h"

#include "base/base.h"

struct reason {
	uint32_t code;
	const char *name;
};

/* Intel: basic exit reasons (SDM volume 3, appendix C), named as in the kernel's asm/vmx.h. */
static const struct reason vmx[] = {
	{ 0, "EXCEPTION_NMI" }, { 1, "EXTERNAL_INTERRUPT" }, { 2, "TRIPLE_FAULT" }, { 3, "INIT_SIGNAL" },
	{ 4, "SIPI_SIGNAL" }, { 7, "INTERRUPT_WINDOW" }, { 8, "NMI_WINDOW" }, { 9, "TASK_SWITCH" },
	{ 10, "CPUID" }, { 12, "HLT" }, { 13, "INVD" }, { 14, "INVLPG" }, { 15, "RDPMC" }, { 16, "RDTSC" },
	{ 18, "VMCALL" }, { 19, "VMCLEAR" }, { 20, "VMLAUNCH" }, { 21, "VMPTRLD" }, { 22, "VMPTRST" },
	{ 23, "VMREAD" }, { 24, "VMRESUME" }, { 25, "VMWRITE" }, { 26, "VMOFF" }, { 27, "VMON" },
	{ 28, "CR_ACCESS" }, { 29, "DR_ACCESS" }, { 30, "IO_INSTRUCTION" }, { 31, "MSR_READ" },
	{ 32, "MSR_WRITE" }, { 33, "INVALID_STATE" }, { 34, "MSR_LOAD_FAIL" }, { 36, "MWAIT_INSTRUCTION" },
	{ 37, "MONITOR_TRAP_FLAG" }, { 39, "MONITOR_INSTRUCTION" }, { 40, "PAUSE_INSTRUCTION" },
	{ 41, "MCE_DURING_VMENTRY" }, { 43, "TPR_BELOW_THRESHOLD" }, { 44, "APIC_ACCESS" }, { 45, "EOI_INDUCED" },
	{ 46, "GDTR_IDTR" }, { 47, "LDTR_TR" }, { 48, "EPT_VIOLATION" }, { 49, "EPT_MISCONFIG" },
	{ 50, "INVEPT" }, { 51, "RDTSCP" }, { 52, "PREEMPTION_TIMER" }, { 53, "INVVPID" }, { 54, "WBINVD" },
	{ 55, "XSETBV" }, { 56, "APIC_WRITE" }, { 57, "RDRAND" }, { 58, "INVPCID" }, { 59, "VMFUNC" },
	{ 60, "ENCLS" }, { 61, "RDSEED" }, { 62, "PML_FULL" }, { 63, "XSAVES" }, { 64, "XRSTORS" },
	{ 67, "UMWAIT" }, { 68, "TPAUSE" }, { 74, "BUS_LOCK" }, { 75, "NOTIFY" },
};

/* AMD: exit codes (APM volume 2, appendix C), named as in the kernel's asm/svm.h. */
static const struct reason svm[] = {
	{ 0x0, "read_cr0" }, { 0x2, "read_cr2" }, { 0x3, "read_cr3" }, { 0x4, "read_cr4" }, { 0x8, "read_cr8" },
	{ 0x10, "write_cr0" }, { 0x12, "write_cr2" }, { 0x13, "write_cr3" }, { 0x14, "write_cr4" },
	{ 0x18, "write_cr8" }, { 0x20, "read_dr0" }, { 0x21, "read_dr1" }, { 0x22, "read_dr2" },
	{ 0x23, "read_dr3" }, { 0x24, "read_dr4" }, { 0x25, "read_dr5" }, { 0x26, "read_dr6" },
	{ 0x27, "read_dr7" }, { 0x30, "write_dr0" }, { 0x31, "write_dr1" }, { 0x32, "write_dr2" },
	{ 0x33, "write_dr3" }, { 0x34, "write_dr4" }, { 0x35, "write_dr5" }, { 0x36, "write_dr6" },
	{ 0x37, "write_dr7" }, { 0x40, "DE excp" }, { 0x41, "DB excp" }, { 0x43, "BP excp" }, { 0x44, "OF excp" },
	{ 0x45, "BR excp" }, { 0x46, "UD excp" }, { 0x47, "NM excp" }, { 0x48, "DF excp" }, { 0x4a, "TS excp" },
	{ 0x4b, "NP excp" }, { 0x4c, "SS excp" }, { 0x4d, "GP excp" }, { 0x4e, "PF excp" }, { 0x50, "MF excp" },
	{ 0x51, "AC excp" }, { 0x52, "MC excp" }, { 0x53, "XF excp" }, { 0x60, "interrupt" }, { 0x61, "nmi" },
	{ 0x62, "smi" }, { 0x63, "init" }, { 0x64, "vintr" }, { 0x65, "cr0_sel_write" }, { 0x66, "read_idtr" },
	{ 0x67, "read_gdtr" }, { 0x68, "read_ldtr" }, { 0x69, "read_rt" }, { 0x6a, "write_idtr" },
	{ 0x6b, "write_gdtr" }, { 0x6c, "write_ldtr" }, { 0x6d, "write_rt" }, { 0x6e, "rdtsc" },
	{ 0x6f, "rdpmc" }, { 0x70, "pushf" }, { 0x71, "popf" }, { 0x72, "cpuid" }, { 0x73, "rsm" },
	{ 0x74, "iret" }, { 0x75, "swint" }, { 0x76, "invd" }, { 0x77, "pause" }, { 0x78, "hlt" },
	{ 0x79, "invlpg" }, { 0x7a, "invlpga" }, { 0x7b, "io" }, { 0x7c, "msr" }, { 0x7d, "task_switch" },
	{ 0x7e, "ferr_freeze" }, { 0x7f, "shutdown" }, { 0x80, "vmrun" }, { 0x81, "hypercall" },
	{ 0x82, "vmload" }, { 0x83, "vmsave" }, { 0x84, "stgi" }, { 0x85, "clgi" }, { 0x86, "skinit" },
	{ 0x87, "rdtscp" }, { 0x88, "icebp" }, { 0x89, "wbinvd" }, { 0x8a, "monitor" }, { 0x8b, "mwait" },
	{ 0x8d, "xsetbv" }, { 0x8f, "write_efer_trap" }, { 0x90, "write_cr0_trap" }, { 0x94, "write_cr4_trap" },
	{ 0x98, "write_cr8_trap" }, { 0xa2, "invpcid" }, { 0x400, "npf" }, { 0x401, "avic_incomplete_ipi" },
	{ 0x402, "avic_unaccelerated_access" }, { 0x403, "vmgexit" }, { 0x80000001, "vmgexit_mmio_read" },
	{ 0x80000002, "vmgexit_mmio_write" }, { 0x80000003, "vmgexit_nmi_complete" },
	{ 0x80000004, "vmgexit_ap_hlt_loop" }, { 0x80000005, "vmgexit_ap_jump_table" },
	{ 0x80000010, "vmgexit_page_state_change" }, { 0x80000011, "vmgexit_guest_request" },
	{ 0x80000012, "vmgexit_ext_guest_request" }, { 0x80000013, "vmgexit_ap_creation" },
	{ 0x8000fffd, "vmgexit_hypervisor_feature" }, { 0xffffffff, "invalid_guest_state" },
};

/* arm64: exception classes of a trap (ESR_EL2.EC), named as in the kernel's asm/esr.h. */
static const struct reason arm[] = {
	{ 0x00, "UNKNOWN" }, { 0x01, "WFx" }, { 0x03, "CP15_32" }, { 0x04, "CP15_64" }, { 0x05, "CP14_MR" },
	{ 0x06, "CP14_LS" }, { 0x07, "FP_ASIMD" }, { 0x08, "CP10_ID" }, { 0x09, "PAC" }, { 0x0c, "CP14_64" },
	{ 0x0d, "BTI" }, { 0x0e, "ILL" }, { 0x11, "SVC32" }, { 0x12, "HVC32" }, { 0x13, "SMC32" },
	{ 0x15, "SVC64" }, { 0x16, "HVC64" }, { 0x17, "SMC64" }, { 0x18, "SYS64" }, { 0x19, "SVE" },
	{ 0x1a, "ERET" }, { 0x1c, "FPAC" }, { 0x1d, "SME" }, { 0x1f, "IMP_DEF" }, { 0x20, "IABT_LOW" },
	{ 0x21, "IABT_CUR" }, { 0x22, "PC_ALIGN" }, { 0x24, "DABT_LOW" }, { 0x25, "DABT_CUR" },
	{ 0x26, "SP_ALIGN" }, { 0x27, "MOPS" }, { 0x28, "FP_EXC32" }, { 0x2c, "FP_EXC64" }, { 0x2f, "SERROR" },
	{ 0x30, "BREAKPT_LOW" }, { 0x31, "BREAKPT_CUR" }, { 0x32, "SOFTSTP_LOW" }, { 0x33, "SOFTSTP_CUR" },
	{ 0x34, "WATCHPT_LOW" }, { 0x35, "WATCHPT_CUR" }, { 0x38, "BKPT32" }, { 0x3a, "VECTOR32" },
	{ 0x3c, "BRK64" },
};

/* arm64: other exit causes (the kernel's ARM_EXCEPTION_*). */
static const struct reason arm_other[] = { { 0, "IRQ" }, { 1, "SERROR" }, { 3, "IL" }, { 4, "HYP_GONE" } };

/* Xen: hypercalls of paravirtualized guests, as numbered in Xen's public ABI. */
#define CALL(number, name) { XEN_PV_HYPERCALL + (number), "hypercall " name }
static const struct reason xen_pv[] = {
	CALL(0, "set_trap_table"), CALL(1, "mmu_update"), CALL(2, "set_gdt"), CALL(3, "stack_switch"),
	CALL(4, "set_callbacks"), CALL(5, "fpu_taskswitch"), CALL(6, "sched_op_compat"), CALL(7, "platform_op"),
	CALL(8, "set_debugreg"), CALL(9, "get_debugreg"), CALL(10, "update_descriptor"), CALL(12, "memory_op"),
	CALL(13, "multicall"), CALL(14, "update_va_mapping"), CALL(15, "set_timer_op"),
	CALL(16, "event_channel_op_compat"), CALL(17, "xen_version"), CALL(18, "console_io"),
	CALL(19, "physdev_op_compat"), CALL(20, "grant_table_op"), CALL(21, "vm_assist"),
	CALL(22, "update_va_mapping_otherdomain"), CALL(23, "iret"), CALL(24, "vcpu_op"), CALL(25, "set_segment_base"),
	CALL(26, "mmuext_op"), CALL(27, "xsm_op"), CALL(28, "nmi_op"), CALL(29, "sched_op"), CALL(30, "callback_op"),
	CALL(31, "xenoprof_op"), CALL(32, "event_channel_op"), CALL(33, "physdev_op"), CALL(34, "hvm_op"),
	CALL(35, "sysctl"), CALL(36, "domctl"), CALL(37, "kexec_op"), CALL(38, "tmem_op"), CALL(39, "argo_op"),
	CALL(40, "xenpmu_op"), CALL(41, "dm_op"), CALL(42, "hypfs_op"),
	{ XEN_PV_PAGE_FAULT, "page fault" }, { XEN_PV_INVALID_OP, "forced invalid instruction" },
	{ XEN_PV_PRIVILEGED_OP, "privileged instruction" }, { XEN_PV_FPU_RESTORE, "FPU restore" },
	{ XEN_PV_PAGING_FIXUP, "paging fixup" }, { XEN_PV_DESCRIPTOR_FAULT, "descriptor table fault" },
	{ XEN_PV_PAGE_TABLE_WRITE, "page table write" },
};
#undef CALL

static const uint8_t vmx_traits[] = {
	[0] = EXIT_INTERRUPT, [1] = EXIT_INTERRUPT, [7] = EXIT_INTERRUPT | EXIT_WINDOW, [8] = EXIT_INTERRUPT | EXIT_WINDOW,
	[12] = EXIT_HALT, [18] = EXIT_CALL, [32] = EXIT_TIMER, [44] = EXIT_TIMER, [48] = EXIT_MEMORY, [52] = EXIT_INTERRUPT,
	[56] = EXIT_TIMER,
};
static const uint8_t svm_traits[] = {
	[0x60] = EXIT_INTERRUPT, [0x61] = EXIT_INTERRUPT, [0x62] = EXIT_INTERRUPT, [0x63] = EXIT_INTERRUPT,
	[0x64] = EXIT_INTERRUPT | EXIT_WINDOW, [0x78] = EXIT_HALT, [0x7c] = EXIT_TIMER, [0x81] = EXIT_CALL,
	[0x400] = EXIT_MEMORY, [0x402] = EXIT_TIMER,
};
static const uint8_t arm_traits[] = {
	[0x01] = EXIT_HALT, [0x12] = EXIT_CALL, [0x16] = EXIT_CALL, [0x20] = EXIT_MEMORY, [0x24] = EXIT_MEMORY,
};
const struct exit_traits exit_traits[] = {
	[ISA_UNKNOWN] = { NULL, 0 }, [ISA_VMX] = { vmx_traits, sizeof vmx_traits },
	[ISA_SVM] = { svm_traits, sizeof svm_traits }, [ISA_ARM64] = { arm_traits, sizeof arm_traits },
	[ISA_XEN_PV] = { NULL, 0 },
};

static const char *find_reason(const struct reason *r, size_t n, uint32_t code)
{
	while (n && r->code != code)
		r++, n--;
	return n ? r->name : NULL;
}
#define FIND_REASON(table, code) find_reason(table, sizeof table / sizeof *table, code)

const char *isa_name(enum isa isa)
{
	static const char *const name[] = { "unknown", "VMX", "SVM", "arm64", "Xen PV" };
	return name[isa];
}

const char *exit_name(const struct event *ev, char buf[EXIT_NAME])
{
	const bool is_xen_call = exit_is_xen_call(ev);
	uint32_t code = is_xen_call ? XEN_PV_HYPERCALL + (uint32_t)ev->vcpu_exit.ret : (uint32_t)ev->vcpu_exit.reason;
	const enum isa isa = is_xen_call ? ISA_XEN_PV : exit_isa(ev);
	const char *name = NULL;
	if (ev->vcpu_exit.reason == EVENT_ABSENT && ev->vcpu_exit.ret == EVENT_ABSENT)
		return "unknown";
	switch (isa) {
	case ISA_VMX:
		name = FIND_REASON(vmx, code);
		break;
	case ISA_SVM:
		name = FIND_REASON(svm, code);
		break;
	case ISA_ARM64:
		if (ev->vcpu_exit.ret != ARM_TRAP) {
			code = (uint32_t)ev->vcpu_exit.ret;
			name = FIND_REASON(arm_other, code);
		} else {
			name = FIND_REASON(arm, code);
		}
		break;
	case ISA_XEN_PV:
		name = FIND_REASON(xen_pv, code);
		break;
	case ISA_UNKNOWN:
		break;
	}
	if (name)
		return name;
	if (isa == ISA_XEN_PV && code >= XEN_PV_HYPERCALL)
		snprintf(buf, EXIT_NAME, "hypercall %" PRIu32, code - XEN_PV_HYPERCALL);
	else if (isa == ISA_XEN_PV && code >= XEN_PV_TRAP && code < XEN_PV_PAGE_FAULT)
		snprintf(buf, EXIT_NAME, "trap %" PRIu32, code - XEN_PV_TRAP);
	else
		snprintf(buf, EXIT_NAME, "%" PRIu32, code);
	return buf;
}

int64_t exit_kernel_address(const struct event *ev)
{
	/* Ends of the two halves of the address space for the largest page tables: 5 levels, or 52 bits. */
	static const struct { uint64_t kernel, user; } from[] = {
		[ISA_VMX] = { UINT64_C(0xff) << 56, UINT64_C(1) << 56 }, [ISA_SVM] = { UINT64_C(0xff) << 56, UINT64_C(1) << 56 },
		[ISA_ARM64] = { UINT64_C(0xfff) << 52, UINT64_C(1) << 52 },
	};
	const enum isa isa = exit_isa(ev);
	const uint64_t ip = (uint64_t)ev->vcpu_exit.ip;
	if (ev->vcpu_exit.ip == EVENT_ABSENT || isa == ISA_UNKNOWN || isa == ISA_XEN_PV)
		return EVENT_ABSENT;
	return ip >= from[isa].kernel ? ev->vcpu_exit.ip : ip < from[isa].user ? 0 : EVENT_ABSENT;
}
