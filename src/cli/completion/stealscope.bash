# bash completion of stealscope.  Everything is asked of the program itself, so it is never out of date.
# shellcheck shell=bash

_stealscope()
{
	local current=${COMP_WORDS[COMP_CWORD]} first=() words=("${COMP_WORDS[@]:1:COMP_CWORD}") line answer=()
	COMPREPLY=()
	if [[ $COMP_CWORD -gt 1 && ${words[0]} != -* && ! -e ${words[0]} ]]; then
		first=("${words[0]}")
		words=("${words[@]:1}")
	fi
	mapfile -t answer < <(stealscope "${first[@]}" --__complete "${words[@]}" 2>/dev/null)
	for line in "${answer[@]}"; do
		if [[ $line == :file ]]; then
			mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
		else
			COMPREPLY+=("${line%%$'\t'*}")
		fi
	done
}
complete -o filenames -F _stealscope stealscope
