# fish completion of stealscope.  The program itself lists all completions, so that this file is never out of date.

function __stealscope_words
    set -l words (commandline -opc)[2..-1] (commandline -ct)
    set -l first
    if test (count $words) -gt 1; and not string match -q -- '-*' $words[1]; and not test -e $words[1]
        set first $words[1]
        set words $words[2..-1]
    end
    for line in (stealscope $first --__complete $words 2>/dev/null)
        if test "$line" = :file
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end

complete -c stealscope -f -a '(__stealscope_words)'
