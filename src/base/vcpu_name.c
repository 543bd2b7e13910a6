#include "base/vcpu_name.h"

#include "base/base.h"

static const struct { const char *prefix, *suffix; } pattern[] = {
	{ "CPU ", "/KVM" },     /* QEMU with debug-threads=on, libvirt */
	{ "vcpu", "" },         /* cloud-hypervisor */
	{ "fc_vcpu ", "" },     /* Firecracker, libkrun */
	{ "crosvm_vcpu", "" },  /* crosvm */
	{ "kvm-vcpu-", "" },    /* kvmtool */
	{ "db_vcpu", "" },      /* Dragonball */
	{ "vcpu-", "" },        /* Kontain */
	{ "EMT-", "" },         /* VirtualBox */
};

int vcpu_name_number(const char *comm)
{
	for (size_t k = 0; k < sizeof pattern / sizeof *pattern; k++) {
		const size_t prefix_len = strlen(pattern[k].prefix);
		char *rest;
		if (strncmp(comm, pattern[k].prefix, prefix_len) != 0 || comm[prefix_len] < '0' || comm[prefix_len] > '9')
			continue;
		const unsigned long number = strtoul(comm + prefix_len, &rest, 10);
		if (number <= VCPU_NAME_MAX && strcmp(rest, pattern[k].suffix) == 0)
			return (int)number;
	}
	return -1;
}

int64_t vm_worker_pid(const char *comm)
{
	static const char *const prefix[] = { "vhost-", "kvm-pit/" };
	for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++) {
		const size_t len = strlen(prefix[i]);
		char *end;
		if (strncmp(comm, prefix[i], len) != 0 || comm[len] < '1' || comm[len] > '9')
			continue;
		const unsigned long pid = strtoul(comm + len, &end, 10);
		return !*end && pid <= INT32_MAX ? (int64_t)pid : -1;
	}
	return -1;
}

bool vm_worker_has_no_pid(const char *comm)
{
	return strncmp(comm, "kvm-nx-", 7) == 0;
}
