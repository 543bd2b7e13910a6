# Packages: debian/ and an RPM specification, with the same list of files.
EXTRA_DIST += packaging/stealscope.spec packaging/check.sh packaging/Containerfile

# The same tree gives the same tarball, byte for byte: sorted names, no user ids, one date.
dist_date = $${SOURCE_DATE_EPOCH-$$(git -C '$(srcdir)' log -1 --format=%ct 2>/dev/null || stat -c %Y '$(srcdir)/configure.ac')}
AMTAR_OPTIONS = --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX
am__tar = TAR_OPTIONS="$(AMTAR_OPTIONS) --mtime=@$(dist_date)" $${TAR-tar} chf - "$$tardir"

# Builds the packages and runs lintian on the Debian ones.  With BARE=DIR, a bare Debian, installs them in a copy of it.
BARE =
check-packages:
	cd '$(srcdir)' && $(SHELL) packaging/check.sh '$(abs_builddir)' '$(BARE)'
.PHONY: check-packages

# Automake removes only files; these directories belong to stealscope alone.
uninstall-hook: uninstall-folders
uninstall-folders: uninstall-mark-link
	! test -d '$(DESTDIR)$(pkgdatadir)' || find '$(DESTDIR)$(pkgdatadir)' -depth -type d -exec rmdir {} + 2>/dev/null || :
.PHONY: uninstall-folders
