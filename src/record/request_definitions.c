#include "record/request_definitions.h"

static bool is_place_of(const struct request_probe *p, const char *provider, const char *name)
{
	return !p->provider == !provider && strcmp(p->name, name) == 0 && (!p->provider || strcmp(p->provider, provider) == 0);
}

bool request_definitions_want(const void *arg, const char *provider, const char *name)
{
	const struct request_kind *k = arg;
	for (size_t i = 0; i < k->probes; i++)
		if (is_place_of(&k->probe[i], provider, name))
			return true;
	return false;
}

/* Returns a probe's fetch arguments: " key=%di:u64 stack=$stack:u64"; NULL with *err. */
static char *fetch_args(const struct elf_places *places, const struct elf_place *place, const struct request_probe *p,
                        bool has_calls, struct error *err)
{
	const char *stack = has_calls && (request_probe_starts(p) || p->op == REQUEST_OP_END) ? " stack=$stack:u64" : "";
	if (p->key == PROBE_KEY_NONE)
		return mem_dup(stack);
	if (p->key == PROBE_KEY_RETVAL)
		return mem_printf(" key=$retval:u64%s", stack);
	char *arg = elf_place_arg(places, place, p->key, err);
	char *out = arg ? mem_printf(" key=%s%s", arg, stack) : NULL;
	free(arg);
	return out;
}

/* Returns the label's fetch argument, " label=+0(%di):string"; NULL with *err. */
static char *fetch_label(const struct elf_places *places, const struct elf_place *place, unsigned n, struct error *err)
{
	char *arg = elf_place_arg(places, place, n, err);
	if (!arg)
		return NULL;
	char *out = mem_printf(" label=+0(%.*s):string", (int)strcspn(arg, ":"), arg);
	free(arg);
	return out;
}

static int add_place(struct request_definitions *d, const struct request_kind *k, const struct request_probe *p,
                     const struct elf_places *places, const struct elf_place *place, bool labels, struct error *err)
{
	char counter[32] = "";
	char *args = fetch_args(places, place, p, request_kind_has_calls(k), err);
	char *label = !args ? NULL : labels && p->label ? fetch_label(places, place, p->label, err) : mem_dup("");
	if (label) {
		if (place->counter)
			snprintf(counter, sizeof counter, "(0x%llx)", (unsigned long long)place->counter);
		*ARRAY_PUSH(d->item, d->n, d->cap) = (struct request_definition){
			p->at_return ? "r" : "p", mem_printf("srbn_%s_%s", request_op_name[p->op], k->name),
			mem_printf("0x%llx%s%s%s", (unsigned long long)place->offset, counter, args, label), place->counter != 0 };
	}
	const int rc = label ? 0 : -1;
	free(args);
	free(label);
	return rc;
}

/* Adds the definitions at all places of one probe. */
static int add_probe(struct request_definitions *d, const struct request_kind *k, const struct request_probe *p,
                     const struct elf_places *places, bool labels, struct error *err)
{
	const size_t before = d->n;
	for (size_t i = 0; i < places->len; i++) {
		const struct elf_place *place = &places->place[i];
		if (is_place_of(p, place->provider, place->name) && add_place(d, k, p, places, place, labels, err))
			return -1;
	}
	if (d->n > before || p->optional)
		return 0;
	return error_set(err, STATUS_INPUT, "--list-requests PATH lists the functions and probes of a program", "no %s %s%s%s",
	                 p->provider ? "static probe" : "function", p->provider ? p->provider : "", p->provider ? ":" : "",
	                 p->name);
}

int request_definitions_add(struct request_definitions *d, const struct request_kind *k, const struct elf_places *places,
                            bool labels, struct error *err)
{
	for (size_t i = 0; i < k->probes; i++)
		if (add_probe(d, k, &k->probe[i], places, labels, err))
			return -1;
	return 0;
}

void request_definitions_release(struct request_definitions *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->item[i].event);
		free(d->item[i].place);
	}
	free(d->item);
	*d = (struct request_definitions){ 0 };
}
