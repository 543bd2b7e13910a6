#include "cli/password_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_open.h"
#include "base/mem.h"

#define PASSWORD_MOST 1024  /* bytes */

static void hide(char *from, const char *end)
{
	while (from < end)
		*from++ = 'x';
}

char *secret_take(const char *url)
{
	static const char key[] = "password=";
	char *copy = url ? mem_dup(url) : NULL, *text = (char *)(uintptr_t)url;  /* the arguments are ours to write to */
	char *place = url ? strstr(text, "://") : NULL;
	if (!place)
		return copy;
	place += 3;
	/* A password that was not quoted as it should may hold any of these characters: up to the last @. */
	char *at = strrchr(place, '@'), *colon = strchr(place, ':');
	if (at && colon && colon < at)
		hide(colon + 1, at);
	for (char *p = place; (p = strstr(p, key));) {
		p += strlen(key);
		hide(p, p + strcspn(p, "&"));
	}
	return copy;
}

int secret_read(const char *file, struct error *err)
{
	char line[PASSWORD_MOST];
	struct stat st;
	FILE *f = file_open(file);
	if (!f || fstat(fileno(f), &st)) {
		int rc = error_read(err, "check the path", "--password-file: %s", file);
		if (f)
			fclose(f);
		return rc;
	}
	bool told = fgets(line, sizeof line, f) != NULL;
	fclose(f);
	if (S_ISREG(st.st_mode) && st.st_mode & (S_IRWXG | S_IRWXO))
		return error_set(err, STATUS_USAGE, "chmod 600 it", "--password-file: %s: others may read it", file);
	if (told)
		line[strcspn(line, "\r\n")] = '\0';
	if (!told || !*line)
		return error_set(err, STATUS_USAGE, NULL, "--password-file: %s: its first line is empty", file);
	if (setenv("PGPASSWORD", line, 1) || setenv("CLICKHOUSE_PASSWORD", line, 1))
		return error_system(err, NULL, "--password-file");
	return 0;
}
