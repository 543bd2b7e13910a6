# bash completion of stealscope.  Commands and options are asked of the program itself, so they are never out of date.
# shellcheck shell=bash

_stealscope()
{
	local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} commands
	commands=$(stealscope --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
	COMPREPLY=()
	if [[ $current == -* ]]; then
		[[ " ${commands//$'\n'/ } " == *" $command "* ]] || command=view
		mapfile -t COMPREPLY < <(compgen -W "$(stealscope "$command" --help 2>/dev/null |
			grep -o -- ' --[a-z-]*')" -- "$current")
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == --format ]]; then
		mapfile -t COMPREPLY < <(compgen -W 'text csv json' -- "$current")
	elif [[ $COMP_CWORD == 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current"; compgen -f -- "$current")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}
complete -o filenames -F _stealscope stealscope
