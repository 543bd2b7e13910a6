#!/bin/sh
# The viewer in a real terminal (tmux): first minute, resizing, job control, fatal signals, terminal types, idling.
builddir=${builddir:-.}
command -v tmux > /dev/null || { echo "tmux is not installed"; exit 77; }
[ -x "$builddir/stealscope" ] || { echo "stealscope is not built"; exit 77; }
case $builddir in /*) ;; *) builddir=$PWD/$builddir ;; esac
dir=$(mktemp -d /tmp/stealscope-test-XXXXXX) || exit 99  # short, so that lines with it fit on the screen
socket=stealscope-test-$$
export HOME=$dir XDG_CONFIG_HOME=$dir/config XDG_CACHE_HOME=$dir/cache XDG_STATE_HOME=$dir/state LC_ALL=C.UTF-8 TZ=UTC
unset NO_COLOR TMUX
export HISTFILE=/dev/null TMUX_TMPDIR=$dir SHELL=/bin/sh
failed=0
esc=$(printf '\033')

t() { tmux -L "$socket" -f /dev/null "$@"; }
cleanup() { t kill-server 2> /dev/null; sleep 0.2; rm -rf "$dir"; }
trap cleanup EXIT

# serve SOCKET PID DIRECTORY: starts a tmux server that ends with the process, and then removes the directory.
serve() {
	tmux -L "$1" -f /dev/null new-session -d -s probe \
		"while kill -0 $2 2> /dev/null; do sleep 0.5; done; tmux kill-session -a -t probe; rm -rf '$3'"
}
serve "$socket" $$ "$dir" && sleep 0.2 && t has-session -t probe || { echo "tmux gets no terminal here"; exit 77; }

"$builddir/tests/test_ui_screens" --world "$dir/world.steal" || exit 99

screen() { t capture-pane -p -t v; }
state() { t display-message -p -t v "$1"; }

# wait_for TEXT STEP: waits until the screen contains TEXT, a minute at most.
wait_for() {
	for _ in $(seq 1200); do
		screen | grep -qF -- "$1" && return 0
		sleep 0.05
	done
	echo "FAIL: $2: no '$1' on the screen:"
	screen
	failed=1
	return 1
}
fail() { echo "FAIL: $*"; screen; failed=1; }

# Prints the output of a command once it has not changed for half a second: answers arrive asynchronously.
settled() {
	last=
	for _ in $(seq 100); do
		now=$("$@")
		[ "$now" = "$last" ] && break
		last=$now
		sleep 0.5
	done
	printf '%s\n' "$now"
}

# Starts a shell with job control in a window of that size.
shell() {
	t kill-session -t v 2> /dev/null
	t new-session -d -s v -x "$1" -y "$2" "PS1='ready> ' bash --norc --noprofile -i"
	wait_for 'ready>' "shell"
}
run() { t send-keys -t v "$1" Enter; }

# Leaves the viewer. Until it has gone, its screen looks like that of the next one, and keys would reach the shell.
quit() {
	t send-keys -t v Q
	for _ in $(seq 1200); do
		[ "$(state '#{alternate_on}')" = 0 ] && return
		sleep 0.05
	done
	fail 'Q does not leave the viewer'
}
view="$builddir/stealscope view $dir/world.steal"

# The first minute; the shell is unchanged afterwards.
shell 100 30
run "cd $dir; stty -a > before; clear; $view; echo status \$?"
wait_for 'most delayed' 'first frame: the overview'
t send-keys -t v Tab  # from the verdict's row, a machine, to the threads
wait_for '98 % taken by host/2101 burnP6' 'the culprit'
t send-keys -t v C-c
wait_for ' q quits' '^C'
t send-keys -t v Enter
wait_for 'by host/2101 burnP6' 'its longest gap'
t send-keys -t v BSpace
wait_for 'most delayed' 'back'
t send-keys -t v '>'
wait_for 'by host/2101 burnP6' 'the gap'
t send-keys -t v Enter
wait_for 'flow of Debian/3525 critical_task' 'the flow'
t send-keys -t v C-c
wait_for 'q closes the pane, Q quits' '^C beside a pane'
t send-keys -t v X
wait_for 'flow-Debian-3525-critical_task.txt' 'the name'
t send-keys -t v C-c  # leaves the prompt only
wait_for '? help' '^C in a prompt'
t send-keys -t v X
wait_for 'flow-Debian-3525-critical_task.txt' 'the name'
t send-keys -t v Enter
wait_for 'wrote flow-Debian-3525' 'the file'
grep -q burnP6 "$dir/flow-Debian-3525-critical_task.txt" || fail 'the file lacks the culprit'
t send-keys -t v q Q  # the pane, the viewer
wait_for 'status 0' 'quit'
run "stty -a > after; echo settings are kept | tr a-z A-Z"
wait_for 'SETTINGS ARE KEPT' 'stty'
cmp -s "$dir/before" "$dir/after" || fail 'the terminal settings changed'
[ "$(state '#{alternate_on}#{cursor_flag}#{mouse_any_flag}')" = 010 ] || fail 'the terminal was not restored after q'

# A storm of sizes, with one that is too small.
run "clear; $view"
wait_for '? help' 'frame before the storm'
for size in 120x40 39x10 200x50 41x9 80x24 10x4 90x7 30x8; do
	t resize-window -t v -x "${size%x*}" -y "${size#*x}"
	sleep 0.02
done
wait_for 'needs 40x8' 'too small'
t resize-window -t v -x 120 -y 40
wait_for 'critical_task' 'after the storm'
[ "$(screen | grep -c 'critical_task')" -ge 1 ] || fail 'the rows are gone after the storm'

# ^Z and fg.
t send-keys -t v C-z
wait_for 'Stopped' '^Z'
[ "$(state '#{alternate_on}#{cursor_flag}')" = 01 ] || fail 'the terminal was not restored by ^Z'
run fg
wait_for '? help' 'fg'
t send-keys -t v Tab '>'
wait_for 'by host/2101 burnP6' 'keys after fg'
quit

# Fatal signals.
for signal in HUP TERM QUIT ABRT SEGV; do
	run "clear; stty -a > before; $view; echo died \$?; stty -a > after; echo done-$signal"
	wait_for '? help' "frame before $signal"
	pid=$(pgrep -n -f "view $dir/world.steal")
	kill -"$signal" "$pid"
	wait_for "done-$signal" "$signal"
	cmp -s "$dir/before" "$dir/after" || fail "terminal settings after $signal"
	[ "$(state '#{alternate_on}#{cursor_flag}#{mouse_any_flag}')" = 010 ] || fail "the terminal was not restored after $signal"
done

# A manual clock offset: cancelled, done, saved.
cp -r "${srcdir:-.}/tests/data/fibonacci" "$dir/traces" && chmod -R u+w "$dir/traces"
"$builddir/stealscope" index "$dir/traces" -o "$dir/traces/stealscope.steal" > /dev/null 2>&1 || fail 'index'
woken=$("$builddir/stealscope" intervals "$dir/traces/stealscope.steal" \
	'/Virtual Machines/Debian/Threads/149/Status' --format csv |
	awk -F, '$3 == "BLOCKED" && $2 - $1 > 10000000 { if (++n == 6) print $2 }')
beacon() { screen | grep '149 beacon' | head -n 1 | sed 's/^[^|*]*[|*]//; s/[^-].*//' | tr -d '\n' | wc -c; }
shell 120 30
run "clear; $builddir/stealscope view --glyphs ascii $dir/traces"
wait_for '? help' 'traces'
t send-keys -t v ':Debian/149' Enter ":$woken" Enter ':zoom 83us' Enter
wait_for '1.00 us/cell' 'a microsecond per cell'
before=$(beacon)
t send-keys -t v ':offset Debian -5us' Enter Escape
wait_for 'cancelled' 'Esc'
[ "$(beacon)" = "$before" ] || fail 'a cancelled offset moved the row'
t send-keys -t v ':offset Debian -5us' Enter
wait_for 'Debian -5 us: containment 1.0000 ->' 'the offset'
[ "$(beacon)" = $((before - 5)) ] || fail "5 us earlier are 5 cells: $before $(beacon)"
t send-keys -t v ':offset save' Enter
wait_for "wrote $dir/traces/stealscope.yaml: Debian -5 us" 'save'
t send-keys -t v m
wait_for 'bookmark 1: ' 'a bookmark'
quit
run "clear; $builddir/stealscope view --glyphs ascii $dir/traces/stealscope.yaml"
wait_for 'Debian -5 us' 'the offset in the first line'
wait_for '1.00 us/cell' 'the window as it was left'
t send-keys -t v ':Debian/149' Enter ":$woken" Enter ':zoom 83us' Enter
wait_for '1.00 us/cell' 'a microsecond per cell'
[ "$(beacon)" = $((before - 5)) ] || fail "the session shows it again: $before $(beacon)"
t send-keys -t v "'"
wait_for '  Debian/149 beacon' 'the bookmark of the run before, of the same traces'
t send-keys -t v d
wait_for 'deleted: ' 'the bookmark is dropped'
grep -q beacon "$XDG_STATE_HOME"/stealscope/*.bookmarks && fail 'the bookmark is still in the file'
quit

# The mouse after :set mouse: a click selects row and time, the wheel with Ctrl zooms or does nothing.
run "clear; $view"
wait_for '? help' 'frame before the mouse'
t send-keys -t v BSpace  # to the timeline; the mouse is on by default
for _ in $(seq 200); do
	[ "$(state '#{mouse_any_flag}')" = 1 ] && break
	sleep 0.05
done
mouse() { t send-keys -t v -l "$(printf '\033[<%b' "$1")"; sleep 0.2; }
mouse '0;58;7M'; mouse '0;58;7m'  # button 1 at column 58, line 7; let go
wait_for 'Debian/3525 critical_task' 'a click on a thread'
[ "$(state '#{mouse_sgr_flag}')" = 1 ] || fail 'columns past 223 are not reported'
mouse '80;48;6M'; mouse '81;48;6M'  # Ctrl and the wheel at column 48
wait_for 'Debian/3525 critical_task' 'Ctrl and the wheel keep the row'
mouse '65;48;6M'
wait_for 'Debian/880 sshd' 'the wheel goes to the next row'
mouse '0;58;7M\033[<0;58;7m'  # press and release arrive together
wait_for ' Debian/3525 critical_task 12:03:04.1180 RUNNING' 'a click over a slow line'
quit

# The progress of index stays within its line on a narrow terminal.
shell 40 20
run "clear; $builddir/stealscope index $dir/traces -o $dir/narrow.steal; echo it has ended | tr a-z A-Z"
wait_for 'IT HAS ENDED' 'the end of index'
wait_for 'narrow.steal' 'the name of the history'
screen | grep -qE 'reading|%' && fail 'progress is left on the screen'
shell 120 30

# An idle viewer does not wake up.
run "clear; $view"
wait_for '? help' 'frame before the idle time'
pid=$(pgrep -n -f "view $dir/world.steal")
# States and context switches of all its threads; a thread that waits for a CPU is not idle.
switches() { cat /proc/"$pid"/task/*/status | grep -E '^State|ctxt'; }
for _ in $(seq 100); do
	one=$(settled switches)
	case $one in *"(running)"*|*"(disk sleep)"*) ;; *) break ;; esac
done
sleep 1
[ "$one" = "$(switches)" ] || fail 'the idle viewer woke up'
quit

# Terminal types and locales.
for term in xterm-256color xterm screen linux vt100; do
	infocmp "$term" > /dev/null 2>&1 || continue
	run "clear; TERM=$term $view; echo left-$term"
	wait_for 'help' "frame on $term"
	wait_for 'critical_task' "rows on $term"
	t send-keys -t v Tab Enter
	wait_for 'Enter flow' "timeline on $term"
	t send-keys -t v BSpace  # DEL, which differs from terminfo on some of them
	wait_for 'most delayed' "back on $term"
	# Keys as terminals in another mode send them, and unknown sequences: their characters must not act as keys.
	t send-keys -t v Enter
	wait_for 'Enter flow' "timeline again on $term"
	t send-keys -t v -l "${esc}[1;5D${esc}[I${esc}[200~${esc}[4~"
	wait_for 'BLOCKED 5.00' "End on $term"
	t send-keys -t v BSpace
	wait_for 'most delayed' "back again on $term"
	quit
	wait_for "left-$term" "quit on $term"
	screen | grep "left-$term" | grep -q preempt && fail "$term: the shell goes on in the legend"
done
run "clear; LC_ALL=C $view; echo left-C"
wait_for 'critical_task' 'frame in the C locale'
screen | LC_ALL=C grep -q '[^ -~]' && fail 'non-ASCII in the C locale'
quit
wait_for 'left-C' 'quit in the C locale'
run "clear; NO_COLOR=1 $view"
wait_for 'critical_task' 'frame with NO_COLOR'
t capture-pane -p -e -t v | grep -qE "$esc\\[[0-9;]*(38;5|48;5|3[0-7]|4[0-7])" && fail 'colours in spite of NO_COLOR'
quit
run "clear; TERM=dumb $view; echo refused \$?"
wait_for 'refused 4' 'dumb'
screen | grep -q 'cannot move its cursor' || fail 'dumb: no reason was given'

# A killed test leaves no server and no directory.
sleep 600 &
pid=$!
mkdir "$dir/its"
serve "$socket-its" $pid "$dir/its"
kill -KILL $pid
wait $pid 2> /dev/null
for _ in $(seq 1200); do
	tmux -L "$socket-its" has-session 2> /dev/null || break
	sleep 0.05
done
tmux -L "$socket-its" kill-server 2> /dev/null && fail 'a server outlived its process'
[ -e "$dir/its" ] && fail 'a directory outlived its process'
exit $failed
