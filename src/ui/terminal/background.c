#include "ui/terminal/background.h"

#include <ctype.h>

#define LIGHT 0.5  /* luminance from which a background is light */

bool osc_add(struct osc *o, uint32_t c)
{
	if (c == 7 || o->has_escape)
		return true;
	o->has_escape = c == 27;
	const bool is_full = o->len == OSC_MAX;
	if (is_full)
		o->len = 0;
	else if (!o->has_escape)
		o->text[o->len++] = c > ' ' && c < 127 ? (char)c : '?';
	o->text[o->len] = '\0';
	return is_full;
}

bool osc_is_light_background(const struct osc *o)
{
	static const double weight[] = { 0.2126, 0.7152, 0.0722 };
	const char *at = strncmp(o->text, "11;rgba:", 8) == 0 ? o->text + 8 : o->text + 7;
	double luminance = 0;
	if (strncmp(o->text, "11;rgb", 6) != 0 || at[-1] != ':')
		return false;
	for (size_t i = 0; i < 3; i++) {
		char *end = (char *)(uintptr_t)at;
		const unsigned long value = isxdigit((unsigned char)*at) ? strtoul(at, &end, 16) : 0;
		const size_t digits = (size_t)(end - at);
		if (digits < 1 || digits > 4 || (i < 2 && *end != '/'))
			return false;
		luminance += weight[i] * (double)value / (double)((1UL << 4 * digits) - 1);
		at = end + 1;
	}
	return luminance > LIGHT;
}
