# The runner of the tests (tests/run.sh), on tests made for it: what it counts, and which skips it lets pass.
. "$SRC/tests/cli/common.bash"

# tree NAME=COMMAND...: a build tree with these tests, label lean; 77 is a skip.
tree() {
    local name
    rm -rf tree && mkdir tree
    for row in "$@"; do
        name=${row%%=*}
        printf 'add_test([=[%s]=] bash -c [==[%s]==])\n' "$name" "${row#*=}"
        printf 'set_tests_properties([=[%s]=] PROPERTIES LABELS lean SKIP_RETURN_CODE 77)\n' "$name"
    done >tree/CTestTestfile.cmake
}
# runs CODE LINE...: with skips.txt as it is; each LINE is printed, whole.
runs() {
    local code=$1 got=0
    shift
    SKIPS=$work/skips.txt bash "$SRC/tests/run.sh" tree lean 2 >out 2>err || got=$?
    [ $got = "$code" ] || fail "exit code $got, not $code: $(cat out err)"
    for line in "$@"; do
        grep -qxF -- "$line" out || fail "no '$line' in: $(cat out err)"
    done
}

printf '# none\n' >skips.txt
tree test_one_a=true test_one_b=true cli_x=true
runs 0 '3 passed, 0 failed, 0 skipped'
grep -Eqx 'one +2 tests +[0-9]+\.[0-9] s' out || fail "no line of the module: $(cat out)"

tree test_one_a=true 'test_one_b=echo the reason; exit 3'
runs 1 'the reason' '1 passed, 1 failed, 0 skipped'

# A skip that nobody named; one that is named; a reason that does not hold; one without a word.
tree test_one_a=true 'all_b=echo SKIPPED: no machine; exit 77'
runs 1 'SKIPPED all_b: no machine: tests/skips.txt does not name it' '1 passed, 1 failed, 1 skipped'
echo 'all_b | false || test 1 = 1 | it is so' >skips.txt
runs 0 'skipped all_b: no machine' '1 passed, 0 failed, 1 skipped'
echo 'all_b | test -e "$BUILD/no such file" | it is not so' >skips.txt
runs 1 "SKIPPED all_b: no machine: but 'test -e \"\$BUILD/no such file\"' does not hold here (tests/skips.txt)"
tree 'all_b=exit 77'
runs 1 'SKIPPED all_b: it does not say why'

# A part of a test that passes otherwise, behind much output.
tree 'all_b=seq 20000; echo SKIPPED: a full disk: not root; seq 20000'
echo 'all_c/a full disk | true | another' >skips.txt
runs 1 'SKIPPED all_b: a full disk: not root: tests/skips.txt does not name it'
echo 'all_b/a full disk | true | it is so' >skips.txt
runs 0 'skipped all_b: a full disk: not root' '1 passed, 0 failed, 0 skipped'

# No test is no success.
got=0
bash "$SRC/tests/run.sh" tree lean 2 'nothing' >out 2>err || got=$?
[ $got = 1 ] && grep -q 'matches nothing' err || fail "no test: exit code $got: $(cat out err)"
