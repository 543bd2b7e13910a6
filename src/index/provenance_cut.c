/* Copies the provenance of a history to a cut of it. */
#include "base/base.h"
#include "index/provenance.h"

#include "base/json_field.h"
#include "index/name_alias.h"

#define NAME_SIZE 512  /* an escaped name's size, bytes, as in put_text() of provenance.c */

static void rename_field(struct json_object *row, const char *key, const struct provenance_cut *how)
{
	char buf[ALIAS_SIZE];
	if (json_object_object_get(row, key))
		json_object_object_add(row, key, json_object_new_string(how->name(how->arg, json_member_text(row, key), buf)));
}

/* Removes the rows of machines that are not selected, and replaces the names in the others. */
static void copy_rows(struct json_object *doc, const char *list, const char *machine, const struct provenance_cut *how)
{
	static const char *const names[] = { "machine", "vm", "guest", "parent", "host_comm", "uuid", "hostname", "vm_id" };
	struct json_object *rows = json_member_array(doc, list), *kept = json_new_array();
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		bool is_host = strcmp(json_member_text(row, "role"), "host") == 0;
		if (!is_host && strcmp(list, "vms") != 0 && !how->wanted(how->arg, json_member_text(row, machine)))
			continue;
		for (size_t k = 0; how->aliases && k < sizeof names / sizeof *names; k++)
			rename_field(row, names[k], how);
		if (how->aliases && json_object_object_get(row, "dir"))
			json_object_object_add(row, "dir", json_object_new_string(""));
		json_object_array_add(kept, json_object_get(row));
	}
	json_object_object_add(doc, list, kept);
}

/* Adds the window and the use of aliases to the recorded options, so that exports of the cut differ from exports of the
 * whole history. */
static void copy_options_text(struct json_object *doc, const struct provenance_cut *how)
{
	bool paper = json_object_get_boolean(json_object_object_get(doc, "paper_states"));
	char *options_text = how->aliases
		? mem_printf("states=%s cut=%" PRId64 "..%" PRId64 " names=hash", paper ? "paper" : "refined", how->from, how->to)
		: mem_printf("%s cut=%" PRId64 "..%" PRId64, json_member_text(doc, "shape"), how->from, how->to);
	json_object_object_add(doc, "shape", json_object_new_string(options_text));
	free(options_text);
}

static int store_notes(const struct notes *notes, struct history_builder *b)
{
	size_t size;
	char *bytes = notes_pack(notes, &size);
	int rc = history_meta_set(b, PROVENANCE_NOTES, bytes, size);
	free(bytes);
	return rc;
}

/* Adds a copy of a note with another machine name and without its text. */
static void add_hidden_note(struct notes *notes, const struct note *n, const char *machine)
{
	notes_copy(notes, n, NULL);
	struct note *hidden = &notes->item[notes->len - 1];
	free(hidden->machine);
	free(hidden->text);
	hidden->machine = mem_dup(machine);
	hidden->text = mem_printf("note about the recording (%s); its text is hidden together with the names",
	                          note_kind_name[n->kind]);
}

/* Copies the notes of selected machines. With aliases, the texts are replaced, because they may contain any name; code,
 * kind, machine and time are kept. */
static int copy_notes(const struct history *h, struct history_builder *b, const struct provenance_cut *how)
{
	struct notes all = { 0 }, kept = { 0 };
	provenance_notes(h, &all);
	for (size_t i = 0; i < all.len; i++) {
		const struct note *n = &all.item[i];
		char name[NAME_SIZE] = "", buf[ALIAS_SIZE];
		if (n->machine)
			text_escape(name, sizeof name, n->machine);
		if (n->machine && strcmp(name, "host") != 0 && !how->wanted(how->arg, name))
			continue;
		if (how->aliases)
			add_hidden_note(&kept, n, n->machine ? how->name(how->arg, name, buf) : NULL);
		else
			notes_copy(&kept, n, NULL);
	}
	int rc = store_notes(&kept, b);
	notes_release(&all);
	notes_release(&kept);
	return rc;
}

int provenance_copy(const struct history *h, struct history_builder *b, const struct provenance_cut *how,
                    struct error *err)
{
	struct json_object *doc = provenance_load(h, err);
	if (!doc)
		return -1;
	json_object_object_add(doc, "files", json_new_array());
	json_object_object_del(doc, "clocks");  /* only needed to read the traces again */
	copy_options_text(doc, how);
	copy_rows(doc, "traces", "machine", how);
	copy_rows(doc, "vms", "vm", how);
	copy_rows(doc, "sync", "guest", how);
	copy_rows(doc, "nudges", "guest", how);
	const char *text = json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN);
	int rc = history_meta_set(b, PROVENANCE_KEY, text, strlen(text));
	json_object_put(doc);
	return rc == 0 ? copy_notes(h, b, how) : rc;
}
