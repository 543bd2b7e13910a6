#include "cli/features.h"

#include "base/base.h"

#ifdef STATIC_PROGRAM
#define IS_STATIC true
#else
#define IS_STATIC false
#endif
#ifdef HAVE_BABELTRACE
#define WITH_BABELTRACE true
#else
#define WITH_BABELTRACE false
#endif
#ifdef HAVE_TRACEEVENT
#define WITH_TRACEEVENT true
#else
#define WITH_TRACEEVENT false
#endif
#ifdef HAVE_ZSTD
#define WITH_ZSTD true
#else
#define WITH_ZSTD false
#endif
#ifdef HAVE_ARCHIVE
#define WITH_LIBARCHIVE true
#else
#define WITH_LIBARCHIVE false
#endif
#ifdef HAVE_BPF
#define WITH_BPF true
#else
#define WITH_BPF false
#endif
#ifdef HAVE_SECCOMP
#define WITH_SECCOMP true
#else
#define WITH_SECCOMP false
#endif
#ifdef HAVE_SQLITE
#define WITH_SQLITE true
#else
#define WITH_SQLITE false
#endif
#ifdef HAVE_POSTGRES
#define WITH_POSTGRES true
#else
#define WITH_POSTGRES false
#endif

static const struct { bool present; const char *library, *use; } features[] = {
	{ WITH_BABELTRACE, "libbabeltrace2", "sessions of a relay daemon" },
	{ WITH_TRACEEVENT, "libtraceevent", "recordings of stealscope record, files of trace-cmd and perf" },
	{ WITH_ZSTD, "libzstd", "compressed files of perf" },
	{ WITH_LIBARCHIVE, "libarchive", "recordings in archives, compressed files" },
	{ WITH_BPF, "libbpf", "exact figures of top and monitor" },
	{ WITH_SECCOMP, "libseccomp", "parsers of traces without system calls" },
	{ !IS_STATIC, "LAPACK, NLopt", "latency train; prediction in latency report" },
	{ WITH_SQLITE, "libsqlite3", "export --to sqlite:FILE" },
	{ WITH_POSTGRES, "libpq", "export --to postgresql://..." },
};

void features_print(void)
{
	printf("stealscope %s%s\nwith", PACKAGE_VERSION, IS_STATIC ? " (static)" : "");
	for (size_t i = 0; i < sizeof features / sizeof *features; i++)
		if (features[i].present)
			printf(" %s,", features[i].library);
	puts(" libyaml, json-c, ncurses");
	for (size_t i = 0; i < sizeof features / sizeof *features; i++)
		if (!features[i].present)
			printf("without %s: %s\n", features[i].library, features[i].use);
	puts("License: MIT");
}
