#include "cli/complete.h"

#include <unistd.h>

#include "base/base.h"
#include "cli/trace_input.h"
#include "query/query.h"

#define FIRST_WORD 2  /* argv: COMMAND --__complete WORD... */

bool completion_requested(int argc, char **argv)
{
	return argc > FIRST_WORD && strcmp(argv[1], "--__complete") == 0;
}

void complete_word(const char *typed, const char *word, const char *about)
{
	if (strncmp(word, typed, strlen(typed)) == 0 && !strpbrk(word, "\t\n"))
		printf("%s\t%s\n", word, about);
}

/* ---- Targets and attribute paths of the history on the command line */

/* Opens a history file, or the cached history of a recording; does not build one. NULL: none. */
static struct history *open_existing_history(const char *recording)
{
	char *path = recording ? mem_printf("%s/" CACHE_NAME, recording) : NULL;
	struct history *h = !recording ? NULL : history_is_history_file(recording) ? history_open(recording, NULL)
	                    : access(path, R_OK) == 0 ? history_open(path, NULL) : NULL;
	free(path);
	return h;
}

static void complete_thread(const struct catalog *catalog, const struct catalog_thread *th, const char *machine,
                            const char *typed)
{
	const struct target s = { TARGET_THREAD, (uint32_t)(th - catalog->thread) };
	char text_buffer[300], *text = mem_printf("%s/%d", machine, (int)th->tid), *named;
	const char *name = strchr(catalog_target_text(catalog, &s, text_buffer, sizeof text_buffer), ' ');
	complete_word(typed, text, name ? name + 1 : "");
	named = name ? mem_printf("%s/%s", machine, name + 1) : NULL;
	if (named && typed[strlen(machine) + 1])  /* offer the thread's name only after a typed letter of it */
		complete_word(typed, named, text);
	free(text);
	free(named);
}

/* Offers a thread by its name alone, without machine. is_process: the thread as a process. */
static void complete_thread_name(const struct catalog *catalog, const struct catalog_thread *th, const char *typed,
                                 bool is_process)
{
	const struct target s = { TARGET_THREAD, (uint32_t)(th - catalog->thread) };
	char text_buffer[300];
	const char *named = catalog_target_text(catalog, &s, text_buffer, sizeof text_buffer), *name = strchr(named, ' ');
	if (!name)
		return;
	char *about = mem_printf("%.*s", (int)(name - named), named), *text = mem_printf("process:%s", name + 1);
	complete_word(typed, is_process ? text : name + 1, about);
	free(about);
	free(text);
}

/* Returns true if the thread is the first one of its process. */
static bool is_process(const struct catalog *catalog, const struct catalog_thread *th)
{
	int64_t pid;
	return attribute_last_value(catalog, th->pid, &pid, NULL) == 0 && pid == th->tid;
}

static void complete_target(const struct catalog *catalog, const char *typed)
{
	for (uint32_t m = 0; m < catalog->machines; m++) {
		const struct catalog_machine *machine = &catalog->machine[m];
		size_t n = strlen(machine->name);
		complete_word(typed, machine->name, "machine");
		if (strncmp(typed, machine->name, n) != 0 || typed[n] != '/')
			continue;
		for (uint32_t c = machine->cpu; c < machine->cpu + machine->cpus; c++) {
			char *text = mem_printf("%s/CPU%u", machine->name, catalog->cpu[c].number);
			complete_word(typed, text, machine->kind == MACHINE_VM ? "vCPU" : "CPU");
			free(text);
		}
		for (uint32_t t = machine->thread; t < machine->thread + machine->threads; t++)
			complete_thread(catalog, &catalog->thread[t], machine->name, typed);
	}
	for (uint32_t g = 0; g < catalog->groups && *typed; g++) {
		complete_word(typed, catalog->group[g].path, "control group");
		if (catalog_find_machine(catalog, catalog->group[g].name) < 0)
			complete_word(typed, catalog->group[g].name, catalog->group[g].path);
	}
	const bool processes = strncmp(typed, "process:", 8) == 0;
	for (uint32_t t = 0; *typed && t < catalog->threads; t++)
		if (!processes || is_process(catalog, &catalog->thread[t]))
			complete_thread_name(catalog, &catalog->thread[t], typed, processes);
	if (*typed && !processes)
		complete_word(typed, "process:", "all threads of a process");
}

/* Completes attribute paths below the last typed node. */
static void complete_path(const struct history *h, const char *typed)
{
	const char *slash = strrchr(typed, '/');
	char *dir = slash && slash > typed ? mem_printf("%.*s", (int)(slash - typed), typed) : mem_dup("/");
	uint32_t at = history_find(h, dir);
	for (uint32_t c = at == HISTORY_NONE ? at : history_child(h, at, HISTORY_NONE); c != HISTORY_NONE;
	     c = history_child(h, at, c)) {
		bool leaf = history_type(h, c) >= 0;
		char *text = mem_printf("%s/%s%s", dir[1] ? dir : "", history_name(h, c), leaf ? "" : "/");
		complete_word(typed, text, leaf ? "attribute" : "");
		free(text);
	}
	free(dir);
}

static void complete_in_history(const char *recording, bool path, const char *typed)
{
	struct history *h = open_existing_history(recording);
	struct catalog catalog;
	if (h && path) {
		complete_path(h, typed);
	} else if (h && catalog_open(&catalog, h, NULL) == 0) {
		complete_target(&catalog, typed);
		catalog_release(&catalog);
	}
	history_close(h);
}

/* Offers the words of a change of whatif: a verb, then what it affects. */
static void complete_change(const char *recording, const char *before, const char *typed)
{
	static const struct { const char *verb, *about; } verbs[] = {
		{ "add", "add CPU: one more CPU" }, { "free", "free TARGET: no pin" }, { "no", "no quota TARGET" },
		{ "pin", "pin TARGET CPUn" }, { "weight", "weight TARGET N: 100 is nice 0" },
		{ "without", "without TARGET: its load is gone" },
	};
	bool follows_verb = strcmp(before, "quota") == 0;
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		follows_verb |= strcmp(before, verbs[i].verb) == 0;
	if (strcmp(before, "add") == 0 || strcmp(before, "no") == 0)
		complete_word(typed, before[0] == 'a' ? "CPU" : "quota", "");
	else if (follows_verb)
		complete_in_history(recording, false, typed);
	else
		for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
			complete_word(typed, verbs[i].verb, verbs[i].about);
}

/* ---- The command line */

static const struct opt *option_named(const struct opts *o, const char *word)
{
	for (size_t i = 0; i < o->len; i++)
		if ((word[0] == '-' && word[1] == '-' && strcmp(word + 2, o->opt[i].name) == 0) ||
		    (word[0] == '-' && o->opt[i].letter && word[1] == o->opt[i].letter && !word[2]))
			return &o->opt[i];
	return NULL;
}

/* Returns the option of a word "--name=VALUE"; NULL: none. */
static const struct opt *option_valued(const struct opts *o, const char *word)
{
	size_t n = strcspn(word, "=");
	char *name = word[n] ? mem_printf("%.*s", (int)n, word) : NULL;
	const struct opt *opt = name && n > 2 ? option_named(o, name) : NULL;
	free(name);
	return opt && opt->kind != OPT_FLAG ? opt : NULL;
}

static void complete_options(const struct opts *o, const char *typed)
{
	for (size_t i = 0; i < o->len; i++) {
		char *text = mem_printf("--%s", o->opt[i].name);
		complete_word(typed, text, o->opt[i].help ? o->opt[i].help : "");
		free(text);
	}
	complete_word(typed, "--help", "this text");
}

/* Offers values of an option. The first n characters of `typed` are the option's name, "--format="; 0: the value is a
 * separate word. */
static void complete_value(const struct opt *opt, const char *typed, size_t n)
{
	static const char files[] = " FILE DIR MODEL LAYOUT THEME RECORDING ";
	char *arg = mem_printf(" %s ", opt->arg);
	for (size_t i = 0; opt->choice && opt->choice[i]; i++) {
		char *text = mem_printf("%.*s%s", (int)n, typed, opt->choice[i]);
		complete_word(typed, text, "");
		free(text);
	}
	if (n == 0 && strstr(files, arg))
		puts(":file");
	free(arg);
}

/* Returns operand n (from 0) in the usage text, "[TARGET]..."; an operand that ends in dots may be repeated. "": no such
 * operand. */
static const char *operand_named(const struct opts *o, int n)
{
	const char *word = o->usage + strcspn(o->usage, " "), *last = "";
	if (strncmp(o->usage, "latency ", strlen("latency ")) == 0)
		word += strcspn(word + 1, " ") + 1;
	for (int i = 0; *word; i++, word += strcspn(word, " ")) {
		word += strspn(word, " ");
		last = word;
		if (i == n)
			return word;
	}
	return strstr(last, "...") ? last : "";
}

void complete_arguments(const struct opts *o, int argc, char **argv)
{
	const char *typed = argv[argc - 1], *recording = NULL;
	int operands = 0;
	for (int i = FIRST_WORD; i < argc - 1; i++) {
		const struct opt *opt = option_named(o, argv[i]);
		if (opt && opt->kind != OPT_FLAG && i + 1 == argc - 1) {
			complete_value(opt, typed, 0);
			return;
		}
		i += opt && opt->kind != OPT_FLAG;
		if (!opt && argv[i][0] != '-' && operands++ == 0)
			recording = argv[i];
	}
	const char *operand = operand_named(o, operands);
	size_t n = strcspn(operand, " ");
	const struct opt *valued = option_valued(o, typed);
	if (valued)
		complete_value(valued, typed, strcspn(typed, "=") + 1);
	else if (*typed == '-')
		complete_options(o, typed);
	else if (strncmp(operand, "CHANGE", 6) == 0)
		complete_change(recording, argv[argc - 2], typed);
	else if (strncmp(operand, "PATH", 4) == 0)
		complete_in_history(recording, true, typed);
	else if (memmem(operand, n, "TARGET", 6) || memmem(operand, n, "VM", 2) || memmem(operand, n, "MACHINE", 7))
		complete_in_history(recording, false, typed);
	else if (n)
		puts(":file");
}
