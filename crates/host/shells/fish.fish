# What tells Holdfast about this fish: marks in its output, and after each command its names and values in a file.
#
# Sourced after the user's configuration, with the session's directory as $argv[1]. Event handlers alone: no function of the
# user's is wrapped, none is called (`builtin`), and fish keeps $status and $pipestatus across handlers.

set -g __holdfast $argv[1]
set -g __holdfast_token
set -g __holdfast_generation
set -g __holdfast_file 0
set -g __holdfast_state
set -g __holdfast_known
set -g __holdfast_names
set -g __holdfast_places
set -g __holdfast_mine
set -g __holdfast_defines
set -g __holdfast_umask
# What a line has that may put a function in the place of another: these words, and later the user's own functions.
set -g __holdfast_words '\\b(alias|functions?|source|eval|funced|funcsave|fish_config)\\b|(^|[\\s;&|(])\\.\\s'
set -g __holdfast_own_words $__holdfast_words

function __holdfast_begin --on-event fish_preexec
    set -g __holdfast_generation $status_generation
    set -g __holdfast_token
    builtin read -g __holdfast_token <$__holdfast/next
    if builtin test -n "$__holdfast_token"
        builtin echo -n >$__holdfast/next
    end
    builtin string match -qr -- $__holdfast_words "$argv"
    and set -g __holdfast_defines 1
    builtin string match -qr -- '\\bumask\\b' "$argv"
    and set -g __holdfast_umask
    builtin printf '\e]133;C;hf=%s\a' "$__holdfast_token"
end

function __holdfast_end --on-event fish_postexec
    set -l was $status
    # What goes into the background leaves the status of the command before.
    if builtin test -n "$status_generation" -a "$status_generation" = "$__holdfast_generation"
        set was 0
    end
    builtin printf '\e]133;D;%d;hf=%s\a' $was "$__holdfast_token"
    set -g __holdfast_token
    __holdfast_dump >$__holdfast/state.$__holdfast_file
    set -g __holdfast_state $__holdfast_file
    if builtin test $__holdfast_file = 0
        set -g __holdfast_file 1
    else
        set -g __holdfast_file 0
    end
end

# Handlers are called in the order they were made: ours comes last, when those of fish itself are there, which switch the
# terminal to bracketed paste.
function __holdfast_first --on-event fish_prompt
    builtin functions -e __holdfast_first
    # The first state is what everything later is compared with: it has a file of its own.
    __holdfast_dump >$__holdfast/state.2
    set -g __holdfast_state 2
    for mode in default insert
        builtin bind -M $mode \e\[7133~ __holdfast_line
    end
    function __holdfast_later --on-event fish_prompt
        __holdfast_prompt
    end
    __holdfast_prompt
end

# The key by which the host asks what the line holds: says how long it is, and nothing else of it.
function __holdfast_line
    # A command could not be typed in vi's command mode.
    if builtin test "$fish_bind_mode" = default -a "$fish_key_bindings" != fish_default_key_bindings
        set -g fish_bind_mode insert
    end
    builtin printf '\e]133;B;hf;line=%d\a' (builtin string length -- (builtin commandline | builtin string collect))
end

# There is no event behind the prompt's text: the mark B comes before it.
function __holdfast_prompt
    builtin printf '\e]7;file://%s%s\a\e]133;A;hf;last=%d;state=%s;ask\a\e]133;B;hf\a' \
        $hostname (builtin string escape --style=url -- $PWD) $status "$__holdfast_state"
    set -g __holdfast_state
end

# fish leaves a line it cannot parse where it is. One of ours is taken away: nobody is there to correct it.
function __holdfast_error --on-event fish_posterror
    set -l token
    builtin read token <$__holdfast/next
    if builtin test -n "$token"
        builtin commandline -f cancel-commandline
    end
end

# The line was thrown away, and the prompt comes again.
function __holdfast_cancel --on-event fish_cancel
    builtin printf '\e]133;A;hf;last=0;state=;ask\a\e]133;B;hf\a'
end

# Values are written, not hashed: the files were made for the user alone by the host, which keeps only hashes.
function __holdfast_dump
    builtin echo 'holdfast 2 fish'
    set -xL
    builtin printf '\1\n'
    abbr --show
    builtin printf '\1\n'
    # What changes how a line is read, or where functions come from.
    builtin printf '%s ' CDPATH $CDPATH \n fish_user_paths $fish_user_paths \n fish_function_path $fish_function_path \n \
        fish_complete_path $fish_complete_path \n fish_key_bindings $fish_key_bindings \n
    builtin printf '\1\n'
    builtin bind --user
    builtin printf '\1\n'
    # A function of fish's own, and not a quick one.
    if builtin test -z "$__holdfast_umask"
        set -g __holdfast_umask (umask)
    end
    builtin echo $__holdfast_umask
    builtin printf '\1\n'
    # Those fish brings along are many, and nobody's, until somebody puts one of their own in the place of one.
    set -l names (builtin functions -n)
    set -l places $__holdfast_places
    if builtin test -n "$__holdfast_defines"
        set -g __holdfast_defines
        set places (__holdfast_look)
    end
    if builtin test "$names" != "$__holdfast_names" -o "$places" != "$__holdfast_places"
        set -g __holdfast_names $names
        set -g __holdfast_known
        set -g __holdfast_mine
        for name in $names
            if builtin string match -q -- "$__fish_data_dir/*" (builtin functions --details -- $name)
                set -ga __holdfast_known $name
            else
                set -ga __holdfast_mine $name
            end
        end
        set -g __holdfast_places (__holdfast_look)
        set -g __holdfast_words $__holdfast_own_words
        if builtin test -n "$__holdfast_mine"
            set -a __holdfast_words (builtin string escape --style=regex -- $__holdfast_mine)
            set -g __holdfast_words (builtin string join '|' -- $__holdfast_words)
        end
    end
    if builtin test -n "$__holdfast_mine"
        builtin functions $__holdfast_mine
    end
    builtin printf '\1end\n'
end

# Where those are defined that fish brought along.
function __holdfast_look
    for name in $__holdfast_known
        builtin functions --details -- $name
    end
end

# First line of a command that came in a file: shows it where the line that reads it stands.
function __holdfast_entered
    set -l was $status
    set -l lines (builtin string replace --all --regex '[[:cntrl:]]' '?' <$__holdfast/run)[2..-1]
    if builtin test -n "$argv[1]"
        builtin printf '\e[A\e[%dG\e[J' $argv[1]
    end
    builtin printf '%s\n' $lines[1..20]
    if builtin test (builtin count $lines) -gt 20
        builtin echo …
    end
    builtin printf '\e]133;C;hf=%s\a' "$__holdfast_token"
    return $was
end
