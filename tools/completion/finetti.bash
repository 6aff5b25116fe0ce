# bash completion for finetti. The tool itself says which commands, options and names there are
# (finetti complete), so that this file never goes stale.

_finetti()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local tool=${COMP_WORDS[0]} first=1 i line list choices
    local -a command=() chosen=()

    COMPREPLY=()
    [ "${COMP_WORDS[1]-}" = help ] && [ "$COMP_CWORD" -gt 1 ] && first=2
    if [ "$COMP_CWORD" -eq "$first" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$tool" complete 2>/dev/null) --version" -- "$word")
        return
    fi
    # A command has one word or, where the tool lists further ones, two.
    command=("${COMP_WORDS[first]}")
    list=$("$tool" complete "${command[@]}" 2>/dev/null) || return
    if [[ $list == *$'\tcommand\t'* ]]; then
        if [ "$COMP_CWORD" -eq $((first + 1)) ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' "$list" | cut -f 1)" -- "$word")
            return
        fi
        command+=("${COMP_WORDS[first+1]}")
    fi
    # Which options there are depends on the task, the form and the family.
    for ((i = first + 1; i < COMP_CWORD - 1; i++)); do
        case ${COMP_WORDS[i]} in
        --task | --form | --family | --data | --resume) chosen+=("${COMP_WORDS[i]}" "${COMP_WORDS[i+1]}") ;;
        esac
    done
    list=$("$tool" complete "${command[@]}" "${chosen[@]}" 2>/dev/null) || return
    line=$(printf '%s\n' "$list" | grep -m 1 -F -- "$before"$'\t') || line=
    [[ $before == --* ]] || line=
    choices=${line##*$'\t'}
    if [ -n "$line" ] && [ -n "$choices" ]; then
        mapfile -t COMPREPLY < <(compgen -W "${choices//|/ }" -- "$word")
    elif [[ $line == *$'\tfile\t'* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null || true
    elif [ -z "$line" ] || [[ $line == *$'\tflag\t'* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(printf '%s\n' "$list" | cut -f 1)" -- "$word")
        # A study file, a store, a table, bags or a model.
        if [[ $list == *$'\toperand\t'* || " study attend fit predict locate finetune probe info " == *" ${command[0]} "* ]] &&
            [[ $word != -* ]]; then
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
            compopt -o filenames 2>/dev/null || true
        fi
    fi
    return 0
}

complete -F _finetti finetti
