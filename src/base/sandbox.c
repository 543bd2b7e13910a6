#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_LANDLOCK
#include <linux/landlock.h>
#endif
#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

#define BASE_MEMORY (2ULL << 30)  /* address space of a child in addition to the input, bytes */
#define EXPANSION_MAX 64              /* maximum ratio of decoded to encoded size */
#define MEMORY_MIN (64UL << 20)       /* address space that a child needs in addition to that of its parent, bytes */

/* Resets signal handlers: the parent's handlers must not run in a child that crashes. */
static void reset_signals(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT,
		SIGXCPU };
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], SIG_DFL);
	signal(SIGINT, SIG_IGN);  /* the parent handles SIGINT */
}

static void lower_limit(__rlimit_resource_t resource, rlim_t max)
{
	struct rlimit r;
	if (getrlimit(resource, &r))
		return;
	if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur > max)
		r.rlim_cur = max;
	r.rlim_max = r.rlim_cur;
	setrlimit(resource, &r);
}

/* Sanitizers need terabytes of address space for their shadow memory. Each compiler has its own macro for them. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HAS_SHADOW_MEMORY
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW_MEMORY
#endif
#endif

static void limit_resources(const struct sandbox *c)
{
	const rlim_t max_bytes = BASE_MEMORY + EXPANSION_MAX * c->bytes;
	lower_limit(RLIMIT_CORE, 0);
	lower_limit(RLIMIT_FSIZE, max_bytes);
#ifndef HAS_SHADOW_MEMORY
	lower_limit(RLIMIT_AS, max_bytes);
#endif
}

int sandbox_check_memory(const char *name, struct error *err)
{
	void *room = mmap(NULL, MEMORY_MIN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return error_system(err, NULL, "%s: reading it needs %lu MB of memory", name, MEMORY_MIN >> 20);
	munmap(room, MEMORY_MIN);
	return 0;
}

static void redirect_to_null(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
}

/* ---- landlock */

#ifdef HAVE_LANDLOCK
/* Constants that older kernel headers do not define, with the landlock ABI version that introduced them. */
#define ACCESS_REFER (1ULL << 13)     /* ABI 2 */
#define ACCESS_TRUNCATE (1ULL << 14)  /* ABI 3 */

#define ACCESS_WRITE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define ACCESS_NEVER (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO)

static void allow_below(int rules, int fd, uint64_t access)
{
	const struct landlock_path_beneath_attr beneath = { .allowed_access = access, .parent_fd = fd };
	syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

static void allow_directory(int rules, const char *dir, uint64_t access)
{
	const int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	allow_below(rules, fd, access);
	close(fd);
}

static void restrict_files(const char *dir)
{
	const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 1)
		return;
	const uint64_t write_access = ACCESS_WRITE | (version >= 3 ? ACCESS_TRUNCATE : 0);
	const struct landlock_ruleset_attr handled = {
		.handled_access_fs = write_access | ACCESS_NEVER | (version >= 2 ? ACCESS_REFER : 0)
	};
	const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
	if (rules < 0)
		return;
	if (dir)
		allow_directory(rules, dir, write_access);
	syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}

void sandbox_limit_reads(const int *fd, size_t n)
{
	static const char *const system_dir[] = { "/usr", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/sys", "/dev", "/opt",
		"/nix" };
	const uint64_t read_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	const struct landlock_ruleset_attr handled = { .handled_access_fs = read_access };
	const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
	if (rules < 0)
		return;
	for (size_t i = 0; i < sizeof system_dir / sizeof *system_dir; i++)
		allow_directory(rules, system_dir[i], read_access);
	for (size_t i = 0; i < n; i++) {
		struct stat st;
		const bool is_dir = fstat(fd[i], &st) == 0 && S_ISDIR(st.st_mode);
		allow_below(rules, fd[i], is_dir ? read_access : LANDLOCK_ACCESS_FS_READ_FILE);
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}
#else
static void restrict_files(const char *dir)
{
	(void)dir;
}

void sandbox_limit_reads(const int *fd, size_t n)
{
	(void)fd;
	(void)n;
}
#endif

/* ---- seccomp */

#ifdef HAVE_SECCOMP
static void restrict_syscalls(bool network)
{
	static const int denied[] = {
		SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
		SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal), SCMP_SYS(rt_sigqueueinfo),
		SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(bpf),
		SCMP_SYS(perf_event_open), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(kexec_load), SCMP_SYS(reboot),
		SCMP_SYS(clock_settime), SCMP_SYS(settimeofday), SCMP_SYS(open_by_handle_at), SCMP_SYS(setrlimit),
		SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(chown), SCMP_SYS(fchown), SCMP_SYS(lchown),
		SCMP_SYS(fchownat), SCMP_SYS(setxattr), SCMP_SYS(lsetxattr), SCMP_SYS(fsetxattr),
	};
	static const int signal_calls[] = { SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(tkill) };
	static const int network_calls[] = {
		SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen),
		SCMP_SYS(io_uring_setup),
	};
	const scmp_filter_ctx rules = seccomp_init(SCMP_ACT_ALLOW);
	if (!rules)
		return;
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
	seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_NE, 0));  /* new limits */
	for (size_t i = 0; i < sizeof signal_calls / sizeof *signal_calls; i++)  /* abort() sends one to this process */
		seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), signal_calls[i], 1, SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
	for (size_t i = 0; i < sizeof network_calls / sizeof *network_calls && !network; i++)
		seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), network_calls[i], 0);
	seccomp_load(rules);
	seccomp_release(rules);
}
#else
static void restrict_syscalls(bool network)
{
	(void)network;
}
#endif

void sandbox_enter(const struct sandbox *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	reset_signals();
	limit_resources(c);
	redirect_to_null();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return;
	restrict_files(c->dir);
	restrict_syscalls(c->network);
}
