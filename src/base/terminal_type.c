#include "base/terminal_type.h"

#include <unistd.h>

#include "base/base.h"

/* The first line that matches is used. */
static const struct { const char *prefix, *name; } families[] = {
	{ "screen", "screen-256color" }, { "tmux", "tmux-256color" }, { "linux", "linux" }, { "vt", "vt100" },
	{ "xterm", "xterm-256color" }, { "alacritty", "xterm-256color" }, { "contour", "xterm-256color" },
	{ "foot", "xterm-256color" }, { "ghostty", "xterm-256color" }, { "gnome", "xterm-256color" },
	{ "iterm", "xterm-256color" }, { "kitty", "xterm-256color" }, { "konsole", "xterm-256color" },
	{ "mintty", "xterm-256color" }, { "ms-terminal", "xterm-256color" }, { "putty", "xterm-256color" },
	{ "rxvt", "xterm-256color" }, { "st-", "xterm-256color" }, { "vte", "xterm-256color" },
	{ "wezterm", "xterm-256color" },
};

const char *terminal_family(const char *type)
{
	for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
		if (strncmp(type, families[i].prefix, strlen(families[i].prefix)) == 0)
			return families[i].name;
	return NULL;
}

bool terminal_skips_osc(int fd)
{
	const char *family = terminal_family(getenv("TERM"));
	return family && strstr(family, "-256color") && isatty(fd);
}
