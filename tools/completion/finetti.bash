# bash completion for finetti. The tool itself says which commands, options and names there are
# (finetti complete), so that this file never goes stale.

_finetti()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local tool=${COMP_WORDS[0]} command=${COMP_WORDS[1]-} i line list choices
    local -a chosen=()

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
        mapfile -t COMPREPLY < <(compgen -W "$("$tool" complete 2>/dev/null) --version" -- "$word")
        return
    fi
    # Which options there are depends on the task and the form.
    for ((i = 2; i < COMP_CWORD - 1; i++)); do
        case ${COMP_WORDS[i]} in
        --task | --form) chosen+=("${COMP_WORDS[i]}" "${COMP_WORDS[i+1]}") ;;
        esac
    done
    list=$("$tool" complete "$command" "${chosen[@]}" 2>/dev/null) || return
    line=$(printf '%s\n' "$list" | grep -m 1 -F -- "$before"$'\t') || line=
    choices=${line##*$'\t'}
    if [ -n "$line" ] && [ -n "$choices" ]; then
        mapfile -t COMPREPLY < <(compgen -W "${choices//|/ }" -- "$word")
    elif [[ $line == *$'\tfile\t'* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null || true
    elif [ -z "$line" ] || [[ $line == *$'\tflag\t'* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' "$list" | cut -f 1)" -- "$word")
    fi
    return 0
}

complete -F _finetti finetti
