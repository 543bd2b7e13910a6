# Converts guest.sh to a C array of its lines, without comments and empty lines; the program contains it.
BEGIN { print "static const char *const guest_text[] = {" }
/^[ \t]*#/ || /^$/ { next }
{
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	print "\t\"" $0 "\\n\","
}
END { print "\tNULL\n};" }
