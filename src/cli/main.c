/* stealscope: who took my CPU time, and when? */
#include <locale.h>
#include <nss.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/features.h"
#include "index/index.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv, struct error *err);
	const char *help;
};

#define COMMAND_ROW(name, fn, help) { name, fn, help },
static const struct command commands[] = { COMMANDS(COMMAND_ROW) };
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

/* Groups of the help: commands with a description, and further commands by name only. */
static const struct command_group { const char *title, *described, *further; } groups[] = {
	{ "Record", "top record", "run, monitor, index, sessions, beacon" },
	{ "Look", "view summary explain", "threads, picture" },
	{ "Ask", "gaps steal flow path", "waits, exits, events, latency" },
	{ "Compare", "diff whatif", "fleet" },
	{ "Check, share", "info sync ticket", "cut, export, intervals, mcp" },
};

static const struct command *find_command(const char *name);

static bool is_in_group(const char *command)
{
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
		if (strstr(groups[i].described, command) || strstr(groups[i].further, command))
			return true;
	return false;
}

/* Prints at most 24 lines: a small terminal shows all of them. */
static void print_help(void)
{
	puts("stealscope " PACKAGE_VERSION ": who took my CPU time, and when?\n"
	     "usage: stealscope [COMMAND] RECORDING ...        without COMMAND: the viewer\n"
	     "RECORDING: a directory with traces, net://RELAY, a session file or a history");
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		char list[128], *rest = NULL;
		snprintf(list, sizeof list, "%s", groups[i].described);
		printf("%s (also: %s)\n", groups[i].title, groups[i].further);
		for (char *name = strtok_r(list, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
			printf("  %-8s %s\n", name, find_command(name)->help);
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!is_in_group(commands[i].name))
			printf("  %-8s %s\n", commands[i].name, commands[i].help);
	puts("stealscope COMMAND --help lists options and examples; manual: stealscope(1)");
}

/* Returns the command with the most similar name; NULL: none is similar. */
static const char *nearest_command(const char *word)
{
	struct suggestion suggestion = SUGGESTION(word);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		suggest(&suggestion, commands[i].name);
	return suggestion.nearest;
}

/* Returns the command that does what this command of perf does; NULL: none. */
static const char *command_of_perf(const char *word)
{
	static const struct { const char *perf, *here; } known[] = { { "report", "summary" }, { "script", "events" },
		{ "stat", "exits" }, { "list", "info" }, { "timehist", "gaps" }, { "sched", "gaps" }, { "annotate", "explain" } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].perf, word))
			return known[i].here;
	return NULL;
}

static int refuse_command(const char *word, struct error *err)
{
	char remedy[80] = "stealscope --help lists them";
	const char *nearest = nearest_command(word), *known = command_of_perf(word);
	if (known)
		snprintf(remedy, sizeof remedy, "perf's %s is here: stealscope %s", word, known);
	else if (nearest)
		snprintf(remedy, sizeof remedy, "did you mean %s?", nearest);
	return error_set(err, STATUS_USAGE, remedy, "%s: no such command", word);
}

/* Returns true if a word may be a mistyped command: it consists of letters and names no file. */
static bool may_be_command(const char *word)
{
	return word[0] && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz-")] && word[0] != '-' && access(word, F_OK) != 0;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int print_error(const struct error *err)
{
	fprintf(stderr, "stealscope: %s%s%s%s\n", err->text, err->remedy[0] ? " (" : "", err->remedy,
	        err->remedy[0] ? ")" : "");
	return (int)err->status;
}

/* Flushes stdout. Returns the exit status: a full disk or a closed pipe is a failure. */
static int finish_output(void)
{
	struct error err = ERROR_INIT;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return STATUS_OK;
	error_system(&err, NULL, "cannot write to standard output");
	return print_error(&err);
}

/* Nothing: with a handler, a write beyond ulimit -f fails with EFBIG instead of ending the program. Unlike SIG_IGN, a
 * handler is not inherited by the programs that stealscope starts. */
static void on_file_too_large(int number)
{
	(void)number;
}

/* If the first operand is no file and the second one is, the recording was meant to come first. */
static void suggest_order(int argc, char **argv, const char *command, struct error *err)
{
	const bool has_subcommand = strcmp(command, "latency") == 0;
	if (argc < 3 || has_subcommand || !strstr(err->remedy, "check the path") || access(argv[1], F_OK) == 0 ||
	    access(argv[2], F_OK) != 0)
		return;
	snprintf(err->remedy, sizeof err->remedy, "the recording comes first: stealscope %s %.60s %.40s", command, argv[2],
	         argv[1]);
}

/* Sets up signals, locale and host names. */
static void prepare_libc(void)
{
	const struct sigaction too_large = { .sa_handler = on_file_too_large, .sa_flags = SA_RESTART };
	sigaction(SIGXFSZ, &too_large, NULL);
	if (!setlocale(LC_ALL, ""))
		setlocale(LC_ALL, "C.UTF-8");  /* built into libc, unlike the environment's locale */
	setlocale(LC_NUMERIC, "C");  /* decimal points in csv, json and options */
#ifdef STATIC_PROGRAM
	__nss_configure_lookup("hosts", "files dns");  /* other services are shared libraries of another libc */
#endif
}

static bool is_place_of_recordings(const char *dir)
{
	struct recordings found;
	const bool has_several = recordings_find(&found, dir, 2, NULL) == 0 && found.len;
	recordings_release(&found);
	return has_several || recording_is_here(dir);
}

static void print_first_steps(void)
{
	fputs("stealscope " PACKAGE_VERSION ": who took my CPU time, and when?\n"
	      "There is no recording here.\n"
	      "  stealscope top           live: who takes CPU time from VMs, containers, processes\n"
	      "  stealscope record        10 s of this machine and its guests, then the verdict\n"
	      "  stealscope DIR           open a recording, or list those in DIR\n"
	      "  ./bootstrap demo         in the source tree: an example recording\n"
	      "  stealscope --help        all commands\n", stderr);
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	prepare_libc();
	char *here[] = { argv[0], ".", NULL };
	if (argc < 2) {  /* the recording or the recordings in the working directory */
		if (!is_place_of_recordings(".")) {
			print_first_steps();
			return STATUS_USAGE;
		}
		argc = 2;
		argv = here;
	}
	if (completion_requested(argc, argv) && argc == 3)
		for (size_t i = 0; i < COMMAND_COUNT; i++)
			complete_word(argv[2], commands[i].name, commands[i].help);
	if (strcmp(argv[1], "help") == 0 && argc > 2) {  /* stealscope help COMMAND */
		argv[1] = argv[2];
		argv[2] = (char[]){ "--help" };
		if (!find_command(argv[1])) {
			refuse_command(argv[1], &err);
			return print_error(&err);
		}
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		print_help();
		return finish_output();
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V") || (!strcmp(argv[1], "version") && argc == 2)) {
		features_print();
		return finish_output();
	}
	const struct command *command = find_command(argv[1]);
	/* Without a command the arguments belong to `view`, with argv[0] as its name. */
	int skip = command ? 1 : 0;
	const bool is_similar = nearest_command(argv[1]) || command_of_perf(argv[1]);
	if (!command && argv[1][0] != '-' && is_similar && access(argv[1], F_OK) != 0) {
		refuse_command(argv[1], &err);
		return print_error(&err);
	}
	if (!command && may_be_command(argv[1])) {
		error_set(&err, STATUS_INPUT, "check the path; stealscope --help lists commands", "%s: no such file or command",
		          argv[1]);
		return print_error(&err);
	}
	if (!command)
		command = find_command("view");
	if (command->run(argc - skip, argv + skip, &err)) {
		suggest_order(argc - skip, argv + skip, command->name, &err);
		return print_error(&err);
	}
	return finish_output();
}
