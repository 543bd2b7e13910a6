# guest.sh -> C: an array of its lines, without remarks, so that the program carries it.
BEGIN { print "static const char *const guest_text[] = {" }
/^[ \t]*#/ || /^$/ { next }
{
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	print "\t\"" $0 "\\n\","
}
END { print "\tNULL\n};" }
