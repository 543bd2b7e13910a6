#include "record/xen_host.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "record/proc.h"
#include "record/recording_dir.h"
#include "record/transport.h"
#include "record/vm_discovery.h"

#define TRACE "xentrace.bin"
#define LOG "xentrace.log"
#define SCHEDULER_EVENTS 0x0002f000    /* all events of the scheduler */
#define BUFFER_PAGES "256"             /* of each pCPU */
#define START_TIMEOUT (10 * NS_PER_S)  /* for the first records of xentrace */
#define END_TIMEOUT 10000              /* ms for xentrace to write its buffers */
#define TEXT_MAX (1 << 20)             /* longest output of xl, bytes */
#define DOMAINS_MAX 4096
#define VCPUS_MAX 512

bool xen_host_is_here(const char *root)
{
	char *can = proc_line(root, "/proc/xen/capabilities");
	const bool is = can && strstr(can, "control_d");
	free(can);
	return is;
}

/* ---- programs */

/* Returns a program's path, which the caller frees; NULL: not found. */
static char *find_program(const char *name)
{
	char *path = mem_dup(getenv("PATH") ? getenv("PATH") : "/usr/sbin:/usr/bin"), *rest = NULL, *found = NULL;
	for (char *dir = strtok_r(path, ":", &rest); dir && !found; dir = strtok_r(NULL, ":", &rest)) {
		found = mem_printf("%s/%s", dir, name);
		if (*dir == '/' && access(found, X_OK) == 0)
			break;
		free(found);
		found = NULL;
	}
	free(path);
	glob_t g = { 0 };
	char *pattern = mem_printf("/usr/lib/xen-*/bin/%s", name);
	if (!found && glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc > 0)
		found = mem_dup(g.gl_pathv[g.gl_pathc - 1]);
	free(pattern);
	globfree(&g);
	return found;
}

/* Classes of events that --xen-events adds. */
static const struct { const char *name; uint32_t mask; } event_classes[] = {
	{ "hypercalls", 0x0020f000 }, /* entries of paravirtualized vCPUs into the hypervisor */
	{ "hvm", 0x0008f000 },        /* VM entries and exits of HVM and PVH domains */
};

/* Adds the classes to *mask. Returns -1 with *err if one is unknown. */
static int add_classes(const char *names, uint32_t *mask, struct error *err)
{
	while (names && *names) {
		const size_t len = strcspn(names, ",");
		size_t i = 0;
		while (i < sizeof event_classes / sizeof *event_classes &&
		       (strncmp(event_classes[i].name, names, len) != 0 || event_classes[i].name[len]))
			i++;
		if (i == sizeof event_classes / sizeof *event_classes)
			return error_set(err, STATUS_USAGE, "use hypercalls, hvm, or both, separated by a comma",
			                 "--xen-events: unknown class of events '%.*s'", (int)len, names);
		*mask |= event_classes[i].mask;
		names += len + (names[len] == ',');
	}
	return 0;
}

struct xen_host *xen_host_new(const char *events, struct error *err)
{
	struct xen_host *x = mem_new(1, sizeof *x);
	*x = (struct xen_host){ .mask = SCHEDULER_EVENTS, .dir = -1 };
	if (add_classes(events, &x->mask, err)) {
		xen_host_free(x);
		return NULL;
	}
	x->xentrace = find_program("xentrace");
	x->xl = find_program("xl");
	if (x->xentrace && x->xl)
		return x;
	error_set(err, STATUS_SYSTEM, "install Xen's tools (Debian: xen-utils)",
	          "this machine is dom0 of a Xen host, but %s is "
	          "neither in PATH nor in /usr/lib/xen-*/bin", x->xl ? "xentrace" : "xl");
	xen_host_free(x);
	return NULL;
}

void xen_host_free(struct xen_host *x)
{
	if (!x)
		return;
	if (x->pid)
		child_end(x->pid, END_TIMEOUT);
	if (x->dir >= 0)
		close(x->dir);
	free(x->xentrace);
	free(x->xl);
	free(x);
}

/* Returns the output of xl with one argument, which the caller frees; NULL: it failed. */
static char *xl_output(const struct xen_host *x, const char *argument)
{
	int pipe_end[2], status = 0;
	size_t len = 0;
	ssize_t got = 0;
	if (pipe2(pipe_end, O_CLOEXEC))
		return NULL;
	const pid_t child = fork();
	if (child == 0) {
		const int null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(pipe_end[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execl(x->xl, "xl", argument, (char *)NULL);
		_exit(127);
	}
	close(pipe_end[1]);
	char *text = mem_new(TEXT_MAX + 1, 1);
	while (child > 0 && len < TEXT_MAX && ((got = read(pipe_end[0], text + len, TEXT_MAX - len)) > 0 ||
	                                       (got < 0 && errno == EINTR)))
		len += got > 0 ? (size_t)got : 0;
	close(pipe_end[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (child > 0 && status == 0 && len > 0)
		return text;
	free(text);
	return NULL;
}

/* ---- domains */

/* Parses a row "NAME ID MEM VCPUS STATE TIME"; the name may contain spaces. Returns the name's length; 0: no row. */
static size_t parse_domain(const char *line, unsigned *id, unsigned *vcpus)
{
	unsigned mem;
	int end;
	for (const char *at = line + strcspn(line, " "); *at; at += strcspn(at, " ")) {
		char state[8], time[16];
		end = 0;
		if (sscanf(at, " %9u %9u %9u %7[-rbpscd] %15[0-9.]%n", id, &mem, vcpus, state, time, &end) == 5 && end > 0 &&
		    at[end + (int)strspn(at + end, " ")] == '\0')
			return (size_t)(at - line);
		at += strspn(at, " ");
	}
	return 0;
}

static struct vm domain_vm(const char *name, size_t len, unsigned vcpus)
{
	char escaped[256], *copy = mem_printf("%.*s", (int)len, name);
	struct vm vm = { .name = mem_dup(text_escape(escaped, sizeof escaped, copy)), .named_by = "xl list",
		.vmm = mem_dup("xen"), .mapped_by = "xl list" };
	vm.vcpu = mem_new(vcpus, sizeof *vm.vcpu);
	for (unsigned i = 0; i < vcpus; i++)
		vm.vcpu[vm.vcpus++] = (struct vm_vcpu){ .number = i };
	vm.unmapped = vcpus;
	free(copy);
	return vm;
}

struct vm *xen_host_domains(const struct xen_host *x, size_t *n, struct error *err)
{
	char *text = xl_output(x, "list"), *rest = NULL;
	struct vm *vm = mem_new(1, sizeof *vm);
	size_t cap = 1;
	*n = 0;
	if (!text) {
		free(vm);
		error_set(err, STATUS_SYSTEM, "run as root in dom0", "%s list failed", x->xl);
		return NULL;
	}
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned id, vcpus;
		const size_t len = parse_domain(line, &id, &vcpus);
		if (len && id && vcpus && vcpus <= VCPUS_MAX && *n < DOMAINS_MAX)
			*ARRAY_PUSH(vm, *n, cap) = domain_vm(line, len, vcpus);
	}
	free(text);
	vms_make_unique(vm, *n);
	return vm;
}

/* ---- recording */

int xen_host_store_in(struct xen_host *x, int recording, struct error *err)
{
	if (x->dir >= 0)
		close(x->dir);
	x->dir = mkdirat(recording, "host", 0700) == 0 ? openat(recording, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return x->dir < 0 ? error_system(err, NULL, "cannot create the directory host") : 0;
}

static int put_text(const struct xen_host *x, const char *name, const char *text, struct error *err)
{
	return text ? dir_put(x->dir, name, text, strlen(text), err) : 0;
}

static int put_texts(const struct xen_host *x, struct error *err)
{
	static const char *const texts[][2] = { { "list", "xl-list.txt" }, { "vcpu-list", "xl-vcpu-list.txt" } };
	char *info = xl_output(x, "info");
	char *scheduler = info ? proc_field(info, "xen_scheduler") : NULL, *mhz = info ? proc_field(info, "cpu_mhz") : NULL;
	int rc = mhz ? put_text(x, "xl-info.txt", info, err)
	             : error_set(err, STATUS_SYSTEM, "run as root in dom0", "%s info does not print the frequency (cpu_mhz)",
	                         x->xl);
	for (size_t i = 0; i < sizeof texts / sizeof *texts && !rc; i++) {
		char *text = xl_output(x, texts[i][0]);
		rc = put_text(x, texts[i][1], text, err);
		free(text);
	}
	if (!rc && scheduler && strcmp(scheduler, "credit") == 0) {
		char *text = xl_output(x, "sched-credit");
		rc = put_text(x, "xl-sched.txt", text, err);
		free(text);
	}
	free(info);
	free(scheduler);
	free(mhz);
	return rc;
}

static _Noreturn void exec_xentrace(const struct xen_host *x, pid_t recorder)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	umask(077);
	const int log = fchdir(x->dir) ? -1 : open(LOG, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	setsid();  /* ^C in the terminal ends the recorder, which ends xentrace */
	signal(SIGPIPE, SIG_DFL);
	if (log < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != recorder)
		_exit(126);
	char mask[16];
	snprintf(mask, sizeof mask, "0x%08x", (unsigned)x->mask);
	execl(x->xentrace, "xentrace", "-D", "-S", BUFFER_PAGES, "-e", mask, TRACE, (char *)NULL);
	_exit(127);
}

/* Reports the end of xentrace, with the last line that it wrote. */
static int report_end(const struct xen_host *x, struct error *err)
{
	char text[2048] = "", escaped[512];
	const int fd = openat(x->dir, LOG, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	while (len > 0 && strchr("\n ", text[len - 1]))
		text[--len] = '\0';
	const char *line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	return error_set(err, STATUS_SYSTEM, "run as root in dom0, and end other xentrace processes", "xentrace ended%s%s",
	                 *line ? ": " : "", text_escape(escaped, sizeof escaped, line));
}

int xen_host_check(struct xen_host *x, struct error *err)
{
	if (!x->pid || waitpid(x->pid, NULL, WNOHANG) != x->pid)
		return 0;
	x->pid = 0;
	return report_end(x, err);
}

int xen_host_start(struct xen_host *x, struct error *err)
{
	const pid_t recorder = getpid();
	const int64_t until = now_ns() + START_TIMEOUT;
	struct stat st = { 0 };
	if (put_texts(x, err))
		return -1;
	x->pid = fork();
	if (x->pid == 0)
		exec_xentrace(x, recorder);
	if (x->pid < 0) {
		x->pid = 0;
		return error_system(err, NULL, "cannot start xentrace");
	}
	while (!(fstatat(x->dir, TRACE, &st, 0) == 0 && st.st_size > 0) && now_ns() < until) {
		if (xen_host_check(x, err))
			return -1;
		usleep(20000);
	}
	return st.st_size > 0 ? 0 : error_set(err, STATUS_SYSTEM, "check `xl dmesg`", "xentrace records nothing");
}

int xen_host_stop(struct xen_host *x, struct error *err)
{
	if (xen_host_check(x, err))
		return -1;
	if (!x->pid)
		return 0;
	child_end(x->pid, END_TIMEOUT);
	x->pid = 0;
	char *text = xl_output(x, "list");
	const int rc = put_text(x, "xl-list-after.txt", text, err);
	free(text);
	return rc;
}
