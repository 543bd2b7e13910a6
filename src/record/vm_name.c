/* What a virtual machine is called, and how it may be reached: by what libvirt wrote down, by its command line, by the
 * machine scope that systemd made for it, by its socket; else by the process. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "record/proc.h"
#include "record/vm_discovery.h"

#define NAME_LONGEST 128   /* bytes, with the NUL */
#define FOLDER_LONGEST 64

/* ---- command lines */

struct arguments {
	char *text;  /* NUL between them, and behind the last */
	size_t len;
};

static const char *next_argument(const struct arguments *a, const char *at)
{
	at = at ? at + strlen(at) + 1 : a->text;
	return at && at < a->text + a->len ? at : NULL;
}

/* The value of an option, as "-name VALUE", "--name VALUE" or "--name=VALUE"; `nth` from 0. */
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

/* A key of a value as QEMU writes it, "key=text,key=text" where ",," stands for a comma; key "" is the first, which may
 * have no name.  The caller frees. */
static char *suboption(const char *value, const char *key)
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

/* ---- names, in order of trust */

struct described {
	const char *root;
	struct vm *vm;
	struct arguments arguments;
};

/* libvirt keeps /run/libvirt/qemu/NAME.pid. */
static char *name_of_libvirt(const struct described *d)
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

static char *name_of_option(const struct described *d)
{
	const char *value = option_value(&d->arguments, "name", 0);
	char *name = value ? suboption(value, "guest") : NULL;
	if (!name && value)
		name = suboption(value, "");
	if (!name && (value = option_value(&d->arguments, "id", 0)) && *value)
		name = mem_dup(value);  /* firecracker */
	return name;
}

/* "machine-qemu\x2d3\x2dweb.scope" -> "machine-qemu-3-web".  In place. */
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

/* The scope that systemd-machined made: its name is that of the machine, behind libvirt's "qemu-N-" if that asked. */
static char *name_of_scope(const struct described *d)
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

/* cloud-hypervisor, firecracker, crosvm: /run/ch/web.sock -> web. */
static char *name_of_socket(const struct described *d)
{
	static const char *const option[] = { "api-socket", "api-sock", "socket", "s" };
	for (size_t i = 0; i < sizeof option / sizeof *option; i++) {
		const char *value = option_value(&d->arguments, option[i], 0), *slash;
		if (!value)
			continue;
		char *path = suboption(value, "path");
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

static char *name_of_process(const struct described *d)
{
	return mem_printf("%s-%d", d->vm->vmm, d->vm->pid);
}

static const struct { char *(*find)(const struct described *d); const char *how; } names[] = {
	{ name_of_libvirt, "libvirt" },
	{ name_of_option, "its command line" },
	{ name_of_scope, "its systemd scope" },
	{ name_of_socket, "its socket" },
	{ name_of_process, "its process" },
};

/* ---- how it is reached */

/* The socket behind the virtio port of QEMU's guest agent: the chardev that the port names. */
static char *agent_of(const struct described *d)
{
	const char *device, *chardev;
	char *path = NULL;
	for (unsigned i = 0; !path && (device = option_value(&d->arguments, "device", i)); i++) {
		/* (libvirt writes json here, and keeps the socket to itself: virsh is the way.) */
		if (!strstr(device, "org.qemu.guest_agent.0"))
			continue;
		char *id = suboption(device, "chardev");
		for (unsigned k = 0; id && !path && (chardev = option_value(&d->arguments, "chardev", k)); k++) {
			char *other = suboption(chardev, "id");
			if (other && strcmp(other, id) == 0)
				path = suboption(chardev, "path");
			free(other);
		}
		free(id);
	}
	return path;
}

static unsigned cid_of(const struct described *d)
{
	static const char *const key[] = { "guest-cid", "cid" };  /* QEMU; cloud-hypervisor and crosvm */
	static const char *const option[] = { "device", "vsock" };
	const char *value;
	for (size_t o = 0; o < 2; o++) {
		for (unsigned i = 0; (value = option_value(&d->arguments, option[o], i)); i++) {
			uint64_t cid = 0;
			char *text = suboption(value, key[o]);
			const bool is_one = text && proc_is_number(text, UINT32_MAX, &cid);
			free(text);
			if (is_one)
				return (unsigned)cid;
		}
	}
	return 0;
}

void vm_describe(const char *root, struct vm *vm)
{
	struct described d = { root, vm, { 0 } };
	const char *uuid;
	d.arguments.text = proc_text(root, &d.arguments.len, "/proc/%d/cmdline", vm->pid);
	char *exe = proc_link(root, "/proc/%d/exe", vm->pid), *slash = exe ? strrchr(exe, '/') : NULL;
	vm->vmm = slash && slash[1] ? mem_dup(slash + 1) : proc_line(root, "/proc/%d/comm", vm->pid);
	if (!vm->vmm)
		vm->vmm = mem_dup("vm");
	free(exe);
	for (size_t i = 0; i < sizeof names / sizeof *names && !vm->name; i++) {
		char escaped[NAME_LONGEST], *name = names[i].find(&d);
		vm->name = name ? mem_dup(text_escape(escaped, sizeof escaped, name)) : NULL;
		vm->named_by = names[i].how;
		free(name);
	}
	vm->uuid = (uuid = option_value(&d.arguments, "uuid", 0)) ? mem_dup(uuid) : NULL;
	vm->agent = agent_of(&d);
	vm->cid = cid_of(&d);
	free(d.arguments.text);
}

/* ---- unique */

/* A name as a part of a path that no shell and no file system takes for anything else. */
static char *folder_of(const char *name)
{
	char *folder = mem_printf("%.*s", FOLDER_LONGEST, name);
	for (char *c = folder; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *c) || (c == folder && *c == '.'))
			*c = '_';
	return folder;
}

static bool is_taken(const struct vm *vm, size_t n, const char *folder)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(vm[i].folder, folder) == 0)
			return true;
	return false;
}

/* Two of one name both get their PID, so that nobody takes one for the other; "host" is the host's. */
static void name_apart(struct vm *vm, size_t n)
{
	bool *alike = mem_new(n, sizeof *alike);
	for (size_t i = 0; i < n; i++) {
		alike[i] = strcmp(vm[i].name, "host") == 0;
		for (size_t k = 0; k < n; k++)
			alike[i] |= k != i && strcmp(vm[k].name, vm[i].name) == 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (!alike[i])
			continue;
		char *longer = mem_printf("%s-%d", vm[i].name, vm[i].pid);
		free(vm[i].name);
		vm[i].name = longer;
	}
	free(alike);
}

void vms_make_unique(struct vm *vm, size_t n)
{
	name_apart(vm, n);
	for (size_t i = 0; i < n; i++) {
		vm[i].folder = folder_of(vm[i].name);
		while (is_taken(vm, i, vm[i].folder)) {
			char *longer = mem_printf("%s-%d", vm[i].folder, vm[i].pid);
			free(vm[i].folder);
			vm[i].folder = longer;
		}
	}
}
