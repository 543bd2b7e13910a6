#include "record/elf_probes.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define FILE_MAX ((size_t)1 << 30)  /* maximum size of a file, bytes */
#define PLACES_MAX 1000000   /* maximum number of functions and sites */
#define TEXT_LEN 1024        /* maximum length of a name or of the arguments */
#define NOTE_STAPSDT 3

struct elf_file {
	const unsigned char *data;
	size_t size;
	Elf64_Ehdr head;
	uint64_t base;  /* address of the section .stapsdt.base; 0: none */
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

/* Returns the text at an offset within [0, end) of the file; NULL: it does not end there, or is longer than TEXT_LEN. */
static const char *text_at(const struct elf_file *f, uint64_t offset, uint64_t end)
{
	if (end > f->size || offset >= end)
		return NULL;
	const size_t max = end - offset < TEXT_LEN ? end - offset : TEXT_LEN;
	return memchr(f->data + offset, '\0', max) ? (const char *)f->data + offset : NULL;
}

static bool read_program(const struct elf_file *f, unsigned i, Elf64_Phdr *p)
{
	return i < f->head.e_phnum && f->head.e_phentsize == sizeof *p &&
	       copy_bytes(f, f->head.e_phoff + (uint64_t)i * sizeof *p, p, sizeof *p);
}

static bool read_section(const struct elf_file *f, unsigned i, Elf64_Shdr *s)
{
	return i < f->head.e_shnum && f->head.e_shentsize == sizeof *s &&
	       copy_bytes(f, f->head.e_shoff + (uint64_t)i * sizeof *s, s, sizeof *s);
}

static const char *section_name(const struct elf_file *f, const Elf64_Shdr *s)
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
	Elf64_Phdr p;
	for (unsigned i = 0; i < f->head.e_phnum && read_program(f, i, &p); i++) {
		if (p.p_type != PT_LOAD || (p.p_flags & flags) != flags || address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz)
			continue;
		const uint64_t offset = address - p.p_vaddr + p.p_offset;
		return offset < f->size && offset >= p.p_offset ? offset : 0;
	}
	return 0;
}

/* ---- static probes */

static void add_place(struct elf_places *out, const char *provider, const char *name, uint64_t offset, uint64_t counter,
                      const char *args)
{
	*ARRAY_PUSH(out->place, out->len, out->cap) = (struct elf_place){
		.provider = provider ? mem_dup(provider) : NULL, .name = mem_dup(name), .offset = offset, .counter = counter,
		.args = args ? mem_dup(args) : NULL };
}

/* Adds the probe of a note: three addresses (site, base, reference counter), then provider, name and arguments. */
static void add_note(const struct elf_file *f, uint64_t at, uint64_t size, struct elf_places *out)
{
	uint64_t address[3];
	const uint64_t end = at + size;
	if (size < sizeof address || !copy_bytes(f, at, address, sizeof address))
		return;
	const char *provider = text_at(f, at + sizeof address, end);
	const char *name = provider ? text_at(f, at + sizeof address + strlen(provider) + 1, end) : NULL;
	const char *args = name ? text_at(f, at + sizeof address + strlen(provider) + strlen(name) + 2, end) : NULL;
	if (!args || !*provider || !*name)
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

static void read_notes(const struct elf_file *f, const Elf64_Shdr *s, struct elf_places *out)
{
	static const char owner[] = "stapsdt";
	Elf64_Nhdr n;
	uint64_t at = s->sh_offset;
	if (at > f->size || s->sh_size > f->size - at)
		return;
	const uint64_t end = at + s->sh_size;
	while (out->len < PLACES_MAX && end - at >= sizeof n && copy_bytes(f, at, &n, sizeof n)) {
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

static void read_symbols(const struct elf_file *f, const Elf64_Shdr *s, struct elf_places *out)
{
	Elf64_Shdr names;
	Elf64_Sym symbol;
	if (s->sh_entsize != sizeof symbol || !read_section(f, s->sh_link, &names) || names.sh_offset > f->size ||
	    names.sh_size > f->size - names.sh_offset || s->sh_offset > f->size || s->sh_size > f->size - s->sh_offset)
		return;
	for (uint64_t i = 0; i < s->sh_size / sizeof symbol && out->len < PLACES_MAX; i++) {
		copy_bytes(f, s->sh_offset + i * sizeof symbol, &symbol, sizeof symbol);
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
			continue;
		const char *name = text_at(f, names.sh_offset + symbol.st_name, names.sh_offset + names.sh_size);
		const uint64_t offset = file_offset(f, symbol.st_value, PF_X);
		if (name && *name && offset)
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
	if (out->len)
		qsort(out->place, out->len, sizeof *out->place, by_name);
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

int elf_places_parse(struct elf_places *p, const void *data, size_t size, const char *path, struct error *err)
{
	struct elf_file f = { .data = data, .size = size };
	Elf64_Shdr s;
	*p = (struct elf_places){ 0 };
	const char *why = copy_bytes(&f, 0, &f.head, sizeof f.head) ? check_head(&f.head) : "not a program or library (ELF)";
	if (why)
		return refuse(path, why, err);
	p->machine = f.head.e_machine;
	for (unsigned i = 0; i < f.head.e_shnum && read_section(&f, i, &s); i++)
		if (strcmp(section_name(&f, &s), ".stapsdt.base") == 0)
			f.base = s.sh_addr;
	for (unsigned i = 0; i < f.head.e_shnum && read_section(&f, i, &s); i++) {
		if (s.sh_type == SHT_NOTE && strcmp(section_name(&f, &s), ".note.stapsdt") == 0)
			read_notes(&f, &s, p);
		else if (s.sh_type == SHT_DYNSYM || s.sh_type == SHT_SYMTAB)
			read_symbols(&f, &s, p);
	}
	sort_places(p);
	return 0;
}

/* Reads the whole file: a mapping would raise SIGBUS if a container truncates the file meanwhile. */
static char *read_file(int fd, size_t size, size_t *len)
{
	char *data = mem_resize(NULL, size, 1);
	ssize_t n = 0;
	for (*len = 0; *len < size && (n = pread(fd, data + *len, size - *len, (off_t)*len)) > 0;)
		*len += (size_t)n;
	if (n < 0) {
		free(data);
		return NULL;
	}
	return data;
}

int elf_places_read(struct elf_places *p, int fd, const char *path, struct error *err)
{
	struct stat st;
	size_t len;
	*p = (struct elf_places){ 0 };
	if (fstat(fd, &st))
		return error_system(err, NULL, "cannot read %s", path);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > FILE_MAX)
		return refuse(path, "not a program or library (ELF)", err);
	char *data = read_file(fd, (size_t)st.st_size, &len);
	if (!data)
		return error_system(err, NULL, "cannot read %s", path);
	const int rc = elf_places_parse(p, data, len, path, err);
	free(data);
	return rc;
}

void elf_places_release(struct elf_places *p)
{
	for (size_t i = 0; i < p->len; i++)
		place_release(&p->place[i]);
	free(p->place);
	*p = (struct elf_places){ 0 };
}
