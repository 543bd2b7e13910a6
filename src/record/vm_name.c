/* Finds a virtual machine's name, and its guest agent and CID. The table `names` lists the sources. */
#include <limits.h>

#include "base/base.h"
#include "record/proc.h"
#include "record/vm_discovery.h"

#define NAME_SIZE 96    /* bytes of a name without its PID, with the NUL; a longer name is cut */
#define DIR_MAX 64

/* ---- command lines */

struct arguments {
	char *text;  /* content of /proc/PID/cmdline: NUL-terminated arguments */
	size_t len;
};

static const char *next_argument(const struct arguments *a, const char *at)
{
	at = at ? at + strlen(at) + 1 : a->text;
	return at && at < a->text + a->len ? at : NULL;
}

/* Returns the value of the nth occurrence (from 0) of an option "-name VALUE", "--name VALUE" or "--name=VALUE"; NULL:
 * none. */
static const char *option_value(const struct arguments *a, const char *option, unsigned nth)
{
	const size_t n = strlen(option);
	for (const char *at = next_argument(a, NULL); at; at = next_argument(a, at)) {
		const char *name = at + (*at == '-') + (*at == '-' && at[1] == '-'), *value;
		if (*at != '-' || strncmp(name, option, n) != 0 || (name[n] && name[n] != '='))
			continue;
		value = name[n] ? name + n + 1 : next_argument(a, at);
		if (value && nth-- == 0)
			return value;
	}
	return NULL;
}

/* Returns the value of a key in an option of QEMU, "key=text,key=text" where ",," is a comma; NULL: none. key "": the
 * first text if it has no key. The caller frees. */
static char *find_suboption(const char *value, const char *key)
{
	const size_t n = strlen(key);
	for (const char *at = value; at;) {
		char *text = mem_new(strlen(at) + 1, 1);
		size_t used = 0;
		const char *from = at;
		while (*from && (*from != ',' || from[1] == ',')) {
			text[used++] = *from;
			from += *from == ',' ? 2 : 1;
		}
		if (n == 0 ? at == value && !memchr(text, '=', used) : strncmp(text, key, n) == 0 && text[n] == '=') {
			memmove(text, text + n + (n > 0), used + 1 - n - (n > 0));
			if (*text)
				return text;
		}
		free(text);
		at = *from ? from + 1 : NULL;
	}
	return NULL;
}

/* ---- sources of the name */

struct vm_source {
	const char *root;
	struct vm *vm;
	struct arguments arguments;
};

/* Returns NAME of /run/libvirt/qemu/NAME.pid with the VM's PID. */
static char *libvirt_name(const struct vm_source *d)
{
	size_t n;
	char **file = proc_names(d->root, "", &n, "/run/libvirt/qemu"), *name = NULL;
	for (size_t i = 0; i < n && !name; i++) {
		const size_t len = strlen(file[i]);
		int64_t pid;
		if (len > 4 && strcmp(file[i] + len - 4, ".pid") == 0 &&
		    proc_number(d->root, &pid, "/run/libvirt/qemu/%s", file[i]) && pid == d->vm->pid)
			name = mem_printf("%.*s", (int)(len - 4), file[i]);
	}
	proc_names_free(file, n);
	d->vm->domain = mem_dup(name);
	return name;
}

static char *openstack_name(const struct vm_source *d)
{
	char *domain = libvirt_name(d), *name = vm_openstack_name(d->root, domain);
	if (!name) {
		free(d->vm->domain);
		d->vm->domain = NULL;
	}
	free(domain);
	return name;
}

static char *option_name(const struct vm_source *d)
{
	const char *value = option_value(&d->arguments, "name", 0);
	char *name = value ? find_suboption(value, "guest") : NULL;
	if (!name && value)
		name = find_suboption(value, "");
	if (!name && (value = option_value(&d->arguments, "id", 0)) && *value)
		name = mem_dup(value);  /* Firecracker: --id */
	if (!name && (value = option_value(&d->arguments, "comment", 0)) && *value)
		name = mem_dup(value);  /* VirtualBox */
	return name;
}

static char *kubevirt_name(const struct vm_source *d)
{
	char *guest = option_name(d), *name = vm_kubevirt_name(d->root, d->vm->pid, guest);
	free(guest);
	return name;
}

static char *kata_name(const struct vm_source *d)
{
	char *id = option_name(d), *name = vm_kata_name(d->root, id);
	free(id);
	return name;
}

/* Unescapes the name of a systemd unit in place: "machine-qemu\x2d3\x2dweb" -> "machine-qemu-3-web". */
static void unescape_unit(char *s)
{
	char *to = s;
	for (unsigned byte; *s; to++) {
		if (sscanf(s, "\\x%2x", &byte) == 1 && byte && s[2] && s[3]) {
			*to = (char)byte;
			s += 4;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
}

/* Returns the name in the control group machine-NAME.scope of systemd-machined, without libvirt's prefix "qemu-N-". */
static char *scope_name(const struct vm_source *d)
{
	static const char begin[] = "machine-", end[] = ".scope";
	char *text = proc_text(d->root, NULL, "/proc/%d/cgroup", d->vm->pid), *name = NULL;
	for (char *line = text; line && *line && !name; line += *line != '\0') {
		const size_t len = strcspn(line, "\n");
		char *path = mem_printf("%.*s", (int)len, line), *unit = strstr(path, begin);
		char *dot = unit ? strstr(unit, end) : NULL;
		if (dot && (unit == path || unit[-1] == '/')) {
			unsigned number;
			int skip = 0;
			*dot = '\0';
			unit += strlen(begin);
			unescape_unit(unit);
			if (sscanf(unit, "qemu-%u-%n", &number, &skip) == 1 && skip && unit[skip])
				unit += skip;
			name = *unit ? mem_dup(unit) : NULL;
		}
		free(path);
		line += len;
	}
	free(text);
	return name;
}

/* Returns the base name of the API socket (cloud-hypervisor, Firecracker, crosvm): /run/ch/web.sock -> web. */
static char *socket_name(const struct vm_source *d)
{
	static const char *const option[] = { "api-socket", "api-sock", "socket", "s" };
	for (size_t i = 0; i < sizeof option / sizeof *option; i++) {
		const char *value = option_value(&d->arguments, option[i], 0), *slash;
		if (!value)
			continue;
		char *path = find_suboption(value, "path");
		if (!path)
			path = mem_dup(value);
		slash = strrchr(path, '/');
		const char *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
		const bool is_suffix = dot && dot > base && (!strcmp(dot, ".sock") || !strcmp(dot, ".socket"));
		char *name = mem_printf("%.*s", is_suffix ? (int)(dot - base) : (int)strlen(base), base);
		free(path);
		if (*name)
			return name;
		free(name);
	}
	return NULL;
}

static char *process_name(const struct vm_source *d)
{
	return mem_printf("%s-%d", d->vm->vmm, d->vm->pid);
}

static const struct { char *(*find)(const struct vm_source *d); const char *how; } names[] = {
	{ openstack_name, "OpenStack" },
	{ libvirt_name, "libvirt" },
	{ kubevirt_name, "KubeVirt" },
	{ kata_name, "its pod" },
	{ option_name, "its command line" },
	{ scope_name, "its systemd scope" },
	{ socket_name, "its socket" },
	{ process_name, "its process" },
};

/* ---- guest agent and CID */

/* Returns the socket of QEMU's guest agent: the path of the chardev that the virtio port of the agent refers to. */
static char *find_agent_socket(const struct vm_source *d)
{
	const char *device, *chardev;
	char *path = NULL;
	for (unsigned i = 0; !path && (device = option_value(&d->arguments, "device", i)); i++) {
		/* Not found for VMs of libvirt, which uses json here and does not share the socket: these use virsh. */
		if (!strstr(device, "org.qemu.guest_agent.0"))
			continue;
		char *id = find_suboption(device, "chardev");
		for (unsigned k = 0; id && !path && (chardev = option_value(&d->arguments, "chardev", k)); k++) {
			char *other = find_suboption(chardev, "id");
			if (other && strcmp(other, id) == 0)
				path = find_suboption(chardev, "path");
			free(other);
		}
		free(id);
	}
	return path;
}

static unsigned find_cid(const struct vm_source *d)
{
	static const char *const key[] = { "guest-cid", "cid" };  /* QEMU; cloud-hypervisor and crosvm */
	static const char *const option[] = { "device", "vsock" };
	const char *value;
	for (size_t o = 0; o < 2; o++) {
		for (unsigned i = 0; (value = option_value(&d->arguments, option[o], i)); i++) {
			uint64_t cid = 0;
			char *text = find_suboption(value, key[o]);
			const bool is_one = text && proc_parse_number(text, UINT32_MAX, &cid);
			free(text);
			if (is_one)
				return (unsigned)cid;
		}
	}
	return 0;
}

void vm_describe(const char *root, struct vm *vm)
{
	struct vm_source d = { root, vm, { 0 } };
	const char *uuid;
	d.arguments.text = proc_text(root, &d.arguments.len, "/proc/%d/cmdline", vm->pid);
	char *exe = proc_link(root, "/proc/%d/exe", vm->pid), *slash = exe ? strrchr(exe, '/') : NULL;
	vm->vmm = slash && slash[1] ? mem_dup(slash + 1) : proc_line(root, "/proc/%d/comm", vm->pid);
	if (!vm->vmm)
		vm->vmm = mem_dup("vm");
	free(exe);
	for (size_t i = 0; i < sizeof names / sizeof *names && !vm->name; i++) {
		char escaped[4096], shown[NAME_SIZE], *name = names[i].find(&d);
		vm->name = name ? mem_dup(text_cut(shown, sizeof shown, text_escape(escaped, sizeof escaped, name))) : NULL;
		vm->named_by = names[i].how;
		free(name);
	}
	vm->uuid = (uuid = option_value(&d.arguments, "uuid", 0)) ? mem_dup(uuid) : NULL;
	vm->agent = find_agent_socket(&d);
	vm->cid = find_cid(&d);
	free(d.arguments.text);
}

/* ---- unique names */

/* Turns a name into a path component without special meaning for shells and file systems. */
static char *make_dir_name(const char *name)
{
	char *dir = mem_printf("%.*s", DIR_MAX, name);
	for (char *c = dir; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *c) || (c == dir && *c == '.'))
			*c = '_';
	return dir;
}

static bool dir_exists(const struct vm *vm, size_t n, const char *dir)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(vm[i].dir, dir) == 0)
			return true;
	return false;
}

/* Appends the PID to the names of all VMs with equal names, and to the name "host", which is reserved. Returns false if
 * there are none. */
static bool make_names_longer(struct vm *vm, size_t n)
{
	bool *ambiguous = mem_new(n, sizeof *ambiguous), any = false;
	for (size_t i = 0; i < n; i++) {
		ambiguous[i] = strcmp(vm[i].name, "host") == 0;
		for (size_t k = 0; k < n; k++)
			ambiguous[i] |= k != i && strcmp(vm[k].name, vm[i].name) == 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (!ambiguous[i])
			continue;
		char *longer = mem_printf("%s-%d", vm[i].name, vm[i].pid);
		free(vm[i].name);
		vm[i].name = longer;
		any = true;
	}
	free(ambiguous);
	return any;
}

void vms_make_unique(struct vm *vm, size_t n)
{
	while (make_names_longer(vm, n))  /* a longer name may be that of another VM */
		;
	for (size_t i = 0; i < n; i++) {
		vm[i].dir = make_dir_name(vm[i].name);
		while (dir_exists(vm, i, vm[i].dir)) {
			char *longer = mem_printf("%s-%d", vm[i].dir, vm[i].pid);
			free(vm[i].dir);
			vm[i].dir = longer;
		}
	}
}
