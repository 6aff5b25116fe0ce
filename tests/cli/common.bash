# What the tests of the tool share: source this first. FINETTI, SRC, BUILD and PYTHON come from ctest.
set -eu
: "${FINETTI:?the tool}" "${SRC:?the source tree}" "${PYTHON:?python3}"
# Root may write anywhere: a script about what is forbidden says needs_permissions=yes before it sources this, and runs
# as nobody where nobody can reach the tree.
if [ "${needs_permissions:-no}" = yes ] && [ "$(id -u)" = 0 ]; then
    nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
    if $nobody test -x "$FINETTI" 2>/dev/null && $nobody test -r "$SRC/tests/cli/common.bash"; then
        exec $nobody bash "$0"
    fi
fi
unset OMP_NUM_THREADS FINETTI_KERNEL
# One thread, as other tests run beside this one. What is about threads asks for them: --threads, FINETTI_THREADS.
export FINETTI_THREADS=1 OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work FINETTI SRC PYTHON
export PYTHONPATH=$SRC/tests/cli PYTHONDONTWRITEBYTECODE=1 # npz.py
cd "$work"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# skip REASON: the whole script cannot run here. Where a part cannot, it prints "SKIPPED: PART: REASON" and goes on.
skip() {
    echo "SKIPPED: $*"
    exit 77
}

# needs_mpi: skips where there is no MPI; then `ranks N COMMAND...` runs that many processes, and gives up in the end.
needs_mpi() {
    command -v mpirun >/dev/null || skip "no mpirun"
    [ -e "$BUILD/finetti_mpi.so" ] || skip "built without MPI"
    # More ranks than processors, and as root in a container.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none
    # Those who wait, ranks or threads, let others work.
    export OMPI_MCA_mpi_yield_when_idle=1 OMP_WAIT_POLICY=passive
    ranks 2 true 2>mpirun.err || skip "mpirun does not work here: $(grep -m 1 '[a-z]' mpirun.err)"
}
ranks() {
    local n=$1
    shift
    timeout 300 mpirun -n "$n" "$@"
}

# refuses CODE PATTERN ARGS...: the exit code, one line on stderr that has the pattern and starts
# with the tool's name, nothing on stdout.
refuses() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$FINETTI" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || got=$?
    [ "$got" = "$code" ] || fail "finetti $*: exit code $got, not $code: $(head -c 300 "$work/stderr")"
    [ ! -s "$work/stdout" ] || fail "finetti $*: printed something and failed"
    # By bash alone: a thousand of these would start three thousand programs.
    local lines
    mapfile lines <"$work/stderr"
    [ ${#lines[@]} = 1 ] && [[ ${lines[0]} == *$'\n' ]] || fail "finetti $*: not one line: $(head -c 600 "$work/stderr")"
    [[ ${lines[0]} == finetti* ]] || fail "finetti $*: $(cat "$work/stderr")"
    [[ ${lines[0]} == *"$pattern"* ]] || fail "finetti $*: no '$pattern' in: $(cat "$work/stderr")"
}

# accepts ARGS...: exit code 0; the output is in $work/stdout.
accepts() {
    "$FINETTI" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null ||
        fail "finetti $*: exit code $?: $(cat "$work/stderr")"
}

# prints TEXT: in the output of the last accepts.
prints() {
    local text
    IFS= read -r -d '' text <"$work/stdout" || true
    [[ $text == *"$1"* ]] || fail "no '$1' in: $(head -c 2000 "$work/stdout")"
}

# empty_folder DIR: nothing half-written is left there, hidden files included.
empty_folder() {
    [ -z "$(ls -A "$1")" ] || fail "left behind: $(ls -A "$1")"
}

# The browser of tests, what validates HTML and what checks types: npm packages in $BUILD/browser, $browser.
playwright() {
    local wanted="playwright-core@1.65.0 html-validate@10.17.0 typescript@5.9.3"
    browser=$BUILD/browser
    mkdir -p "$browser"
    # Tests that run side by side share the folder; a registry may not answer at once.
    (
        flock 8
        for try in 1 2 3 4; do
            missing=
            for one in $wanted; do
                grep -qs "\"version\": \"${one#*@}\"" "$browser/node_modules/${one%@*}/package.json" || missing=yes
            done
            [ -n "$missing" ] || exit 0
            [ $try -lt 4 ] || exit 1
            # shellcheck disable=SC2086 # one argument per package
            npm install --no-save --no-audit --no-fund --prefix "$browser" $wanted >npm.log 2>&1 || sleep $((5 * try))
        done
    ) 8>"$browser.lock" || skip "npm cannot install $wanted: $(tail -n 1 npm.log)"
}
