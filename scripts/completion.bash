# Tab completion for the commands of train/ and scripts/, however they are started:
#     source scripts/completion.bash
# Flags, their choices and names of benchmarks come from each command's own --help, which is asked once and kept in the
# cache until the command's file changes. Everything else is completed as a file.

_ecomjudge_help() {  # file [benchmark]
    local kept="${XDG_CACHE_HOME:-$HOME/.cache}/ecomjudge/help/${PWD//\//%}%${1//\//%}%$2"
    if [[ ! -s "$kept" || "$1" -nt "$kept" ]]; then
        mkdir -p "${kept%/*}" || return
        "$ECOMJUDGE_PYTHON" "$1" ${2:+"$2"} --help 2> /dev/null > "$kept.$$" && mv "$kept.$$" "$kept" || rm -f "$kept.$$"
    fi
    cat "$kept" 2> /dev/null
}

_ecomjudge() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD - 1]}" file="" benchmark="" names="" help k
    local ECOMJUDGE_PYTHON="python"
    [[ "${COMP_WORDS[0]}" == *python* ]] && ECOMJUDGE_PYTHON="${COMP_WORDS[0]}"
    COMPREPLY=()
    for ((k = 1; k < COMP_CWORD; k++)); do
        [[ "${COMP_WORDS[k]}" =~ ^(\./)?(train|scripts)/[a-z_]+\.py$ && -f "${COMP_WORDS[k]}" ]] && file="${COMP_WORDS[k]}" && break
    done
    [[ -n "$file" ]] || return  # no command of ours: readline's own completion of files
    if [[ "$file" == */evaluate.py || "$file" == */build.py ]]; then
        names="$(_ecomjudge_help "$file" | sed -n 's/^  \([a-z-]\{1,\}\)  .*/\1/p')"
        if ((COMP_CWORD == k + 1)); then
            mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
            return
        fi
        benchmark="${COMP_WORDS[k + 1]}"
    fi
    help="$(_ecomjudge_help "$file" "$benchmark")"
    if [[ "$current" == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '^ +-[-A-Za-z_.]+(, --[A-Za-z_.]+)*' <<< "$help" | grep -oE -- '--[A-Za-z_.]+')" -- "$current")
    elif [[ "$before" == --* ]]; then
        names="$(grep -oE -- "^ +$before \{[^}]*\}" <<< "$help" | sed 's/.*{\(.*\)}/\1/' | tr ',' ' ')"
        [[ -n "$names" ]] && mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
    fi
}

complete -o default -F _ecomjudge python python3 .venv/bin/python accelerate
