#include "cli/password_file.h"

#include <sys/stat.h>

#include "base/base.h"
#include "base/file_open.h"

#define MAX_PASSWORD 1024  /* bytes */

static void overwrite_text(char *from, const char *end)
{
	while (from < end)
		*from++ = 'x';
}

char *password_hide(const char *url)
{
	static const char key[] = "password=";
	char *copy = url ? mem_dup(url) : NULL, *text = (char *)(uintptr_t)url;  /* points to argv, which may be modified */
	char *authority = url ? strstr(text, "://") : NULL;
	if (!authority)
		return copy;
	authority += 3;
	/* A password that is not percent-encoded may contain these characters: use the last @. */
	char *at = strrchr(authority, '@'), *colon = strchr(authority, ':');
	if (at && colon && colon < at)
		overwrite_text(colon + 1, at);
	for (char *p = authority; (p = strstr(p, key));) {
		p += strlen(key);
		overwrite_text(p, p + strcspn(p, "&"));
	}
	return copy;
}

int password_read_file(const char *file, struct error *err)
{
	char line[MAX_PASSWORD];
	struct stat st;
	FILE *f = file_open(file);
	if (!f || fstat(fileno(f), &st)) {
		int rc = error_read(err, "check the path", "--password-file: %s", file);
		if (f)
			fclose(f);
		return rc;
	}
	bool has_line = fgets(line, sizeof line, f) != NULL;
	fclose(f);
	if (S_ISREG(st.st_mode) && st.st_mode & (S_IRWXG | S_IRWXO))
		return error_set(err, STATUS_USAGE, "chmod 600 the file", "--password-file: %s: other users may read it", file);
	if (has_line)
		line[strcspn(line, "\r\n")] = '\0';
	if (!has_line || !*line)
		return error_set(err, STATUS_USAGE, NULL, "--password-file: %s: its first line is empty", file);
	if (setenv("PGPASSWORD", line, 1) || setenv("CLICKHOUSE_PASSWORD", line, 1))
		return error_system(err, NULL, "--password-file");
	return 0;
}
