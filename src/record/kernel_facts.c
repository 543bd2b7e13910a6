#include "record/kernel_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/proc.h"

#define BTF_MAX (64u << 20)     /* largest BTF that is read, bytes */
#define CONFIG_MAX (4u << 20)   /* largest configuration, bytes */

/* ---- /proc/kallsyms */

static bool has_name(const char *symbol, const char *name)
{
	const size_t n = strlen(name);
	return strncmp(symbol, name, n) == 0 &&
		(!symbol[n] || strncmp(symbol + n, ".isra.", 6) == 0 || strncmp(symbol + n, ".constprop.", 11) == 0);
}

void kernel_find_symbols(const char *root, struct kernel_symbol *s, size_t n)
{
	char *path = mem_printf("%s/proc/kallsyms", root), *line = NULL;
	FILE *f = fopen(path, "re");
	size_t cap = 0;
	free(path);
	while (f && getline(&line, &cap, f) > 0) {
		unsigned long long address;
		char symbol[96], module[2];
		if (sscanf(line, "%llx %*c %95s %1s", &address, symbol, module) != 2)
			continue;  /* module symbols have a third word */
		for (size_t i = 0; i < n; i++) {
			if (s[i].found || !has_name(symbol, s[i].name))
				continue;
			s[i].found = true;
			s[i].address = address;
			snprintf(s[i].full, sizeof s[i].full, "%s", symbol);
		}
	}
	free(line);
	if (f)
		fclose(f);
}

/* ---- BTF */

/* Reads a file of at most `max` bytes from a descriptor and closes it. NULL on failure. */
static char *read_fd(int fd, size_t max, size_t *len)
{
	size_t cap = 1 << 16;
	ssize_t n = -1;
	char *all = fd < 0 ? NULL : mem_new(cap, 1);
	*len = 0;
	while (all && *len < max && ((n = read(fd, all + *len, cap - *len - 1)) > 0 || (n < 0 && errno == EINTR))) {
		*len += n > 0 ? (size_t)n : 0;
		if (*len + 1 == cap)
			all = mem_resize(all, cap *= 2, 1);
	}
	if (fd >= 0)
		close(fd);
	if (n == 0) {
		all[*len] = '\0';
		return all;
	}
	free(all);
	return NULL;
}

/* Size of the data that follows a struct btf_type, bytes; SIZE_MAX: unknown kind. */
static size_t btf_extra(const struct btf_type *t)
{
	const size_t n = BTF_INFO_VLEN(t->info);
	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT: case 17 /* DECL_TAG */: return 4;
	case BTF_KIND_ARRAY: return sizeof(struct btf_array);
	case BTF_KIND_STRUCT: case BTF_KIND_UNION: return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM: return n * sizeof(struct btf_enum);
	case 19 /* ENUM64 */: return n * 12;
	case BTF_KIND_FUNC_PROTO: return n * sizeof(struct btf_param);
	case BTF_KIND_VAR: return sizeof(struct btf_var);
	case BTF_KIND_DATASEC: return n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR: case BTF_KIND_FWD: case BTF_KIND_TYPEDEF: case BTF_KIND_VOLATILE: case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT: case BTF_KIND_FUNC: case BTF_KIND_FLOAT: case 18 /* TYPE_TAG */: return 0;
	default: return SIZE_MAX;
	}
}

/* Scans the types for the variable, then for the section that contains it. */
static int64_t find_percpu(const char *btf, size_t len, const char *name)
{
	const struct btf_header *h = (const void *)btf;
	if (len < sizeof *h || h->magic != BTF_MAGIC || h->hdr_len > len || h->type_off > len - h->hdr_len ||
	    h->type_len > len - h->hdr_len - h->type_off || h->str_off > len - h->hdr_len ||
	    h->str_len > len - h->hdr_len - h->str_off)
		return -1;
	const char *types = btf + h->hdr_len + h->type_off, *strings = btf + h->hdr_len + h->str_off;
	uint32_t id = 1, wanted = 0;
	for (size_t at = 0; at + sizeof(struct btf_type) <= h->type_len; id++) {
		const struct btf_type *t = (const void *)(types + at);
		const size_t extra = btf_extra(t);
		at += sizeof *t;
		if (extra > h->type_len - at)
			return -1;
		const bool is_named = t->name_off < h->str_len;  /* the text after the strings ends with a NUL */
		if (BTF_INFO_KIND(t->info) == BTF_KIND_VAR && is_named && strcmp(strings + t->name_off, name) == 0)
			wanted = id;
		const struct btf_var_secinfo *v = (const void *)(types + at);
		if (BTF_INFO_KIND(t->info) == BTF_KIND_DATASEC && is_named && strcmp(strings + t->name_off, ".data..percpu") == 0)
			for (uint32_t i = 0; wanted && i < BTF_INFO_VLEN(t->info); i++)
				if (v[i].type == wanted)
					return v[i].offset;
		at += extra;
	}
	return -1;
}

int64_t kernel_btf_percpu(const char *root, const char *name)
{
	size_t len;
	char *path = mem_printf("%s/sys/kernel/btf/vmlinux", root);
	char *btf = read_fd(open(path, O_RDONLY | O_CLOEXEC), BTF_MAX, &len);
	const int64_t offset = btf ? find_percpu(btf, len, name) : -1;
	free(btf);
	free(path);
	return offset;
}

/* ---- configuration */

/* Returns /proc/config.gz, unpacked by gzip(1); NULL on failure. */
static char *read_compressed(const char *root)
{
	int pipe_fd[2];
	size_t len;
	char *path = mem_printf("%s/proc/config.gz", root), *text = NULL;
	if (access(path, R_OK) == 0 && pipe2(pipe_fd, O_CLOEXEC) == 0) {
		const pid_t child = fork();
		if (child == 0) {
			dup2(pipe_fd[1], STDOUT_FILENO);
			signal(SIGPIPE, SIG_DFL);
			execlp("gzip", "gzip", "-dc", path, (char *)NULL);
			_exit(127);
		}
		close(pipe_fd[1]);
		text = read_fd(pipe_fd[0], CONFIG_MAX, &len);
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	free(path);
	return text;
}

static char *read_config(const char *root)
{
	static const char *const paths[] = {
		"/boot/config-%s", "/lib/modules/%s/config", "/usr/lib/modules/%s/config", "/usr/lib/ostree-boot/config-%s",
	};
	struct utsname name;
	char *release = proc_line(root, "/proc/sys/kernel/osrelease"), *text = read_compressed(root);
	uname(&name);
	for (size_t i = 0; i < sizeof paths / sizeof *paths && (!text || !*text); i++) {
		char path[256];
		const char *percent = strchr(paths[i], '%');
		snprintf(path, sizeof path, "%.*s%s%s", (int)(percent - paths[i]), paths[i], release ? release : name.release,
		         percent + 2);
		free(text);
		text = proc_text(root, NULL, "%s", path);
	}
	free(release);
	return text;
}

char *kernel_config(const char *root, const char *name)
{
	char *text = read_config(root), *line = mem_printf("\nCONFIG_%s=", name), *value = NULL;
	const char *at = text ? strstr(text, line) : NULL;
	if (at) {
		at += strlen(line);
		value = mem_printf("%.*s", (int)strcspn(at, "\n"), at);
	} else if (text && strstr(text, "\nCONFIG_")) {
		value = mem_dup("n");
	}
	free(line);
	free(text);
	return value;
}
