#include "trace/isolation/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_LANDLOCK
#include <linux/landlock.h>
#endif
#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

#define MEMORY (2ULL << 30)   /* bytes of address space, beside what the source needs */
#define EXPANSION 64          /* how much larger than the source its contents may be */

/* The caller's handlers of fatal signals are not for a child that may crash. */
static void reset_signals(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT };
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], SIG_DFL);
	signal(SIGINT, SIG_IGN);  /* the parent decides what it means */
}

static void lower(__rlimit_resource_t what, rlim_t most)
{
	struct rlimit r;
	if (getrlimit(what, &r))
		return;
	if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur > most)
		r.rlim_cur = most;
	setrlimit(what, &r);
}

/* Sanitizers keep a shadow of memory, which needs terabytes of addresses; each compiler tells of them in its way. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HAS_SHADOW
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW
#endif
#endif

static void limit(uint64_t bytes)
{
	const rlim_t most = MEMORY + EXPANSION * bytes;
	lower(RLIMIT_CORE, 0);
	lower(RLIMIT_FSIZE, most);
#ifndef HAS_SHADOW
	lower(RLIMIT_AS, most);
#endif
}

static void silence(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
}

/* ---- landlock */

#ifdef HAVE_LANDLOCK
/* Of later versions of the header, with the version of the interface that has them. */
#define ACCESS_REFER (1ULL << 13)     /* 2 */
#define ACCESS_TRUNCATE (1ULL << 14)  /* 3 */

#define ACCESS_WRITE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define ACCESS_NEVER (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO)

static void allow(int rules, const char *folder, uint64_t access)
{
	struct landlock_path_beneath_attr beneath = { .allowed_access = access };
	beneath.parent_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (beneath.parent_fd < 0)
		return;
	syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
	close(beneath.parent_fd);
}

static void lock_files(const char *folder)
{
	const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 1)
		return;
	const uint64_t write = ACCESS_WRITE | (version >= 3 ? ACCESS_TRUNCATE : 0);
	const struct landlock_ruleset_attr handled = {
		.handled_access_fs = write | ACCESS_NEVER | (version >= 2 ? ACCESS_REFER : 0)
	};
	const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
	if (rules < 0)
		return;
	if (folder)
		allow(rules, folder, write);
	syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}
#else
static void lock_files(const char *folder)
{
	(void)folder;
}
#endif

/* ---- seccomp */

#ifdef HAVE_SECCOMP
static void lock_calls(bool network)
{
	static const int never[] = {
		SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
		SCMP_SYS(process_vm_writev), SCMP_SYS(mount), SCMP_SYS(bpf), SCMP_SYS(perf_event_open),
	};
	static const int sockets[] = {
		SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen),
		SCMP_SYS(io_uring_setup),
	};
	const scmp_filter_ctx rules = seccomp_init(SCMP_ACT_ALLOW);
	if (!rules)
		return;
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), never[i], 0);
	for (size_t i = 0; i < sizeof sockets / sizeof *sockets && !network; i++)
		seccomp_rule_add(rules, SCMP_ACT_ERRNO(EPERM), sockets[i], 0);
	seccomp_load(rules);
	seccomp_release(rules);
}
#else
static void lock_calls(bool network)
{
	(void)network;
}
#endif

void confine(const struct confinement *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	reset_signals();
	limit(c->bytes);
	silence();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return;
	lock_files(c->folder);
	lock_calls(c->network);
}
