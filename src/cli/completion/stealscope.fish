# fish completion of stealscope.  Commands and options are asked of the program itself, so they are never out of date.

function __stealscope_commands
    stealscope --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)$' '$1\t$2'
end

function __stealscope_options
    set -l words (commandline -opc)
    set -l command view
    test (count $words) -gt 1; and set command $words[2]
    stealscope $command --help 2>/dev/null | string match -rg -- ' (--[a-z-]+)'
end

complete -c stealscope -n '__fish_is_first_arg' -a '(__stealscope_commands)'
complete -c stealscope -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__stealscope_options)'
