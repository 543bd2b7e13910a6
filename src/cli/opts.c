#include "cli/opts.h"

#include <getopt.h>

#include "base/suggest.h"
#include "cli/complete.h"
#include "cli/examples.h"

#define LONG_BASE 256  /* getopt values of options: LONG_BASE + index */

/* Formats "-o, --output FILE"; returns its length. */
static int option_label(char label[64], const struct opt *opt)
{
	return snprintf(label, 64, "%c%c%s--%s%s%s", opt->letter ? '-' : ' ', opt->letter ? opt->letter : ' ',
	                opt->letter ? ", " : "  ", opt->name, opt->arg ? " " : "", opt->arg ? opt->arg : "");
}

static int print_help(const struct opts *o, struct error *err)
{
	char label[64];
	int width = 0;
	for (size_t i = 0; i < o->len; i++) {
		int n = o->opt[i].help ? option_label(label, &o->opt[i]) : 0;
		width = n > width ? n : width;
	}
	printf("usage: stealscope %s%s\n%s\n", o->usage, o->len ? " [OPTION...]" : "", o->about);
	for (size_t i = 0; i < o->len; i++) {
		if (!o->opt[i].help)
			continue;
		option_label(label, &o->opt[i]);
		printf("  %-*s  %s\n", width, label, o->opt[i].help);
	}
	printf("  %-*s  this text\n", width, "    --help");
	examples_print(o->usage);
	return fflush(stdout) ? error_system(err, NULL, "cannot write to standard output") : 0;
}

static int set_choice(const struct opt *opt, const char *text, struct error *err)
{
	char all[200] = "";
	for (int i = 0; opt->choice[i]; i++) {
		if (strcmp(opt->choice[i], text) == 0) {
			*(int *)opt->dest = i;
			return 0;
		}
		size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "one of ", opt->choice[i]);
	}
	return error_set(err, STATUS_USAGE, all, "--%s: invalid value '%s'", opt->name, text);
}

static int set_value(const struct opt *opt, const char *text, struct error *err)
{
	char *rest = NULL;
	switch (opt->kind) {
	case OPT_FLAG:
		*(bool *)opt->dest = true;
		return 0;
	case OPT_TEXT:
		*(const char **)opt->dest = text;
		return 0;
	case OPT_LIST: {
		struct opt_list *list = opt->dest;
		*ARRAY_PUSH(list->item, list->len, list->cap) = text;
		return 0;
	}
	case OPT_COUNT: {
		unsigned long v = strtoul(text, &rest, 10);
		if (*rest || rest == text || *text == '-' || v > 1000000000)
			return error_set(err, STATUS_USAGE, "use a whole number", "--%s: not a number: '%s'", opt->name, text);
		*(unsigned *)opt->dest = (unsigned)v;
		return 0;
	}
	case OPT_PERCENT: {
		double v = strtod(text, &rest);
		if (rest == text || (*rest && strcmp(rest, "%") != 0) || !(v >= 0 && v <= 100))
			return error_set(err, STATUS_USAGE, "use a percentage, for example 0.5", "--%s: not a share: '%s'", opt->name,
			                 text);
		*(double *)opt->dest = v / 100;
		return 0;
	}
	case OPT_CHOICE:
		return set_choice(opt, text, err);
	}
	return 0;
}

/* word: wrong word of the command line, or NULL; suggested: suggested option, or NULL. */
static int usage_error(const struct opts *o, const char *word, const char *problem, const char *suggested,
                       struct error *err)
{
	char remedy[200];
	snprintf(remedy, sizeof remedy, "%s%s%susage: stealscope %s; see --help", suggested ? "did you mean --" : "",
	         suggested ? suggested : "", suggested ? "? " : "", o->usage);
	return error_set(err, STATUS_USAGE, remedy, "%s%s%s", word ? word : "", word ? ": " : "", problem);
}

static int report_unknown_option(const struct opts *o, const char *arg, struct error *err)
{
	const char *word = arg + strspn(arg, "-");
	char *name = mem_printf("%.*s", (int)strcspn(word, "="), word);
	struct suggestion suggestion = SUGGESTION(name);
	const bool is_long = arg[0] == '-' && arg[1] == '-' && strlen(name) > 3;  /* three letters resemble too many names */
	for (size_t i = 0; i < o->len && is_long; i++)
		suggest(&suggestion, o->opt[i].name);
	free(name);
	return usage_error(o, arg, "unrecognized option", suggestion.nearest, err);
}

static void fill_getopt(const struct opts *o, struct option *longopt, char *letters)
{
	size_t n = 0;
	letters[n++] = ':';
	for (size_t i = 0; i < o->len; i++) {
		bool has_arg = o->opt[i].kind != OPT_FLAG;
		longopt[i] = (struct option){ o->opt[i].name, has_arg, NULL, LONG_BASE + (int)i };
		if (o->opt[i].letter) {
			letters[n++] = o->opt[i].letter;
			if (has_arg)
				letters[n++] = ':';
		}
	}
	letters[n] = '\0';
	longopt[o->len] = (struct option){ "help", 0, NULL, LONG_BASE + (int)o->len };
}

static const struct opt *find_option(const struct opts *o, int c)
{
	if (c >= LONG_BASE)
		return &o->opt[c - LONG_BASE];
	for (size_t i = 0; i < o->len; i++)
		if (o->opt[i].letter == c)
			return &o->opt[i];
	return NULL;
}

static int parse_arguments(const struct opts *o, const struct option *longopt, const char *letters, int argc, char **argv,
                 struct error *err)
{
	int c;
	opterr = 0;
	optind = 0;  /* reset getopt after the main command line */
	while ((c = getopt_long(argc, argv, letters, longopt, NULL)) != -1) {
		if (c == LONG_BASE + (int)o->len) {
			if (print_help(o, err))
				return -1;
			exit(STATUS_OK);
		}
		if (c == ':')
			return usage_error(o, argv[optind - 1], "requires an argument", NULL, err);
		const struct opt *opt = c == '?' ? NULL : find_option(o, c);
		if (!opt)
			return report_unknown_option(o, argv[optind - 1], err);
		if (set_value(opt, optarg, err))
			return -1;
	}
	return 0;
}

int opts_parse(const struct opts *o, int argc, char **argv, int *first, struct error *err)
{
	if (completion_requested(argc, argv)) {
		complete_arguments(o, argc, argv);
		exit(STATUS_OK);
	}
	struct option *longopt = mem_new(o->len + 2, sizeof *longopt);
	char *letters = mem_new(2 * o->len + 2, 1);
	fill_getopt(o, longopt, letters);
	int rc = parse_arguments(o, longopt, letters, argc, argv, err);
	free(longopt);
	free(letters);
	if (rc)
		return -1;
	*first = optind;
	if (argc - optind < o->min_operands)
		return usage_error(o, NULL, "missing operand", NULL, err);
	for (int i = optind; i < argc; i++)
		if (!argv[i][0])
			return error_set(err, STATUS_USAGE, "is a variable unset?", "'': operand %d is empty", i - optind + 1);
	if (o->max_operands >= 0 && argc - optind > o->max_operands)
		return usage_error(o, argv[optind + o->max_operands], "extra operand", NULL, err);
	return 0;
}
