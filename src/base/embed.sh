#!/bin/sh
# embed.sh [-s] FILE...: prints files as C, so that the program works uninstalled: an array of bytes per file, with a NUL
# behind, and the table `shipped` with their names (without folder and suffix), texts and sizes.
# -s: omits comment lines and empty lines, as in shell scripts
set -eu
strip=
if [ "$1" = -s ]; then
	strip='/^[[:space:]]*#/d; /^$/d'
	shift
fi
table=
for file in "$@"; do
	name=${file##*/}
	name=${name%%.*}
	id=$(echo "$name" | tr -c 'a-z0-9\n' _)
	printf 'static const unsigned char text_%s[] __attribute__((aligned(8))) = {\n' "$id"
	sed "$strip" "$file" | od -An -v -tx1 | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo '0 };'
	table="$table	{ \"$name\", (const char *)text_$id, sizeof text_$id - 1 },
"
done
printf 'static const struct { const char *name, *text; size_t bytes; } shipped[] = {\n%s};\n' "$table"
