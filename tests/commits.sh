#!/bin/sh
# commits.sh [BASE..]: checks the form of commits, by default of all since BASE below: the subject is "area: imperative
# summary" of 72 columns at most and names one change; a commit of more than 20 lines has a body; a commit adds about 400 lines at
# most, not counting moved lines, recordings, screens and other generated files.
set -eu
BASE=fb46e32c  # the rule was written down after this commit
ADDED_MAX=450 BODY_FROM=20
cd "$(dirname "$0")/.."
range=${1:-$BASE..HEAD}
if ! git rev-parse -q --verify "${range%%..*}^{commit}" >/dev/null 2>&1; then
	echo "no history here: ${range%%..*} is not in it"
	exit 77
fi
# Commits that break a rule for a reason: hash and reason.
exceptions='tests/commits.exceptions'
status=0
refuse() {
	grep -q "^$hash" "$exceptions" && return
	echo "FAIL $hash $subject: $1"
	status=1
}
for hash in $(git log --no-merges --format=%h --abbrev=8 "$range"); do
	subject=$(git log -1 --format=%s "$hash")
	added=$(git show -M -C --format= --numstat "$hash" -- . ':!tests/data' ':!doc/gallery*' ':!tests/ui/*.screen' ':!*.svg' |
		awk '$1 != "-" { n += $1 } END { print n + 0 }')
	[ "${#subject}" -le 72 ] || refuse "the subject has ${#subject} columns"
	printf '%s\n' "$subject" | grep -qE '^[a-z0-9_/., -]+: [^;]*$' || refuse 'the subject is not "area: one change"'
	[ "$added" -le $ADDED_MAX ] || refuse "it adds $added lines"
	[ "$added" -le $BODY_FROM ] || [ -n "$(git log -1 --format=%b "$hash")" ] || refuse 'it has no body'
done
[ $status = 0 ] && echo "ok   $(git log --no-merges --format=%h "$range" | wc -l) commits"
exit $status
