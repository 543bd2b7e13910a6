# Converts the shipped layouts to C: each file becomes an array of its lines, so that the program works uninstalled.
function quote(s) {
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\t\"" s "\\n\","
}
FNR == 1 {
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.[a-z]+$/, "", name)
	if (files++)
		print "\tNULL\n};"
	print "static const char *const text_" name "[] = {"
	names[files] = name
}
{ print quote($0) }
END {
	print "\tNULL\n};\n\nstatic const struct { const char *name, *const *line; } shipped[] = {"
	for (i = 1; i <= files; i++)
		print "\t{ \"" names[i] "\", text_" names[i] " },"
	print "};"
}
