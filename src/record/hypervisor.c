#include "record/hypervisor.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/json_field.h"
#include "record/proc.h"

#define KVM_FEATURE_STEAL_TIME (1u << 5)  /* CPUID leaf 0x40000001 of KVM, EAX */
#define ID_MAX 128                        /* longest value in a VM's identity, bytes */

static const char *const names[] = { "unknown", "kvm", "xen", "vmware", "hyperv" };

const char *hypervisor_name(enum hypervisor_kind kind)
{
	return names[kind];
}

/* ---- CPUID */

#if defined(__x86_64__) || defined(__i386__)
static const struct { const char *text; enum hypervisor_kind kind; } signatures[] = {
	{ "KVMKVMKVM\0\0\0", HYPERVISOR_KVM }, { "XenVMMXenVMM", HYPERVISOR_XEN }, { "VMwareVMware", HYPERVISOR_VMWARE },
	{ "Microsoft Hv", HYPERVISOR_HYPERV },
};

/* Reads the leaves of one interface. A hypervisor may emulate Hyper-V in front of its own interface, which has
 * precedence. */
static void read_interface(struct guest_platform *h, unsigned base)
{
	unsigned a, max, word[3];
	__cpuid(base, max, word[0], word[1], word[2]);
	for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
		if (memcmp(word, signatures[i].text, sizeof word) != 0 || (h->kind && signatures[i].kind == HYPERVISOR_HYPERV))
			continue;
		h->kind = signatures[i].kind;
		if (h->kind == HYPERVISOR_KVM) {
			__cpuid(base + 1, a, word[0], word[1], word[2]);
			h->steal = a & KVM_FEATURE_STEAL_TIME ? OFFERED_YES : OFFERED_NO;
			h->why = "KVM does not offer steal time to this guest (CPUID 0x40000001, bit 5)";
		}
		if (max >= base + 0x10 && max < base + 0x100 && h->kind != HYPERVISOR_HYPERV && h->kind != HYPERVISOR_XEN) {
			__cpuid(base + 0x10, a, word[0], word[1], word[2]);
			h->tsc_khz = a;
		}
	}
}

static void read_cpuid(struct guest_platform *h)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
		return;
	h->is_guest = true;
	for (unsigned base = 0x40000000; base < 0x40001000; base += 0x100)
		read_interface(h, base);
}
#else
static void read_cpuid(struct guest_platform *h)
{
	(void)h;
}
#endif

/* ---- files */

static bool file_contains(const char *root, const char *path, const char *word)
{
	char *text = proc_text(root, NULL, "%s", path);
	const bool found = text && strstr(text, word);
	free(text);
	return found;
}

static void read_files(struct guest_platform *h, const char *root)
{
	static const char *const vendors[] = { "QEMU", "Amazon EC2", "Google", "OpenStack", "Alibaba Cloud", "DigitalOcean",
		"Hetzner", "KVM" };
	if (file_contains(root, "/proc/cpuinfo", " hypervisor"))
		h->is_guest = true;
	for (size_t i = 0; i < sizeof vendors / sizeof *vendors && !h->is_guest; i++)
		h->is_guest = file_contains(root, "/sys/class/dmi/id/sys_vendor", vendors[i]) &&
			!file_contains(root, "/sys/class/dmi/id/product_name", "metal");
	if (file_contains(root, "/sys/hypervisor/type", "xen")) {
		h->kind = HYPERVISOR_XEN;
		h->is_guest = !file_contains(root, "/proc/xen/capabilities", "control_d");
	}
	if (!h->kind && file_contains(root, "/sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock"))
		h->kind = HYPERVISOR_KVM;
}

struct guest_platform hypervisor_detect(const char *root)
{
	struct guest_platform h = { 0 };
	if (!*root)
		read_cpuid(&h);
	read_files(&h, root);
	if (h.kind == HYPERVISOR_XEN) {
		h.steal = OFFERED_YES;  /* a part of Xen's interface since its first release */
	} else if (h.kind == HYPERVISOR_HYPERV) {
		h.steal = OFFERED_NO;
		h.why = "Hyper-V has no counter of stolen time in the guest's memory";
	}
	if (h.steal != OFFERED_NO && file_contains(root, "/proc/cmdline", "no-steal-acc")) {
		h.steal = OFFERED_NO;
		h.why = "the kernel was booted with no-steal-acc";
	}
	return h;
}

/* ---- identity */

static void put_id(struct yaml_out *o, int map, const char *key, const char *value)
{
	static const char *const empty[] = { "", "None", "none", "Not Specified", "To be filled by O.E.M.", "Default string" };
	for (size_t i = 0; value && i < sizeof empty / sizeof *empty; i++)
		if (strcmp(value, empty[i]) == 0)
			return;
	if (value && strlen(value) <= ID_MAX)
		yaml_out_escaped(o, map, key, value);
}

static void put_cloud_init(struct yaml_out *o, int map, const char *root)
{
	static const char *const keys[][2] = {
		{ "instance_id", "instance_id" }, { "cloud_name", "cloud" }, { "region", "region" },
	};
	char *text = proc_text(root, NULL, "/run/cloud-init/instance-data.json");
	struct json_object *all = text ? json_tokener_parse(text) : NULL, *v1 = NULL;
	if (json_object_is_type(all, json_type_object) && json_object_object_get_ex(all, "v1", &v1) &&
	    json_object_is_type(v1, json_type_object)) {
		for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
			put_id(o, map, keys[i][1], json_member_text(v1, keys[i][0]));
	} else {
		char *id = proc_line(root, "/var/lib/cloud/data/instance-id");
		put_id(o, map, "instance_id", id);
		free(id);
	}
	json_object_put(all);
	free(text);
}

void hypervisor_put_vm(struct yaml_out *o, int map, const char *root)
{
	static const char *const dmi[][2] = {
		{ "sys_vendor", "vendor" }, { "product_name", "product" }, { "product_uuid", "uuid" },
		{ "product_serial", "serial" }, { "board_asset_tag", "asset_tag" },
	};
	for (size_t i = 0; i < sizeof dmi / sizeof *dmi; i++) {
		char *value = proc_line(root, "/sys/class/dmi/id/%s", dmi[i][0]);
		if (!value && strcmp(dmi[i][1], "uuid") == 0)
			value = proc_line(root, "/sys/hypervisor/uuid");
		put_id(o, map, dmi[i][1], value);
		free(value);
	}
	put_cloud_init(o, map, root);
}
