# What tells Holdfast about this bash: marks in its output, and after each command its names and values in a file.
#
# Sourced after the user's own files, with the session's directory as $1. No DEBUG trap and no fork: PS0 is expanded in this
# very shell before a command runs, an element far behind the user's own PROMPT_COMMAND after it. bash itself puts $?,
# PIPESTATUS and $_ back after each such element. What is kept here is kept in arrays: `set -a` cannot export those.

__holdfast_status="return $?"
# What follows means what it says, whatever aliases the user has.
if \shopt -q expand_aliases; then
    \shopt -u expand_aliases
    __holdfast_status="shopt -s expand_aliases; $__holdfast_status"
fi
if [[ $- != *i* ]] || (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404 )); then
    eval "unset __holdfast_status; $__holdfast_status"
fi

# With `set -a` functions would be exported too.
case $- in
*a*)
    set +a
    __holdfast_status="set -a; $__holdfast_status"
    ;;
esac

# [0] the directory, [1] commands started since the last prompt, [2] a directory and [3] its address, [4] never set,
# from [5] on the tokens of the commands started.
__holdfast=("$1" 0 '' '')
# [0] which state file is next, [1..3] what is put behind PS0, PS1 and PS2, [4] whether the key is bound that asks for the line,
# [5] whether traps are told.
__holdfast_own=(2
    '${__holdfast:$((__holdfast[1]+=1,0)):0}\e]133;C;hf=${__holdfast[4+__holdfast[1]]:=$(<"$__holdfast/next")}\a'
    '\[${__holdfast[4+__holdfast[1]]+\e]133;D;$?;hf=${__holdfast[4+__holdfast[1]]}\a}\e]133;B;hf\a\]'
    '\[\e]133;A;hf;k=s\a\]')
if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 502 )); then
    # $(<file) would fork here: the token is read when the command has ended.
    __holdfast_own[1]='${__holdfast:$((__holdfast[1]+=1,0)):0}\e]133;C;hf=${__holdfast[4+__holdfast[1]]:=}\a'
fi

__holdfast_prompt() {
    # A DEBUG trap that functions inherit has no business in ours, and nothing here may become exported. Our own locals have
    # our own names: one like a variable of the user's would be told in its place.
    local __holdfast_was=$? __holdfast_options=$SHELLOPTS __holdfast_letters=$- __holdfast_ifs=${IFS-unset}
    set +Ta
    __holdfast_tell "$__holdfast_was" "$__holdfast_options" || :
    if [[ $__holdfast_letters == *T* ]]; then set -T; fi
    if [[ $__holdfast_letters == *a* ]]; then set -a; fi
    return "$__holdfast_was"
}

__holdfast_tell() {
    local IFS=' ' __holdfast_token='' __holdfast_literal='' __holdfast_ended='' __holdfast_state=''
    if ! shopt -q promptvars; then
        # PS0 cannot count: every prompt counts as the end of something.
        __holdfast_literal=1 __holdfast[1]=1
    fi
    if (( __holdfast[1] )); then
        __holdfast_token=${__holdfast[4 + __holdfast[1]]-}
        if [[ ! $__holdfast_token ]]; then read -r __holdfast_token <"$__holdfast/next"; fi
        printf '\e]133;D;%d;hf=%s\a' "$1" "$__holdfast_token" >/dev/tty
        if [[ $__holdfast_token ]]; then : >|"$__holdfast/next"; fi
        __holdfast=("$__holdfast" 0 "${__holdfast[2]}" "${__holdfast[3]}")
        __holdfast_ended=1
    fi
    # The first state is what everything later is compared with: it has a file of its own.
    if [[ $__holdfast_ended || ${__holdfast_own[0]} == 2 ]]; then
        __holdfast_state=${__holdfast_own[0]}
        __holdfast_dump "$2" >|"$__holdfast/state.$__holdfast_state"
        __holdfast_own[0]=$((__holdfast_state == 0))
    fi
    if [[ $PWD != "${__holdfast[2]}" ]]; then __holdfast_address; fi
    printf '\e]7;file://%s\a\e]133;A;hf;last=%d;state=%s%s\a' \
        "$HOSTNAME${__holdfast[3]}" "$1" "$__holdfast_state" "${__holdfast_own[4]-}" >/dev/tty
    __holdfast_dress
}

# Puts our marks behind the prompts, whatever the user's rc or PROMPT_COMMAND made of them meanwhile.
__holdfast_dress() {
    local before=${PS0-} prompt=${PS1-} more=${PS2-}
    before=${before//"${__holdfast_own[1]}"/}
    prompt=${prompt//"${__holdfast_own[2]}"/}
    if [[ ! $__holdfast_literal ]]; then before+=${__holdfast_own[1]}; fi
    if [[ $__holdfast_literal || ${PS1@a} == *x* ]]; then
        # Children would inherit it and know nothing of our variables.
        printf '\e]133;B;hf\a' >/dev/tty
    else
        prompt+=${__holdfast_own[2]}
    fi
    if [[ ${PS0-} != "$before" ]]; then PS0=$before; fi
    if [[ ${PS1-} != "$prompt" ]]; then PS1=$prompt; fi
    if [[ ${PS2@a} != *x* && $more != *"${__holdfast_own[3]}" ]]; then
        PS2=${more//"${__holdfast_own[3]}"/}${__holdfast_own[3]}
    fi
}

# The working directory as the path of a URL.
__holdfast_address() {
    __holdfast[2]=$PWD __holdfast[3]=$PWD
    if [[ $PWD == *[!A-Za-z0-9/._~-]* ]]; then
        local LC_ALL=C at byte out=''
        for (( at = 0; at < ${#PWD}; at++ )); do
            byte=${PWD:at:1}
            if [[ $byte == [!A-Za-z0-9/._~-] ]]; then printf -v byte '%%%02X' "'$byte"; fi
            # A byte above 127 may come out as a negative number.
            out+=${byte/FFFFFFFFFFFFFF/}
        done
        __holdfast[3]=$out
    fi
}

# Values are written, not hashed: bash could not do it cheaply. The files were made for the user alone by the host, which
# keeps only hashes. What changes how a line is read or what runs around it is told too: our own marks are left out of it.
__holdfast_dump() {
    local __holdfast_traps='' __holdfast_ps0=${PS0-} __holdfast_ps1=${PS1-} __holdfast_ps2=${PS2-}
    # `trap -p` tells of DEBUG and ERR only outside of functions.
    if [[ ${__holdfast_own[5]-} ]]; then IFS= read -r -d '' __holdfast_traps <"$__holdfast/traps"; fi
    printf 'holdfast 2 bash\n%s\n%s\n%d' "$1" "$BASHOPTS" "${#BASH_ALIASES[@]}"
    if (( ${#BASH_ALIASES[@]} )); then printf '\0%s' "${!BASH_ALIASES[@]}" "${BASH_ALIASES[@]}"; fi
    printf '\0\n'
    declare -xp
    printf '\1\n'
    printf '%s\0' 9 PS0 "${__holdfast_ps0//"${__holdfast_own[1]}"/}" PS1 "${__holdfast_ps1//"${__holdfast_own[2]}"/}" \
        PS2 "${__holdfast_ps2//"${__holdfast_own[3]}"/}" PS4 "${PS4-}" IFS "${__holdfast_ifs-${IFS-}}" CDPATH "${CDPATH-}" \
        GLOBIGNORE "${GLOBIGNORE-}" HISTFILE "${HISTFILE-}" PROMPT_COMMAND "${PROMPT_COMMAND[*]-}"
    printf '%s\0' "$__holdfast_traps"
    bind -s
    bind -X
    printf '\0'
    enable -n
    printf '\0'
    umask
    printf '\0%d' "${#BASH_CMDS[@]}"
    if (( ${#BASH_CMDS[@]} )); then printf '\0%s' "${!BASH_CMDS[@]}" "${BASH_CMDS[@]}"; fi
    printf '\0\n'
    declare -F
    printf '\1\n'
    declare -f
    printf '\1end\n'
}

# First line of a command that came in a file: shows it where the line that reads it stands, and remembers it in its place.
__holdfast_entered() {
    local was=$? text=$(<"$__holdfast/run") lines
    text=${text#*$'\n'}
    mapfile -t -n 21 lines <<<"$text"
    if [[ -o history ]]; then
        if [[ $(HISTTIMEFORMAT='' history 1) == *'. "$__holdfast/run"' ]]; then history -d -1; fi
        history -s -- "$text"
    fi
    {
        if [[ $1 ]]; then printf '\e[A\e[%dG\e[J' "$1"; fi
        printf '%s\n' "${lines[@]:0:20}"
        if (( ${#lines[@]} > 20 )); then printf '…\n'; fi
        printf '\e]133;C;hf=%s\a' "${__holdfast[4 + __holdfast[1]]-}"
    } >/dev/tty
    return "$was"
}

# Says how long the line is that readline holds, and nothing else of it.
__holdfast_line() {
    local was=$?
    printf '\e]133;B;hf;line=%d\a' "${#READLINE_LINE}" >/dev/tty
    return "$was"
}

if [[ $SHELLOPTS =~ (^|:)(emacs|vi)(:|$) ]] && (( BASH_VERSINFO[0] >= 5 )); then
    # In vi's command mode a command could not be typed: it is left first.
    if bind -m emacs -x '"\e[7133~": __holdfast_line' && bind -m vi-insert -x '"\e[7133~": __holdfast_line' \
        && bind -m vi-command '"\e[7133~": "i\e[7133~"'; then
        __holdfast_own[4]=';ask'
    fi 2>/dev/null
fi

if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501 )); then
    # Far behind: `PROMPT_COMMAND=…` replaces element 0 and leaves ours alone.
    PROMPT_COMMAND[9999]='{ trap -p >|"$__holdfast/traps" || :; } 2>/dev/null'
    PROMPT_COMMAND[10000]='{ __holdfast_prompt || :; } 2>/dev/null'
    __holdfast_own[5]=1
else
    PROMPT_COMMAND='{ __holdfast_prompt; } 2>/dev/null'${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
fi
eval "unset __holdfast_status; $__holdfast_status"
