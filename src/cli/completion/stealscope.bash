# bash completion of stealscope.  The program itself lists all completions, so that this file is never out of date.
# shellcheck shell=bash

# Sets words to the words up to the cursor.  Bash splits them at COMP_WORDBREAKS, even at a colon in the name of a thread.
_stealscope_words()
{
	local i rest=$COMP_LINE
	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if [[ $i -gt 0 && $rest != [[:space:]]* && -n $rest ]]; then
			words[-1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
		fi
		rest=${rest#*"${COMP_WORDS[i]}"}
	done
}

_stealscope()
{
	local current=${COMP_WORDS[COMP_CWORD]} first=() words line answer=() before
	COMPREPLY=()
	[[ $current == ["$COMP_WORDBREAKS"]* ]] && current=
	_stealscope_words
	before=${words[-1]%"$current"}
	words=("${words[@]:1}")
	if [[ ${#words[@]} -gt 1 && ${words[0]} != -* && ! -e ${words[0]} ]]; then
		first=("${words[0]}")
		words=("${words[@]:1}")
	fi
	mapfile -t answer < <(stealscope "${first[@]}" --__complete "${words[@]}" 2>/dev/null)
	for line in "${answer[@]}"; do
		if [[ $line == :file ]]; then
			mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
		else
			line=${line%%$'\t'*}
			COMPREPLY+=("${line#"$before"}")
		fi
	done
	[[ ${COMPREPLY[*]} == *://* ]] && compopt +o filenames  # readline would show only what follows the last slash
}
complete -o filenames -F _stealscope stealscope
