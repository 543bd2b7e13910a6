
#include <errno.h>
#include <stdarg.h>

#include "base/base.h"
#include "base/file_open.h"

/* escape: text_escape() or text_sanitize(). */
static void set_text(struct error *err, enum status status, const char *remedy, const char *text,
                     char *(*escape)(char *dst, size_t size, const char *src))
{
	err->status = status;
	escape(err->text, sizeof err->text, text);
	escape(err->remedy, sizeof err->remedy, remedy ? remedy : "");
}

int error_set(struct error *err, enum status status, const char *remedy, const char *fmt, ...)
{
	if (!err)
		return -1;
	char text[sizeof err->text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	set_text(err, status, remedy, text, text_escape);
	return -1;
}

int error_repeat(struct error *err, enum status status, const char *remedy, const char *fmt, ...)
{
	if (!err)
		return -1;
	char text[sizeof err->text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	set_text(err, status, remedy, text, text_sanitize);
	return -1;
}

bool errno_is_system(int why)
{
	switch (why) {
	case ENOENT: case ENOTDIR: case EISDIR: case ENAMETOOLONG: case ELOOP: case EACCES: case EPERM: case ENXIO:
	case FILE_NOT_REGULAR:
		return false;
	default:
		return true;
	}
}

/* Returns the remedy for this errno, or the caller's remedy if there is none. */
static const char *errno_remedy(int number, const char *remedy)
{
	switch (number) {
	case EMFILE:
	case ENFILE:
		return "raise the limit of open files: ulimit -n 1024";
	case EFBIG:
		return "raise the limit of file sizes: ulimit -f";
	case ENOMEM:
		return "free memory, or raise its limit: ulimit -v";
	default:
		return remedy;
	}
}

static int set_errno(struct error *err, enum status status, const char *remedy, const char *fmt, va_list ap, int why)
{
	if (!err)
		return -1;
	char text[sizeof err->text];
	int n = vsnprintf(text, sizeof text, fmt, ap);
	if (n >= 0 && (size_t)n < sizeof text)
		snprintf(text + n, sizeof text - (size_t)n, ": %s",
		         why == FILE_NOT_REGULAR ? "not a regular file" : strerror(why));
	set_text(err, status, errno_remedy(why, remedy), text, text_escape);
	return -1;
}

int error_system(struct error *err, const char *remedy, const char *fmt, ...)
{
	const int why = errno;
	va_list ap;
	va_start(ap, fmt);
	set_errno(err, STATUS_SYSTEM, remedy, fmt, ap, why);
	va_end(ap);
	return -1;
}

int error_read(struct error *err, const char *remedy, const char *fmt, ...)
{
	const int why = errno;
	va_list ap;
	va_start(ap, fmt);
	set_errno(err, errno_is_system(why) ? STATUS_SYSTEM : STATUS_INPUT, remedy, fmt, ap, why);
	va_end(ap);
	return -1;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
	if (!err)
		return -1;
	char raw[sizeof err->text], head[sizeof err->text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	text_escape(head, sizeof head - 2, raw);
	size_t n = strlen(head), rest = strlen(err->text);
	head[n++] = ':';
	head[n++] = ' ';
	rest = rest < sizeof err->text - n ? rest : sizeof err->text - n - 1;
	memmove(err->text + n, err->text, rest);
	memcpy(err->text, head, n);
	err->text[n + rest] = '\0';
	return -1;
}
