/* A mount namespace of its own for a test, in which it may mount file systems. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static inline bool mount_namespace_write(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return is_written;
}

/* Enters the namespace: an ordinary user as root of a user namespace, in which files of the user can be created. Returns
 * false if that is not permitted. */
static inline bool mount_namespace_enter(void)
{
	char uid[32], gid[32];
	snprintf(uid, sizeof uid, "0 %u 1", getuid());
	snprintf(gid, sizeof gid, "0 %u 1", getgid());
	if (unshare(CLONE_NEWNS) && (unshare(CLONE_NEWUSER | CLONE_NEWNS) ||
	                             !mount_namespace_write("/proc/self/setgroups", "deny") ||
	                             !mount_namespace_write("/proc/self/uid_map", uid) ||
	                             !mount_namespace_write("/proc/self/gid_map", gid)))
		return false;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
