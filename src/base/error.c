#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void set_text(struct error *err, enum status status, const char *mend, const char *text)
{
	err->status = status;
	text_escape(err->text, sizeof err->text, text);
	text_escape(err->mend, sizeof err->mend, mend ? mend : "");
}

int error_set(struct error *err, enum status status, const char *mend, const char *fmt, ...)
{
	if (!err)
		return -1;
	char text[sizeof err->text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	set_text(err, status, mend, text);
	return -1;
}

int error_system(struct error *err, const char *mend, const char *fmt, ...)
{
	int saved = errno;
	if (!err)
		return -1;
	char text[sizeof err->text];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof text)
		snprintf(text + n, sizeof text - (size_t)n, ": %s", strerror(saved));
	set_text(err, STATUS_SYSTEM, mend, text);
	return -1;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
	if (!err)
		return -1;
	char text[2 * sizeof err->text];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof err->text, fmt, ap);
	va_end(ap);
	size_t used = n < 0 ? 0 : (size_t)n < sizeof err->text ? (size_t)n : sizeof err->text - 1;
	snprintf(text + used, sizeof text - used, ": %s", err->text);
	text_escape(err->text, sizeof err->text, text);
	return -1;
}
