/* Texts beside an xentrace file: output of xl and of Xen's console. Untrusted: every number and name is checked. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/xen/xen.h"

#define TEXT_MAX (1 << 20)     /* larger files are no output of xl, bytes */
#define FILES_MAX 256          /* files examined */
#define DOMAINS_MAX 32768
#define NAME_LENGTH_MAX 255
#define MHZ_MAX 1000000        /* 1 THz */

const struct xen_domain *xen_domain_find(const struct xen_texts *t, uint32_t id)
{
	for (size_t i = 0; i < t->domains; i++)
		if (t->domain[i].id == id)
			return &t->domain[i];
	return NULL;
}

static struct xen_domain *add_domain(struct xen_texts *t, uint32_t id, const char *name, size_t len)
{
	struct xen_domain *old = (struct xen_domain *)(uintptr_t)xen_domain_find(t, id);
	if (old || len == 0 || len > NAME_LENGTH_MAX || id >= XEN_HYPERVISOR_DOMAINS || t->domains >= DOMAINS_MAX)
		return old;
	struct xen_domain *d = ARRAY_PUSH(t->domain, t->domains, t->domains_cap);
	*d = (struct xen_domain){ .id = id, .name = mem_printf("%.*s", (int)len, name) };
	return d;
}

void xen_texts_name_domain(struct xen_texts *t, uint32_t id, const char *name)
{
	struct xen_domain *d = add_domain(t, id, name, strlen(name));
	if (!d)
		return;
	free(d->name);
	d->name = mem_dup(name);
}

/* Kinds of tables that xl prints, by their headers' words. */
enum xl_table { TABLE_NONE, TABLE_DOMAINS, TABLE_VCPUS, TABLE_CAPS };

static enum xl_table table_of_header(const char *line)
{
	char word[4][16];
	if (sscanf(line, "%15s %15s %15s %15s", word[0], word[1], word[2], word[3]) != 4 || strcmp(word[0], "Name") != 0 ||
	    strcmp(word[1], "ID") != 0)
		return TABLE_NONE;
	if (strcmp(word[2], "Mem") == 0 && strcmp(word[3], "VCPUs") == 0)
		return TABLE_DOMAINS;
	if (strcmp(word[2], "VCPU") == 0 && strcmp(word[3], "CPU") == 0)
		return TABLE_VCPUS;
	return strcmp(word[2], "Weight") == 0 && strcmp(word[3], "Cap") == 0 ? TABLE_CAPS : TABLE_NONE;
}

/* Returns true if the columns after the name match the table, and sets *id and *cap. */
static bool parse_columns(enum xl_table table, const char *at, unsigned *id, unsigned *cap)
{
	unsigned n[2];
	int end = 0;
	char cpu[8], state[8];
	*cap = 0;
	if (table == TABLE_DOMAINS)
		return sscanf(at, " %9u %9u %9u %7[-rbpscd] %n", id, &n[0], &n[1], state, &end) == 4 && end > 0;
	if (table == TABLE_VCPUS)
		return sscanf(at, " %9u %9u %7[-0-9] %7[-rbp] %n", id, &n[0], cpu, state, &end) == 4 && end > 0;
	return sscanf(at, " %9u %9u %9u %n", id, &n[0], cap, &end) == 3 && end > 0 && !at[end];
}

/* Adds a row's domain. The name may contain spaces: it ends where the columns of the table follow. */
static void add_row(struct xen_texts *t, enum xl_table table, const char *line)
{
	unsigned id, cap;
	const char *at = line + strcspn(line, " ");
	while (*at && !parse_columns(table, at, &id, &cap)) {
		at += strspn(at, " ");
		at += strcspn(at, " ");
	}
	if (!*at || *line == ' ')
		return;
	struct xen_domain *d = add_domain(t, id, line, (size_t)(at - line));
	if (d && table == TABLE_CAPS)
		d->is_capped |= cap > 0;
}

/* Sets the frequency. Later values do not replace the first one. */
static void set_mhz(struct xen_texts *t, const char *text)
{
	unsigned mhz, fraction = 0;
	int digits[2] = { 0 };
	if (t->millihertz || sscanf(text, "%7u.%n%6u%n", &mhz, &digits[0], &fraction, &digits[1]) < 1 || mhz > MHZ_MAX ||
	    mhz == 0)
		return;
	uint64_t part = digits[1] > digits[0] ? fraction : 0;
	for (int i = digits[1] - digits[0]; i < 9; i++)
		part *= 10;
	t->millihertz = (uint64_t)mhz * 1000000000 + part;
}

static const char *value_of(const char *line, const char *key)
{
	const size_t n = strlen(key);
	const char *at = line + n;
	if (strncmp(line, key, n) != 0)
		return NULL;
	at += strspn(at, " ");
	return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* Sets the kind of virtualization from the feature words of the processor (since Xen 4.7): VMX is bit 5 of the second word,
 * SVM bit 2 of the fourth. */
static void set_exit_isa(struct xen_texts *t, const char *hw_caps)
{
	unsigned word[4];
	if (sscanf(hw_caps, "%8x:%8x:%8x:%8x", &word[0], &word[1], &word[2], &word[3]) != 4)
		return;
	const bool has_vmx = word[1] >> 5 & 1, has_svm = word[3] >> 2 & 1;
	if (has_vmx != has_svm)
		t->exit_isa = has_vmx ? EXIT_ISA_VMX : EXIT_ISA_SVM;
}

static void add_line(struct xen_texts *t, const char *line, enum xl_table *table)
{
	static const char detected[] = "Detected ";
	const enum xl_table header = table_of_header(line);
	const char *value = strstr(line, detected);
	if (header) {
		*table = header;
		return;
	}
	if (!*line)
		*table = TABLE_NONE;
	else if (*table)
		add_row(t, *table, line);
	if (value && strncmp(line, "(XEN)", 5) == 0 && strstr(value, " MHz processor"))
		set_mhz(t, value + sizeof detected - 1);
	if (strcmp(line, "(XEN) HVM: VMX enabled") == 0)
		t->exit_isa = EXIT_ISA_VMX;
	if (strcmp(line, "(XEN) HVM: SVM enabled") == 0)
		t->exit_isa = EXIT_ISA_SVM;
	if ((value = value_of(line, "hw_caps")))
		set_exit_isa(t, value);
	if ((value = value_of(line, "cpu_mhz")))
		set_mhz(t, value);
	if ((value = value_of(line, "xen_scheduler")))
		t->is_credit1 = strcmp(value, "credit") == 0;
	if ((value = value_of(line, "xen_version")) && strlen(value) < 32) {
		unsigned major, minor;
		snprintf(t->version, sizeof t->version, "Xen %s", value);
		t->has_idle_ns = sscanf(value, "%4u.%4u", &major, &minor) == 2 && (major > 4 || (major == 4 && minor >= 13));
	}
}

void xen_texts_add(struct xen_texts *t, const char *text)
{
	char line[1024];
	enum xl_table table = TABLE_NONE;
	while (*text) {
		const size_t len = strcspn(text, "\n");
		snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), text);
		add_line(t, line, &table);
		text += len + (text[len] == '\n');
	}
}

/* Adds a file's facts, unless it is large or contains zero bytes. */
static void add_file(struct xen_texts *t, int dir, const char *name)
{
	struct stat st;
	const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= TEXT_MAX) {
		char *text = mem_new((size_t)st.st_size + 1, 1);
		const ssize_t got = pread(fd, text, (size_t)st.st_size, 0);
		if (got > 0 && !memchr(text, '\0', (size_t)got))
			xen_texts_add(t, text);
		free(text);
	}
	if (fd >= 0)
		close(fd);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void xen_texts_read(const char *trace_path, struct xen_texts *t)
{
	const char *slash = strrchr(trace_path, '/');
	char *path = slash ? mem_printf("%.*s/", (int)(slash - trace_path), trace_path) : mem_dup(".");
	struct dirent **entry = NULL;
	const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int n = dir < 0 ? -1 : scandirat(dir, ".", &entry, NULL, by_name);
	*t = (struct xen_texts){ .version = "Xen" };
	for (int i = 0; i < n; i++) {
		if (i < FILES_MAX && entry[i]->d_name[0] != '.')
			add_file(t, dir, entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
	if (dir >= 0)
		close(dir);
	free(path);
}

void xen_texts_release(struct xen_texts *t)
{
	for (size_t i = 0; i < t->domains; i++)
		free(t->domain[i].name);
	free(t->domain);
	*t = (struct xen_texts){ 0 };
}
