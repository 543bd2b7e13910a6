#include "cli/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/trace_input.h"
#include "query/query.h"

#define FIRST_WORD 2  /* argv: COMMAND --__complete WORD... */

bool complete_is_asked(int argc, char **argv)
{
	return argc > FIRST_WORD && strcmp(argv[1], "--__complete") == 0;
}

void complete_word(const char *typed, const char *word, const char *about)
{
	if (strncmp(word, typed, strlen(typed)) == 0 && !strpbrk(word, "\t\n"))
		printf("%s\t%s\n", word, about);
}

/* ---- Subjects and paths of the history that is named on the command line */

/* Never builds one: it is there, or the traces' cache is. */
static struct history *history_of(const char *what)
{
	char *path = what ? mem_printf("%s/stealscope.steal", what) : NULL;
	struct history *h = !what ? NULL : history_is_one(what) ? history_open(what, NULL)
	                    : access(path, R_OK) == 0 ? history_open(path, NULL) : NULL;
	free(path);
	return h;
}

static void complete_thread(const struct topo *topo, const struct topo_thread *th, const char *machine, const char *typed)
{
	const struct subject s = { SUBJECT_THREAD, (uint32_t)(th - topo->thread) };
	char whole[300], *text = mem_printf("%s/%d", machine, (int)th->tid), *named;
	const char *name = strchr(topo_subject_text(topo, &s, whole, sizeof whole), ' ');
	complete_word(typed, text, name ? name + 1 : "");
	named = name ? mem_printf("%s/%s", machine, name + 1) : NULL;
	if (named && typed[strlen(machine) + 1])  /* what it is called, once one begins to type that */
		complete_word(typed, named, text);
	free(text);
	free(named);
}

/* A thread's name says it, too, where no machine is typed before it. */
static void complete_bare(const struct topo *topo, const struct topo_thread *th, const char *typed)
{
	const struct subject s = { SUBJECT_THREAD, (uint32_t)(th - topo->thread) };
	char whole[300];
	const char *named = topo_subject_text(topo, &s, whole, sizeof whole), *name = strchr(named, ' ');
	if (!name || strncmp(typed, name + 1, strlen(typed)) != 0)
		return;
	char *about = mem_printf("%.*s", (int)(name - named), named);
	complete_word(typed, name + 1, about);
	free(about);
}

static void complete_subject(const struct topo *topo, const char *typed)
{
	for (uint32_t m = 0; m < topo->machines; m++) {
		const struct topo_machine *machine = &topo->machine[m];
		size_t n = strlen(machine->name);
		complete_word(typed, machine->name, "machine");
		if (strncmp(typed, machine->name, n) != 0 || typed[n] != '/')
			continue;
		for (uint32_t c = machine->cpu; c < machine->cpu + machine->cpus; c++) {
			char *text = mem_printf("%s/CPU%u", machine->name, topo->cpu[c].number);
			complete_word(typed, text, machine->kind == MACHINE_VM ? "vCPU" : "CPU");
			free(text);
		}
		for (uint32_t t = machine->thread; t < machine->thread + machine->threads; t++)
			complete_thread(topo, &topo->thread[t], machine->name, typed);
	}
	for (uint32_t t = 0; *typed && t < topo->threads; t++)
		complete_bare(topo, &topo->thread[t], typed);
}

/* The attributes below the last folder that is typed. */
static void complete_path(const struct history *h, const char *typed)
{
	const char *slash = strrchr(typed, '/');
	char *folder = slash && slash > typed ? mem_printf("%.*s", (int)(slash - typed), typed) : mem_dup("/");
	uint32_t at = history_find(h, folder);
	for (uint32_t c = at == HISTORY_NONE ? at : history_child(h, at, HISTORY_NONE); c != HISTORY_NONE;
	     c = history_child(h, at, c)) {
		bool leaf = history_type(h, c) >= 0;
		char *text = mem_printf("%s/%s%s", folder[1] ? folder : "", history_name(h, c), leaf ? "" : "/");
		complete_word(typed, text, leaf ? "attribute" : "");
		free(text);
	}
	free(folder);
}

static void complete_in_history(const char *what, bool path, const char *typed)
{
	struct history *h = history_of(what);
	struct topo topo;
	if (h && path) {
		complete_path(h, typed);
	} else if (h && topo_open(&topo, h, NULL) == 0) {
		complete_subject(&topo, typed);
		topo_release(&topo);
	}
	history_close(h);
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

/* The one of "--name=VALUE", or NULL. */
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
		complete_word(typed, text, o->opt[i].help);
		free(text);
	}
	complete_word(typed, "--help", "this text");
}

/* Those that begin with `typed`, behind the `n` characters of it that say the option: "--format=". */
static void complete_value(const struct opt *opt, const char *typed, size_t n)
{
	static const char files[] = " FILE DIR MODEL LAYOUT THEME WHAT ";
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

/* The n-th operand as the usage calls it: "[WHO]"; the last one is repeated where it ends in dots. */
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
	const char *typed = argv[argc - 1], *what = NULL;
	int operands = 0;
	for (int i = FIRST_WORD; i < argc - 1; i++) {
		const struct opt *opt = option_named(o, argv[i]);
		if (opt && opt->kind != OPT_FLAG && i + 1 == argc - 1) {
			complete_value(opt, typed, 0);
			return;
		}
		i += opt && opt->kind != OPT_FLAG;
		if (!opt && argv[i][0] != '-' && operands++ == 0)
			what = argv[i];
	}
	const char *operand = operand_named(o, operands);
	size_t n = strcspn(operand, " ");
	const struct opt *valued = option_valued(o, typed);
	if (valued)
		complete_value(valued, typed, strcspn(typed, "=") + 1);
	else if (*typed == '-')
		complete_options(o, typed);
	else if (strncmp(operand, "PATH", 4) == 0)
		complete_in_history(what, true, typed);
	else if (memmem(operand, n, "WHO", 3) || memmem(operand, n, "VM", 2) || memmem(operand, n, "MACHINE", 7))
		complete_in_history(what, false, typed);
	else if (n)
		puts(":file");
}
