# Generates shipped.c from theme files; the first file is the default theme.
function quote(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\\n\"" }
BEGIN { print "/* Generated from themes/ by shipped.awk. */\n#include \"ui/widgets/theme.h\"\n\nconst struct shipped_theme shipped_theme[] = {" }
FNR == 1 {
	if (NR > 1) print "\t},"
	name = FILENAME; sub(/.*\//, "", name); sub(/\.yaml$/, "", name)
	print "\t{ \"" name "\","
}
{ print "\t" quote($0) }
END { print "\t},\n\t{ (void *)0, (void *)0 },\n};" }
