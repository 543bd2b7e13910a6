/* What a test has made is taken away. */
#ifndef STEALSCOPE_TESTS_REMOVE_ALL_H
#define STEALSCOPE_TESTS_REMOVE_ALL_H

#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* A file, or a folder with all that is in it. */
static void remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
