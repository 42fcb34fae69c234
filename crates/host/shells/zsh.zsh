# What tells Holdfast about this zsh: marks in its output, and after each command its names and values in a file.
#
# Sourced from .zshenv with the session's directory as $1; it takes effect before the first prompt, when zsh has read the
# user's own files, each from its own place. Redirected functions keep `set -x` off the screen.

typeset -g +x __holdfast=$1 __holdfast_token= __holdfast_pwd= __holdfast_address= __holdfast_asks=
# The first state is what everything later is compared with: it has a file of its own.
typeset -gi +x __holdfast_open=1 __holdfast_file=2

__holdfast_start() {
    __holdfast_bind
    __holdfast_prompt
    __holdfast_hook
    unfunction __holdfast_start __holdfast_hook __holdfast_bind
} 2>/dev/null

__holdfast_hook() {
    emulate -L zsh
    precmd_functions=(__holdfast_end "${(@)precmd_functions:#__holdfast_*}" __holdfast_prompt)
    preexec_functions=("${(@)preexec_functions:#__holdfast_*}" __holdfast_begin)
    zshaddhistory_functions=("${(@)zshaddhistory_functions:#__holdfast_*}" __holdfast_remember)
}

# The key by which the host asks what the line holds.
__holdfast_bind() {
    emulate -L zsh
    local map
    zle -N __holdfast_line || return
    for map in emacs viins vicmd; do bindkey -M $map '\e[7133~' __holdfast_line || return; done
    __holdfast_asks=';ask'
}

# Says how long the line is, and nothing else of it.
__holdfast_line() {
    emulate -L zsh
    # A command could not be typed there.
    if [[ $KEYMAP == vicmd ]]; then zle vi-insert; fi
    print -n "\e]133;B;hf;line=$(( $#PREBUFFER + $#BUFFER ))\a" >/dev/tty
} 2>/dev/null

__holdfast_begin() {
    emulate -L zsh
    __holdfast_token=
    IFS= read -r __holdfast_token <$__holdfast/next
    if [[ -n $__holdfast_token ]]; then : >|$__holdfast/next; fi
    __holdfast_open=1
    # While a command runs, the prompts are the user's own.
    PS1=${PS1%$'%{\e]133;B;hf\a%}'} PS2=${PS2%$'%{\e]133;A;hf;k=s\a%}'}
    print -n "\e]133;C;hf=$__holdfast_token\a" >/dev/tty
} 2>/dev/null

__holdfast_end() {
    local was=$?
    emulate -L zsh
    if (( __holdfast_open )); then
        print -n "\e]133;D;$was;hf=$__holdfast_token\a" >/dev/tty
        __holdfast_token=
    fi
    return was
} 2>/dev/null

__holdfast_prompt() {
    # Our own locals have our own names: one like a variable of the user's would hide it.
    local __holdfast_was=$? __holdfast_state=
    # Its options and traps as they are, before ours.
    if [ "$__holdfast_open" = 1 ]; then __holdfast_head >|"$__holdfast/state.$__holdfast_file" || :; fi
    emulate -L zsh
    if (( __holdfast_open )); then
        __holdfast_open=0
        __holdfast_state=$__holdfast_file
        __holdfast_dump >>$__holdfast/state.$__holdfast_state
        (( __holdfast_file = __holdfast_file == 0 ))
    fi
    if [[ $PWD != $__holdfast_pwd ]]; then __holdfast_locate; fi
    print -rn -- $'\e]7;file://'$HOST$__holdfast_address$'\a\e]133;A;hf;last='$__holdfast_was';state='$__holdfast_state$__holdfast_asks$'\a' >/dev/tty
    if [[ -o promptpercent && ${(t)PS1} != *export* ]]; then
        PS1=${PS1%$'%{\e]133;B;hf\a%}'}$'%{\e]133;B;hf\a%}'
        PS2=${PS2%$'%{\e]133;A;hf;k=s\a%}'}$'%{\e]133;A;hf;k=s\a%}'
    else
        print -n '\e]133;B;hf\a' >/dev/tty
    fi
    return __holdfast_was
} 2>/dev/null

# The working directory as the path of a URL.
__holdfast_locate() {
    __holdfast_pwd=$PWD __holdfast_address=$PWD
    if [[ $PWD == *[^A-Za-z0-9/._~-]* ]]; then
        setopt no_multibyte
        local byte out=
        for byte in ${(s::)PWD}; do
            if [[ $byte == [^A-Za-z0-9/._~-] ]]; then out+=%${(l:2::0:)$(( [##16] #byte ))}; else out+=$byte; fi
        done
        __holdfast_address=$out
    fi
}

# Its options, traps, keys and umask as they are: read without our own options, and without a fork.
__holdfast_head() {
    builtin print 'holdfast 2 zsh'
    builtin set -o
    builtin print -n '\0'
    builtin trap
    builtin print -n '\0'
    builtin bindkey -L
    builtin zle -lL
    builtin print -n '\0'
    builtin umask
}

# Values are written, not hashed: the files were made for the user alone by the host, which keeps only hashes.
__holdfast_dump() {
    local __holdfast_name
    local -a __holdfast_exported=("${(@k)parameters[(R)*export*]}") __holdfast_pairs=()
    for __holdfast_name in "${__holdfast_exported[@]}"; do
        __holdfast_pairs+=("$__holdfast_name" "${(P)__holdfast_name}")
    done
    # What changes how a line is read, or what runs around it; without our own marks.
    local __holdfast_ps1=${PS1%$'%{\e]133;B;hf\a%}'} __holdfast_ps2=${PS2%$'%{\e]133;A;hf;k=s\a%}'}
    # A NUL is part of it, and ends words here.
    local __holdfast_ifs=${IFS//$'\0'/}
    local -a __holdfast_around=(PS1 "$__holdfast_ps1" PS2 "$__holdfast_ps2" PS4 "$PS4" RPS1 "${RPS1-}" IFS "$__holdfast_ifs" CDPATH "$CDPATH" HISTFILE "${HISTFILE-}" FPATH "$FPATH"
        precmd_functions "${(j: :)${(@)precmd_functions:#__holdfast_*}}"
        preexec_functions "${(j: :)${(@)preexec_functions:#__holdfast_*}}"
        zshaddhistory_functions "${(j: :)${(@)zshaddhistory_functions:#__holdfast_*}}"
        chpwd_functions "${(j: :)${(@)chpwd_functions}}")
    print -rN -- '' around "$(( $#__holdfast_around / 2 ))" "${__holdfast_around[@]}" \
        builtin "$#dis_builtins" "${(@kv)dis_builtins}" \
        env "$#__holdfast_exported" "${__holdfast_pairs[@]}" \
        alias "$#aliases" "${(@kv)aliases}" galias "$#galiases" "${(@kv)galiases}" salias "$#saliases" "${(@kv)saliases}" \
        function "$#functions" "${(@kv)functions}" end
}

# First line of a command that came in a file: shows it where the line that reads it stands.
__holdfast_entered() {
    local was=$?
    emulate -L zsh
    local text=$(<$__holdfast/run)
    local -a lines=("${(@f)${text#*$'\n'}}")
    {
        if [[ -n $1 ]]; then print -n "\e[A\e[$1G\e[J"; fi
        print -rl -- "${(@)lines[1,20]}"
        if (( $#lines > 20 )); then print …; fi
        print -n "\e]133;C;hf=$__holdfast_token\a"
    } >/dev/tty
    return was
} 2>/dev/null

# Such a command is remembered in place of the line that reads it.
__holdfast_remember() {
    emulate -L zsh
    if [[ $1 != ' . "$__holdfast/run"'* ]]; then return 0; fi
    local text=$(<$__holdfast/run)
    print -rs -- "${text#*$'\n'}"
    return 1
} 2>/dev/null

# Before the first prompt, behind every precmd function, whatever the user's files make of those.
zmodload zsh/sched zsh/parameter 2>/dev/null && sched +0 __holdfast_start || precmd_functions+=(__holdfast_start)
