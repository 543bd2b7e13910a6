#include "record/elf_probes.h"

#include <elf.h>

#define PLACES_MAX 1000000   /* most functions and sites */
#define WANTED_MAX 10000     /* the same with a filter */
#define SEGMENTS_MAX 64      /* maximum loaded segment count */
#define TEXT_LEN 1024        /* maximum length of a name or of the arguments */
#define NOTE_STAPSDT 3
#define NAMES_MAX 2          /* maximum ratio of the bytes of all names, of .dynsym and .symtab, to the file's size */

struct elf_file {
	const unsigned char *data;
	size_t size;
	Elf64_Ehdr head;
	uint64_t base;  /* the section's address .stapsdt.base; 0: none */
	Elf64_Phdr segment[SEGMENTS_MAX];  /* those that are loaded */
	unsigned segments;
	uint64_t tables, names;  /* bytes of the tables and of the names that may still be read */
	const struct elf_filter *filter;
};

static int refuse(const char *path, const char *reason, struct error *err)
{
	return error_set(err, STATUS_INPUT, NULL, "%s: %s", path, reason);
}

/* Copies `size` bytes at an offset. Returns false if they are outside the file. */
static bool copy_bytes(const struct elf_file *f, uint64_t offset, void *to, size_t size)
{
	if (offset > f->size || size > f->size - offset)
		return false;
	memcpy(to, f->data + offset, size);
	return true;
}

/* Returns the text at an offset within [0, end) of the file. NULL: it does not end there, is longer than TEXT_LEN, or the
 * texts that were read before are longer than the file allows. */
static const char *text_at(struct elf_file *f, uint64_t offset, uint64_t end)
{
	if (end > f->size || offset >= end || !f->names)
		return NULL;
	const size_t max = end - offset < TEXT_LEN ? end - offset : TEXT_LEN;
	const char *text = (const char *)f->data + offset, *stop = memchr(text, '\0', max);
	const uint64_t n = stop ? (uint64_t)(stop - text) + 1 : max;
	f->names = n > f->names ? 0 : f->names - n;
	return f->names && stop ? text : NULL;
}

/* Lists the loaded segments. Returns false if there are more than SEGMENTS_MAX. */
static bool read_segments(struct elf_file *f)
{
	Elf64_Phdr p;
	for (unsigned i = 0; i < f->head.e_phnum && f->head.e_phentsize == sizeof p; i++) {
		if (!copy_bytes(f, f->head.e_phoff + (uint64_t)i * sizeof p, &p, sizeof p))
			break;
		if (p.p_type == PT_LOAD && f->segments == SEGMENTS_MAX)
			return false;
		if (p.p_type == PT_LOAD)
			f->segment[f->segments++] = p;
	}
	return true;
}

static bool read_section(const struct elf_file *f, unsigned i, Elf64_Shdr *s)
{
	return i < f->head.e_shnum && f->head.e_shentsize == sizeof *s &&
	       copy_bytes(f, f->head.e_shoff + (uint64_t)i * sizeof *s, s, sizeof *s);
}

static const char *section_name(struct elf_file *f, const Elf64_Shdr *s)
{
	Elf64_Shdr names;
	if (!read_section(f, f->head.e_shstrndx, &names) || names.sh_offset > f->size ||
	    names.sh_size > f->size - names.sh_offset)
		return "";
	const char *name = text_at(f, names.sh_offset + s->sh_name, names.sh_offset + names.sh_size);
	return name ? name : "";
}

/* Converts an address to an offset in the file by the loaded segments with these flags. Returns 0 if there is none. */
static uint64_t file_offset(const struct elf_file *f, uint64_t address, unsigned flags)
{
	for (unsigned i = 0; i < f->segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];
		if ((p->p_flags & flags) != flags || address < p->p_vaddr || address - p->p_vaddr >= p->p_filesz)
			continue;
		const uint64_t offset = address - p->p_vaddr + p->p_offset;
		return offset < f->size && offset >= p->p_offset ? offset : 0;
	}
	return 0;
}

/* ---- static probes */

/* Returns true if more places can be stored. */
static bool has_room(const struct elf_file *f, const struct elf_places *out)
{
	return out->len < (f->filter && f->filter->wants ? WANTED_MAX : PLACES_MAX);
}

static bool is_wanted(const struct elf_file *f, const char *provider, const char *name)
{
	return !f->filter || !f->filter->wants || f->filter->wants(f->filter->arg, provider, name);
}

static void add_place(struct elf_places *out, const char *provider, const char *name, uint64_t offset, uint64_t counter,
                      const char *args)
{
	*ARRAY_PUSH(out->place, out->len, out->cap) = (struct elf_place){
		.provider = provider ? mem_dup(provider) : NULL, .name = mem_dup(name), .offset = offset, .counter = counter,
		.args = args ? mem_dup(args) : NULL };
}

/* Adds a note's probe: three addresses (site, base, reference counter), then provider, name and arguments. */
static void add_note(struct elf_file *f, uint64_t at, uint64_t size, struct elf_places *out)
{
	uint64_t address[3];
	const uint64_t end = at + size;
	if (size < sizeof address || !copy_bytes(f, at, address, sizeof address))
		return;
	const char *provider = text_at(f, at + sizeof address, end);
	const char *name = provider ? text_at(f, at + sizeof address + strlen(provider) + 1, end) : NULL;
	const char *args = name ? text_at(f, at + sizeof address + strlen(provider) + strlen(name) + 2, end) : NULL;
	if (!args || !*provider || !*name || !is_wanted(f, provider, name))
		return;
	const uint64_t moved = f->base && address[1] ? f->base - address[1] : 0;  /* by a prelinker */
	const uint64_t site = file_offset(f, address[0] + moved, PF_X);
	const uint64_t counter = address[2] ? file_offset(f, address[2] + moved, PF_W) : 0;
	if (!site || (address[2] && !counter))
		out->skipped++;
	else
		add_place(out, provider, name, site, counter, args);
}

static uint64_t round_up(uint64_t n)
{
	return (n + 3) & ~(uint64_t)3;
}

static void read_notes(struct elf_file *f, const Elf64_Shdr *s, struct elf_places *out)
{
	static const char owner[] = "stapsdt";
	Elf64_Nhdr n;
	uint64_t at = s->sh_offset;
	const uint64_t end = at + s->sh_size;
	while (has_room(f, out) && end - at >= sizeof n && copy_bytes(f, at, &n, sizeof n)) {
		const uint64_t text = at + sizeof n, body = text + round_up(n.n_namesz), next = body + round_up(n.n_descsz);
		if (body > end || n.n_descsz > end - body)
			return;
		if (n.n_type == NOTE_STAPSDT && n.n_namesz == sizeof owner && memcmp(f->data + text, owner, sizeof owner) == 0)
			add_note(f, body, n.n_descsz, out);
		if (next > end)
			return;
		at = next;
	}
}

/* ---- functions */

static void read_symbols(struct elf_file *f, const Elf64_Shdr *s, struct elf_places *out)
{
	Elf64_Shdr names;
	Elf64_Sym symbol;
	if (s->sh_entsize != sizeof symbol || !read_section(f, s->sh_link, &names) || names.sh_offset > f->size ||
	    names.sh_size > f->size - names.sh_offset)
		return;
	for (uint64_t i = 0; i < s->sh_size / sizeof symbol && has_room(f, out) && f->names; i++) {
		copy_bytes(f, s->sh_offset + i * sizeof symbol, &symbol, sizeof symbol);
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
			continue;
		const char *name = text_at(f, names.sh_offset + symbol.st_name, names.sh_offset + names.sh_size);
		if (!name || !*name || !is_wanted(f, NULL, name))
			continue;
		const uint64_t offset = file_offset(f, symbol.st_value, PF_X);
		if (offset)
			add_place(out, NULL, name, offset, 0, NULL);
	}
}

static int by_name(const void *pa, const void *pb)
{
	const struct elf_place *a = pa, *b = pb;
	if (!a->provider != !b->provider)
		return a->provider ? -1 : 1;
	int c = a->provider ? strcmp(a->provider, b->provider) : 0;
	if (c == 0)
		c = strcmp(a->name, b->name);
	return c ? c : (a->offset > b->offset) - (a->offset < b->offset);
}

static void place_release(struct elf_place *p)
{
	free(p->provider);
	free(p->name);
	free(p->args);
}

/* Sorts the places and removes repeated ones: .symtab contains the symbols of .dynsym. */
static void sort_places(struct elf_places *out)
{
	size_t n = 0;
	ARRAY_SORT(out->place, out->len, by_name);
	for (size_t i = 0; i < out->len; i++) {
		if (n && by_name(&out->place[n - 1], &out->place[i]) == 0)
			place_release(&out->place[i]);
		else
			out->place[n++] = out->place[i];
	}
	out->len = n;
}

/* ---- public functions */

static const char *check_head(const Elf64_Ehdr *h)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
	const unsigned char order = ELFDATA2LSB;
#else
	const unsigned char order = ELFDATA2MSB;
#endif
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return "not a program or library (ELF)";
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return "32-bit programs cannot be probed";
	if (h->e_ident[EI_DATA] != order)
		return "the program is for another machine";
	return h->e_type == ET_EXEC || h->e_type == ET_DYN ? NULL : "not a program or library (ELF)";
}

/* Reads the tables. Returns the reason why the file is refused; NULL: it was read. */
static const char *read_tables(struct elf_file *f, struct elf_places *p)
{
	Elf64_Shdr s;
	for (unsigned i = 0; i < f->head.e_shnum && read_section(f, i, &s); i++)
		if (strcmp(section_name(f, &s), ".stapsdt.base") == 0)
			f->base = s.sh_addr;
	for (unsigned i = 0; i < f->head.e_shnum && read_section(f, i, &s); i++) {
		const bool notes = s.sh_type == SHT_NOTE && strcmp(section_name(f, &s), ".note.stapsdt") == 0;
		if (!notes && s.sh_type != SHT_DYNSYM && s.sh_type != SHT_SYMTAB)
			continue;
		if (s.sh_offset > f->size || s.sh_size > f->size - s.sh_offset)
			continue;
		if (s.sh_size > f->tables)
			return "its tables of symbols overlap";
		f->tables -= s.sh_size;
		if (notes)
			read_notes(f, &s, p);
		else
			read_symbols(f, &s, p);
	}
	return f->names ? NULL : "its names are longer than the file";
}

int elf_places_parse(struct elf_places *p, const void *data, size_t size, const char *path, const struct elf_filter *filter,
                     struct error *err)
{
	struct elf_file f = { .data = data, .size = size, .tables = size, .names = NAMES_MAX * (uint64_t)size + TEXT_LEN,
		.filter = filter };
	*p = (struct elf_places){ 0 };
	const char *why = copy_bytes(&f, 0, &f.head, sizeof f.head) ? check_head(&f.head) : "not a program or library (ELF)";
	if (!why && !read_segments(&f))
		why = "it has too many segments";
	if (!why)
		why = read_tables(&f, p);
	if (why) {
		elf_places_release(p);
		return refuse(path, why, err);
	}
	p->machine = f.head.e_machine;
	sort_places(p);
	return 0;
}

void elf_places_release(struct elf_places *p)
{
	for (size_t i = 0; i < p->len; i++)
		place_release(&p->place[i]);
	free(p->place);
	*p = (struct elf_places){ 0 };
}
