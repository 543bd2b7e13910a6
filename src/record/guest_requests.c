#include "record/guest_requests.h"

#include <elf.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "record/elf_reader.h"
#include "record/proc.h"
#include "record/request_definitions.h"

#define PROGRAMS_MAX 8                   /* a guest's programs, as in guest.sh */
#define FILE_MAX ((uint64_t)1 << 30)     /* a program's size, bytes */
#define BLOCKS_MAX (64 << 20 >> 12)      /* blocks that are read from all programs of a guest */
#define BATCH_MAX 300                    /* probes of a kind in a program: the commands fit into a pipe */

/* Parts of a file, in the order in which they are read: each shows where the next ones are. */
enum file_part { PART_HEAD, PART_TABLES, PART_SECTIONS, PARTS };

struct blocks { uint64_t first, n; };

struct program {
	uint64_t pid, size;      /* pid 0: it does not run */
	char *path;
};

struct probe { char *name; bool accepted; };  /* name: "_r1/srbn_OP_KIND" */

struct result { const char *kind; const char *path; size_t probes; };

struct guest_requests {
	const struct guest_request_kinds *kinds;
	void (*send)(void *arg, const char *line), (*say)(void *arg, const char *line);
	void *arg;
	struct program program[PROGRAMS_MAX];
	size_t programs;
	bool listed;
	/* the current program */
	size_t at;
	enum file_part part;
	unsigned char *image;    /* the file; parts that were not read are 0. NULL: not begun */
	struct blocks *asked;    /* [answered, n_asked): no answer yet */
	size_t n_asked, answered, asked_cap;
	uint64_t blocks;         /* read from all programs */
	struct elf_reader reader;  /* parses the image; guest_requests_poll() continues when it has ended */
	bool parsed;
	struct elf_places places;
	size_t kind;             /* the current kind */
	size_t batch;            /* probes that the guest is defining; 0: none */
	/* results */
	struct probe *probe;
	size_t probes, probes_cap, numbered;
	struct result *result;
	size_t results, results_cap;
};

/* ---- kinds */

int guest_request_kinds_parse(struct guest_request_kinds *k, const char *const *spec, size_t specs, struct error *err)
{
	*k = (struct guest_request_kinds){ .kind = mem_new(specs, sizeof *k->kind) };
	for (; k->n < specs; k->n++)
		if (!(k->kind[k->n] = request_kind_parse(spec[k->n], err)))
			return error_wrap(err, "--guest-requests");
	return 0;
}

void guest_request_kinds_release(struct guest_request_kinds *k)
{
	for (size_t i = 0; i < k->n; i++)
		request_kind_free(k->kind[i]);
	free(k->kind);
	*k = (struct guest_request_kinds){ 0 };
}

/* Appends words in single quotes; words with quotes or blanks cannot be names of programs of the tables. */
static void add_words(char **text, char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strpbrk(word[i], "' \t\n"))
			continue;
		char *longer = mem_printf("%s %s", *text, word[i]);
		free(*text);
		*text = longer;
	}
}

char *guest_request_kinds_script(const struct guest_request_kinds *k)
{
	char *programs = mem_dup(""), *paths = mem_dup("");
	for (size_t i = 0; i < k->n; i++) {
		add_words(&programs, k->kind[i]->program, k->kind[i]->programs);
		add_words(&paths, k->kind[i]->path, k->kind[i]->paths);
	}
	char *out = mem_printf("programs='%s' paths='%s'", programs, paths);
	free(programs);
	free(paths);
	return out;
}

static bool applies(const struct request_kind *k, const struct program *p)
{
	if (p->pid && request_kind_has_program(k, p->path))
		return true;
	for (size_t i = 0; i < k->paths; i++)
		if (k->by_user ? strcmp(k->path[i], p->path) == 0 : fnmatch(k->path[i], p->path, FNM_PATHNAME) == 0)
			return true;
	return false;
}

/* ---- the session */

static void command(struct guest_requests *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void command(struct guest_requests *r, const char *fmt, ...)
{
	char line[2200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	r->send(r->arg, line);
}

static void report(struct guest_requests *r, const char *kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void report(struct guest_requests *r, const char *kind, const char *fmt, ...)
{
	char text[700], line[800];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(line, sizeof line, "requests %s: %s", kind, text);
	r->say(r->arg, line);
}

struct guest_requests *guest_requests_new(const struct guest_request_kinds *kinds,
                                          void (*send)(void *arg, const char *line),
                                          void (*say)(void *arg, const char *line), void *arg)
{
	struct guest_requests *r = mem_new(1, sizeof *r);
	*r = (struct guest_requests){ .kinds = kinds, .send = send, .say = say, .arg = arg };
	return r;
}

static void leave_program(struct guest_requests *r)
{
	elf_reader_end(&r->reader);
	if (r->image)
		munmap(r->image, r->program[r->at].size);
	if (r->parsed)
		elf_places_release(&r->places);
	r->image = NULL;
	r->parsed = false;
}

void guest_requests_free(struct guest_requests *r)
{
	if (!r)
		return;
	leave_program(r);
	for (size_t i = 0; i < r->programs; i++)
		free(r->program[i].path);
	for (size_t i = 0; i < r->probes; i++)
		free(r->probe[i].name);
	free(r->probe);
	free(r->result);
	free(r->asked);
	free(r);
}

/* ---- parts of a file */

/* Asks for the blocks that contain a range of the current program; a range outside the file is ignored, like blocks above
 * the limit: the parser then finds zeros. */
static void ask(struct guest_requests *r, uint64_t offset, uint64_t bytes)
{
	const uint64_t size = r->program[r->at].size;
	if (offset >= size || bytes == 0)
		return;
	const uint64_t end = bytes > size - offset ? size : offset + bytes;
	const uint64_t last = (end + GUEST_PROGRAM_BLOCK - 1) / GUEST_PROGRAM_BLOCK;
	for (uint64_t first = offset / GUEST_PROGRAM_BLOCK, n; first < last; first += n) {
		n = last - first < GUEST_PROGRAM_BLOCKS ? last - first : GUEST_PROGRAM_BLOCKS;
		if (r->blocks + n > BLOCKS_MAX)
			return;
		r->blocks += n;
		*ARRAY_PUSH(r->asked, r->n_asked, r->asked_cap) = (struct blocks){ first, n };
		command(r, "read %zu %" PRIu64 " %" PRIu64 "\n", r->at + 1, first, n);
	}
}

static bool section(const struct guest_requests *r, const Elf64_Ehdr *head, unsigned i, Elf64_Shdr *s)
{
	const uint64_t size = r->program[r->at].size, at = head->e_shoff + (uint64_t)i * sizeof *s;
	if (i >= head->e_shnum || at < head->e_shoff || size < sizeof *s || at > size - sizeof *s)
		return false;
	memcpy(s, r->image + at, sizeof *s);
	return true;
}

static void ask_sections(struct guest_requests *r, const Elf64_Ehdr *head)
{
	Elf64_Shdr s, linked;
	if (section(r, head, head->e_shstrndx, &s))
		ask(r, s.sh_offset, s.sh_size);
	for (unsigned i = 0; section(r, head, i, &s); i++) {
		const bool symbols = s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM;
		if (symbols || s.sh_type == SHT_NOTE)
			ask(r, s.sh_offset, s.sh_size);
		if (symbols && section(r, head, s.sh_link, &linked))
			ask(r, linked.sh_offset, linked.sh_size);
	}
}

static void ask_part(struct guest_requests *r, enum file_part part)
{
	Elf64_Ehdr head = { 0 };
	memcpy(&head, r->image, r->program[r->at].size < sizeof head ? r->program[r->at].size : sizeof head);
	if (part == PART_HEAD)
		ask(r, 0, sizeof head);
	if (part == PART_HEAD || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	if (part == PART_TABLES) {
		ask(r, head.e_phoff, (uint64_t)head.e_phnum * sizeof(Elf64_Phdr));
		ask(r, head.e_shoff, (uint64_t)head.e_shnum * sizeof(Elf64_Shdr));
	} else {
		ask_sections(r, &head);
	}
}

/* ---- probes */

/* Sends the probes of a kind in the current program. Returns the probe count; 0: it has none. */
static size_t send_probes(struct guest_requests *r, const struct request_kind *k)
{
	struct error err = ERROR_INIT;
	struct request_definitions d = { 0 };
	char shown[300];
	text_escape(shown, sizeof shown, r->program[r->at].path);
	int rc = request_definitions_add(&d, k, &r->places, r->kinds->labels, &err);
	if (rc == 0 && d.n > BATCH_MAX)
		rc = error_set(&err, STATUS_INPUT, NULL, "more than %d probes", BATCH_MAX);
	for (size_t i = 0; i < d.n && rc == 0; i++) {
		char *name = mem_printf("_r%zu/%s", ++r->numbered, d.item[i].event);
		command(r, "probe %zu %s %s %s\n", r->at + 1, d.item[i].type, name, d.item[i].place);
		*ARRAY_PUSH(r->probe, r->probes, r->probes_cap) = (struct probe){ name, false };
	}
	const size_t n = rc ? 0 : d.n;
	if (rc)
		report(r, k->name, "%s: %s", shown, err.text);
	if (n)
		command(r, "commit\n");
	request_definitions_release(&d);
	return n;
}

/* Filter: the places of all kinds. */
static bool is_wanted(const void *arg, const char *provider, const char *name)
{
	const struct guest_request_kinds *kinds = arg;
	for (size_t i = 0; i < kinds->n; i++)
		if (request_definitions_want(kinds->kind[i], provider, name))
			return true;
	return false;
}

static bool start_reader(struct guest_requests *r)
{
	struct error err = ERROR_INIT;
	char shown[300];
	const struct program *p = &r->program[r->at];
	const struct elf_source source = { .path = text_escape(shown, sizeof shown, p->path), .fd = -1, .data = r->image,
		.size = p->size, .filter = { is_wanted, r->kinds } };
	if (elf_reader_start(&r->reader, &source, &err) == 0)
		return true;
	r->say(r->arg, err.text);
	return false;
}

static bool begin_program(struct guest_requests *r)
{
	const size_t size = r->program[r->at].size;
	void *image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	r->image = image == MAP_FAILED ? NULL : image;
	r->part = PART_HEAD;
	r->kind = 0;
	r->n_asked = r->answered = 0;
	return r->image != NULL;
}

/* Continues until the guest or the reader must answer, or everything is done. */
static void proceed(struct guest_requests *r)
{
	while (r->at < r->programs) {
		bool usable = r->image || begin_program(r);
		while (usable && r->part < PARTS && r->answered == r->n_asked)
			ask_part(r, r->part++);
		if (usable && r->answered < r->n_asked)
			return;
		if (usable && !r->parsed && start_reader(r))
			return;
		usable = usable && r->parsed;
		for (; usable && r->kind < r->kinds->n; r->kind++)
			if (applies(r->kinds->kind[r->kind], &r->program[r->at]) &&
			    (r->batch = send_probes(r, r->kinds->kind[r->kind])) > 0)
				return;
		leave_program(r);
		r->at++;
	}
	for (size_t k = 0; k < r->kinds->n; k++) {
		const struct request_kind *kind = r->kinds->kind[k];
		bool found = false;
		for (size_t i = 0; i < r->programs; i++)
			found |= applies(kind, &r->program[i]);
		if (!found)
			report(r, kind->name, "no program %s", kind->programs ? kind->program[0] : kind->path[0]);
	}
	command(r, "requests_end\n");
}

int guest_requests_fd(const struct guest_requests *r)
{
	return r && r->reader.pid ? r->reader.fd : -1;
}

void guest_requests_poll(struct guest_requests *r)
{
	struct error err = ERROR_INIT;
	if (guest_requests_fd(r) < 0)
		return;
	const int rc = elf_reader_poll(&r->reader, &r->places, &err);
	if (rc == 1)
		return;
	r->parsed = rc == 0;
	if (rc) {
		r->say(r->arg, err.text);
		leave_program(r);
		r->at++;
	}
	proceed(r);
}

/* ---- frames */

/* Parses the line "PID BYTES PATH". */
static bool parse_program(char *line, struct program *p)
{
	char *size = strchr(line, ' '), *path = size ? strchr(size + 1, ' ') : NULL;
	if (!path)
		return false;
	*size++ = *path++ = '\0';
	*p = (struct program){ 0 };
	if (!proc_parse_number(line, INT32_MAX, &p->pid) || !proc_parse_number(size, FILE_MAX, &p->size) || p->size == 0 ||
	    *path != '/')
		return false;
	p->path = mem_dup(path);
	return true;
}

int guest_requests_list(struct guest_requests *r, const char *text, struct error *err)
{
	char *copy = mem_dup(text), *rest = NULL;
	bool good = !r->listed;
	for (char *line = strtok_r(copy, "\n", &rest); line && good; line = strtok_r(NULL, "\n", &rest)) {
		good = r->programs < PROGRAMS_MAX && parse_program(line, &r->program[r->programs]);
		r->programs += good;
	}
	free(copy);
	r->listed = true;
	if (!good)
		return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent a malformed list of programs");
	proceed(r);
	return 0;
}

int guest_requests_read(struct guest_requests *r, const char *data, size_t len, struct error *err)
{
	if (r->at >= r->programs || !r->image || r->answered == r->n_asked)
		return error_set(err, STATUS_INPUT, NULL,
		                 "protocol error: the guest sent a part of a program that was not requested");
	const struct blocks *b = &r->asked[r->answered];
	const uint64_t at = b->first * GUEST_PROGRAM_BLOCK, size = r->program[r->at].size;
	const uint64_t bytes = size - at < b->n * GUEST_PROGRAM_BLOCK ? size - at : b->n * GUEST_PROGRAM_BLOCK;
	if (len != bytes)
		return error_set(err, STATUS_INPUT, NULL,
		                 "protocol error: the guest sent another part of a program than requested");
	memcpy(r->image + at, data, len);
	r->answered++;
	proceed(r);
	return 0;
}

int guest_requests_defined(struct guest_requests *r, const char *text, struct error *err)
{
	const size_t batch = r->batch;
	if (!batch)
		return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest defined probes that were not requested");
	const char *kind = r->kinds->kind[r->kind]->name;
	char shown[300];
	text_escape(shown, sizeof shown, r->program[r->at].path);
	if (strcmp(text, "failed 0") == 0) {
		*ARRAY_PUSH(r->result, r->results, r->results_cap) = (struct result){ kind, r->program[r->at].path, batch };
		report(r, kind, "%zu probe%s in %s%s", batch, batch == 1 ? "" : "s", shown,
		    r->program[r->at].pid ? "" : " (does not run)");
	} else {
		report(r, kind, "%s: the guest's kernel refused the probes", shown);
		for (size_t i = 0; i < batch; i++)
			free(r->probe[--r->probes].name);
	}
	r->batch = 0;
	r->kind++;
	proceed(r);
	return 0;
}

/* ---- results */

bool guest_requests_accept(struct guest_requests *r, const char *event)
{
	static const char digits[] = "0123456789", group[] = "stealscope_";
	const char *at = event + sizeof group - 1;
	if (strncmp(event, group, sizeof group - 1) != 0 || strlen(event) > 200)
		return false;
	at += strspn(at, digits);
	at += *at == '_';
	at += strspn(at, digits);
	for (size_t i = 0; i < r->probes; i++)
		if (strcmp(r->probe[i].name, at) == 0 && !r->probe[i].accepted)
			return r->probe[i].accepted = true;
	return false;
}

void guest_requests_put(const struct guest_requests *r, struct yaml_out *o)
{
	const int list = r && r->results ? yaml_out_list(o, YAML_OUT_ROOT, "requests") : 0;
	for (size_t i = 0; r && i < r->results; i++) {
		const int map = yaml_out_map(o, list, NULL);
		yaml_out_text(o, map, "kind", r->result[i].kind);
		yaml_out_escaped(o, map, "path", r->result[i].path);
		yaml_out_number(o, map, "probes", (int64_t)r->result[i].probes);
	}
}
