# Packages: debian/ and an RPM specification, which follow the same list of files.
EXTRA_DIST += packaging/stealscope.spec packaging/check.sh

# The same tree gives the same tarball, byte for byte: names in order, nobody's ids, one date.
dist_date = $${SOURCE_DATE_EPOCH-$$(git -C '$(srcdir)' log -1 --format=%ct 2>/dev/null || stat -c %Y '$(srcdir)/configure.ac')}
AMTAR_OPTIONS = --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX
am__tar = TAR_OPTIONS="$(AMTAR_OPTIONS) --mtime=@$(dist_date)" $${TAR-tar} chf - "$$tardir"

# Builds them, holds lintian against the Debian ones; with BARE=FOLDER, a bare Debian, installs them in a copy of it.
BARE =
check-packages:
	cd '$(srcdir)' && $(SHELL) packaging/check.sh '$(abs_builddir)' '$(BARE)'
.PHONY: check-packages

# Automake removes files alone; these folders are nobody else's.
uninstall-hook: uninstall-folders
uninstall-folders: uninstall-mark-link
	! test -d '$(DESTDIR)$(pkgdatadir)' || find '$(DESTDIR)$(pkgdatadir)' -depth -type d -exec rmdir {} + 2>/dev/null || :
.PHONY: uninstall-folders
