/* Removes files and directories that a test has created. */
#pragma once

#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Removes a file, or a directory with all its contents. */
static void remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
