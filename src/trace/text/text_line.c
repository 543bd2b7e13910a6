#include "trace/text/text_line.h"

#include <ctype.h>

/* A part of the line that is still to be parsed. */
struct text_rest { const char *at, *end; };

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_spaces(struct text_rest *r)
{
	while (r->at < r->end && is_space(*r->at))
		r->at++;
}

static bool take(struct text_rest *r, const char *word)
{
	const size_t n = strlen(word);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

/* Reads digits. Returns their number; 0: none, or too large. */
static size_t take_digits(struct text_rest *r, int64_t *value)
{
	const char *begin = r->at;
	int64_t v = 0;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		if (v > INT64_MAX / 100)
			return 0;
		v = 10 * v + (*r->at++ - '0');
	}
	*value = v;
	return (size_t)(r->at - begin);
}

/* ---- the line */

/* Reads "54543.123456:". */
static bool take_time(struct text_rest *r, struct text_line *out)
{
	int64_t s, part;
	if (!take_digits(r, &s) || !take(r, "."))
		return false;
	const size_t digits = take_digits(r, &part);
	if (digits == 0 || digits > 9 || s > INT64_MAX / 4 / NS_PER_S || !take(r, ":"))
		return false;
	out->precision = 1;
	for (size_t i = digits; i < 9; i++)
		out->precision *= 10;
	out->ns = s * NS_PER_S + part * out->precision;
	return true;
}

/* Reads the CPU, flags and time from "[001] d..2. 54543.123456:". */
static bool take_cpu_and_time(struct text_rest *r, struct text_line *out)
{
	int64_t cpu;
	if (!take(r, "[") || !take_digits(r, &cpu) || !take(r, "]") || cpu > UINT16_MAX || r->at == r->end || !is_space(*r->at))
		return false;
	out->cpu = (uint32_t)cpu;
	skip_spaces(r);
	const struct text_rest flags = *r;
	if (take_time(r, out))
		return true;
	*r = flags;
	while (r->at < r->end && !is_space(*r->at))
		r->at++;
	if (r->at - flags.at > 12)
		return false;
	skip_spaces(r);
	return take_time(r, out);
}

/* Parses the text before the CPU: "bash-2163", "bash-2163 (2160)", "bash 2163", "bash 2160/2163". */
static bool parse_thread(const char *begin, const char *end, struct text_line *out)
{
	while (end > begin && is_space(end[-1]))
		end--;
	out->pid = -1;
	if (end > begin && end[-1] == ')') {
		const char *open = end - 1;
		while (open > begin && *open != '(')
			open--;
		struct text_rest group = { open + 1, end - 1 };
		int64_t pid;
		skip_spaces(&group);
		if (take_digits(&group, &pid) && pid <= INT32_MAX)
			out->pid = (int32_t)pid;
		end = open;
		while (end > begin && is_space(end[-1]))
			end--;
	}
	const char *digits = end;
	while (digits > begin && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	struct text_rest number = { digits, end };
	int64_t tid, pid;
	if (digits == begin || !take_digits(&number, &tid) || tid > INT32_MAX)
		return false;
	out->tid = (int32_t)tid;
	if (digits[-1] == '/') {
		const char *process = digits - 1;
		while (process > begin && process[-1] >= '0' && process[-1] <= '9')
			process--;
		number = (struct text_rest){ process, digits - 1 };
		if (process == begin || !take_digits(&number, &pid) || pid > INT32_MAX)
			return false;
		out->pid = (int32_t)pid;
		digits = process;
	}
	out->is_perf = digits[-1] != '-';
	if (out->is_perf && !is_space(digits[-1]))
		return false;
	end = digits - 1;
	while (end > begin && is_space(end[-1]))
		end--;
	while (begin < end && is_space(*begin))
		begin++;
	const bool is_unknown = end > begin && *begin == '<' && end[-1] == '>';  /* <...>, <idle> */
	out->comm = begin;
	out->comm_len = is_unknown ? 0 : (size_t)(end - begin);
	return true;
}

/* Reads "sched:sched_switch:" or "sched_switch:", after a sample's period. */
static bool take_event(struct text_rest *r, struct text_line *out)
{
	int64_t period;
	skip_spaces(r);
	const struct text_rest before = *r;
	if (!take_digits(r, &period) || r->at == r->end || !is_space(*r->at))
		*r = before;
	skip_spaces(r);
	const char *name = r->at;
	while (r->at < r->end && (isalnum((unsigned char)*r->at) || (*r->at && strchr("_-.:/", *r->at))))
		r->at++;
	const char *end = r->at;
	if (end == name || end[-1] != ':')
		return false;
	end--;
	for (const char *p = name; p < end; p++)
		if (*p == ':')
			name = p + 1;
	if (end <= name || (size_t)(end - name) >= TEXT_NAME_MAX)
		return false;
	memcpy(out->event, name, (size_t)(end - name));
	out->event[end - name] = '\0';
	return true;
}

bool text_line_parse(const char *line, size_t len, struct text_line *out)
{
	const char *end = line + len;
	for (const char *at = line; (at = memchr(at, '[', (size_t)(end - at))); at++) {
		struct text_rest r = { at, end };
		if (!take_cpu_and_time(&r, out))
			continue;
		if (!parse_thread(line, at, out) || !take_event(&r, out))
			return false;
		skip_spaces(&r);
		out->fields = r.at;
		out->fields_len = (size_t)(end - r.at);
		return true;
	}
	return false;
}

bool text_line_is_loss(const char *line, size_t len, uint32_t *cpu, int64_t *count)
{
	struct text_rest r = { line, line + len };
	int64_t number;
	if (!take(&r, "CPU:") || !take_digits(&r, &number) || number > UINT16_MAX || !take(&r, " [LOST "))
		return false;
	*cpu = (uint32_t)number;
	if (!take_digits(&r, count))
		*count = -1;
	return true;
}

/* ---- fields */

static struct text_field *add_field(struct text_fields *f, const char *name, size_t name_len)
{
	if (f->len == TEXT_FIELDS_MAX)
		return NULL;
	struct text_field *field = &f->field[f->len++];
	*field = (struct text_field){ .name = name, .name_len = name_len };
	return field;
}

static void add_text(struct text_fields *f, const char *name, const char *text, size_t len)
{
	struct text_field *field = add_field(f, name, strlen(name));
	if (!field)
		return;
	field->text = text;
	field->len = len;
	field->is_text = true;
}

static void add_number(struct text_fields *f, const char *name, int64_t number)
{
	struct text_field *field = add_field(f, name, strlen(name));
	if (field)
		field->number = number;
}

/* Returns true for the names of fields that contain texts, whatever their values look like. */
static bool is_text_name(const char *name, size_t len)
{
	static const char *const names[] = { "comm", "name", "filename", "buf", "label" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const size_t n = strlen(names[i]);
		if (len >= n && memcmp(name + len - n, names[i], n) == 0)
			return true;
	}
	return false;
}

/* Converts the letters of a thread state to the kernel's number: "S", "R+", "D|W". Returns false for other texts. */
static bool parse_state(const char *text, size_t len, int64_t *state)
{
	static const char letters[] = "SDTtXZPI";  /* bits 0, 1 ... of the state */
	if (len == 0 || !isalpha((unsigned char)*text))
		return false;
	*state = 0;
	for (size_t i = 0; i < len; i++) {
		const char *bit = text[i] == 'x' ? letters + 4 : strchr(letters, text[i]);
		if (bit && *bit)
			*state |= 1 << (bit - letters);
	}
	return true;
}

static void set_value(struct text_field *field, const char *text, size_t len)
{
	char copy[32], *rest = copy;
	field->text = text;
	field->len = len;
	field->is_text = is_text_name(field->name, field->name_len);
	if (field->is_text)
		return;
	if (len < sizeof copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
		field->number = (int64_t)(*copy == '-' ? (unsigned long long)strtoll(copy, &rest, 10)
		                                       : strtoull(copy, &rest, strncmp(copy, "0x", 2) == 0 ? 16 : 10));
	}
	const bool is_number = rest > copy && !*rest;
	static const char state[] = "prev_state";
	if (!is_number && !(field->name_len == sizeof state - 1 && memcmp(field->name, state, sizeof state - 1) == 0 &&
	                    parse_state(text, len, &field->number)))
		field->is_text = true;
}

/* Returns the start of the next "NAME=" after a space, or the end. Values may contain spaces. */
static const char *next_name(const char *at, const char *end)
{
	for (; at < end; at++) {
		const char *p = at + 1;
		if (!is_space(*at))
			continue;
		while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
			p++;
		if (p > at + 1 && p < end && *p == '=' && (p + 1 == end || p[1] != '='))
			return at + 1;
	}
	return end;
}

/* Splits "prev_comm=bash prev_pid=2163 ... ==> next_comm=sh". */
static void split_pairs(const char *at, const char *end, struct text_fields *out)
{
	const bool starts_with_name = end > at && isalpha((unsigned char)*at) && memchr(at, '=', (size_t)(end - at));
	const char *name = starts_with_name ? at : next_name(at, end);
	while (name < end) {
		const char *eq = memchr(name, '=', (size_t)(end - name)), *next = eq ? next_name(eq, end) : end;
		if (!eq)
			return;
		const char *stop = next;
		while (stop > eq + 1 && is_space(stop[-1]))
			stop--;
		if (stop - eq > 4 && memcmp(stop - 4, " ==>", 4) == 0)
			stop -= 4;
		struct text_field *field = add_field(out, name, (size_t)(eq - name));
		if (field && is_text_name(field->name, field->name_len)) {
			set_value(field, eq + 1, (size_t)(stop - eq - 1));
		} else if (field) {  /* a number ends at a space: what follows is a comment, as [action=TIMER] */
			const char *word = eq + 1;
			while (word < stop && !is_space(*word))
				word++;
			set_value(field, eq + 1, (size_t)(word - eq - 1));
		}
		name = next;
	}
}

/* Reads "bash:2163 [120]", as plugins of libtraceevent print a thread. The name may contain spaces and colons. */
static bool take_thread(struct text_rest *r, const char **comm, size_t *comm_len, int64_t *tid, int64_t *prio)
{
	for (const char *colon = r->at; (colon = memchr(colon, ':', (size_t)(r->end - colon))); colon++) {
		struct text_rest number = { colon + 1, r->end };
		if (!take_digits(&number, tid) || !take(&number, " [") || !take_digits(&number, prio) || !take(&number, "]"))
			continue;
		*comm = r->at;
		*comm_len = (size_t)(colon - r->at);
		*r = number;
		return true;
	}
	return false;
}

static bool has_field(const struct text_fields *f, const char *name)
{
	for (size_t i = 0; i < f->len; i++)
		if (f->field[i].name_len == strlen(name) && memcmp(f->field[i].name, name, f->field[i].name_len) == 0)
			return true;
	return false;
}

static void split_plugin(const struct text_line *l, struct text_fields *out)
{
	struct text_rest r = { l->fields, l->fields + l->fields_len };
	const char *comm;
	size_t len;
	int64_t tid, prio, state, cpu;
	if (!take_thread(&r, &comm, &len, &tid, &prio))
		return;
	skip_spaces(&r);
	if (strcmp(l->event, "sched_switch") == 0) {
		const char *word = r.at;
		while (r.at < r.end && !is_space(*r.at))
			r.at++;
		add_text(out, "prev_comm", comm, len);
		add_number(out, "prev_pid", tid);
		if (parse_state(word, (size_t)(r.at - word), &state))
			add_number(out, "prev_state", state);
		skip_spaces(&r);
		if (!take(&r, "==> ") || !take_thread(&r, &comm, &len, &tid, &prio))
			return;
		add_text(out, "next_comm", comm, len);
		add_number(out, "next_pid", tid);
		add_number(out, "next_prio", prio);
		return;
	}
	add_text(out, "comm", comm, len);
	add_number(out, "pid", tid);
	for (; r.at < r.end; r.at++)
		if (take(&r, "CPU:") && take_digits(&r, &cpu))
			add_number(out, "target_cpu", cpu);
}

/* Reads "vcpu 0 ..." or "vcpu 0, rip ...". */
static void split_kvm(const struct text_line *l, struct text_fields *out)
{
	struct text_rest r = { l->fields, l->fields + l->fields_len };
	int64_t vcpu;
	for (; r.at < r.end; r.at++)
		if (take(&r, "vcpu ") && take_digits(&r, &vcpu)) {
			add_number(out, "vcpu_id", vcpu);
			return;
		}
}

void text_line_fields(const struct text_line *l, struct text_fields *out)
{
	out->len = 0;
	if (strcmp(l->event, "tracing_mark_write") == 0 || strcmp(l->event, "print") == 0) {
		add_text(out, "buf", l->fields, l->fields_len);
		return;
	}
	if (strcmp(l->event, "kvm_entry") == 0 || strcmp(l->event, "kvm_exit") == 0)
		split_kvm(l, out);
	split_pairs(l->fields, l->fields + l->fields_len, out);
	if (strncmp(l->event, "sched_", 6) == 0 && !has_field(out, "pid") && !has_field(out, "prev_pid")) {
		out->len = 0;
		split_plugin(l, out);
	}
	if (strcmp(l->event, "sched_process_fork") != 0)
		return;
	for (size_t i = 0; i < out->len; i++) {  /* the text of this event calls the parent only comm and pid */
		struct text_field *f = &out->field[i];
		if (f->name_len == 3 && memcmp(f->name, "pid", 3) == 0) {
			f->name = "parent_pid";
			f->name_len = strlen(f->name);
		}
	}
}
