#!/usr/bin/env bash
# Neither the library, nor the tool, nor the wheel's library links MPI. A tool that is started as one of several processes
# and cannot talk to the others says so and does nothing: else every one of them would do all of the work and write the
# same files. (tests/all/*_mpi.sh run real ranks.)
. "$SRC/tests/cli/common.bash"
unset OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE PMIX_RANK SLURM_STEP_NUM_TASKS FINETTI_MPI

for file in "$FINETTI" "$BUILD/libfinetti.so" "$BUILD/python/library/libfinetti.so"; do
    [ -e "$file" ] || [[ $file == */python/* ]] || fail "no $file"
    [ ! -e "$file" ] || ! ldd "$file" | grep -E 'libmpi|libpmi|open-rte|open-pal|hwloc|libevent' || fail "$file links MPI"
done

cat >one.yaml <<'Y'
study: one
runs: [{command: risk}]
Y
# several VARIABLE=NUMBER...: with these set, no command of ranks begins.
several() {
    local code words
    for words in "study run one.yaml --store x.db" "fit x.csv --out x.fin" "pretrain --out x.fin" "reproduce --store x.db"; do
        code=0
        # shellcheck disable=SC2086
        env "$@" "$FINETTI" $words >stdout 2>stderr </dev/null || code=$?
        [ $code = 1 ] && [ ! -s stdout ] && [ "$(wc -l <stderr)" = 1 ] || fail "$* finetti $words: $code: $(cat stdout stderr)"
        grep -q "one of $WORD processes.*FINETTI_MPI=none" stderr || fail "$* finetti $words: $(cat stderr)"
        [ -z "$(find . -name 'x.*')" ] || fail "$* finetti $words: wrote a file"
    done
}
WORD=several
several FINETTI_MPI=/nowhere/module.so OMPI_COMM_WORLD_SIZE=4
several FINETTI_MPI=/nowhere/module.so PMI_RANK=0 PMI_SIZE=2
several FINETTI_MPI=/nowhere/module.so PMIX_RANK=0
several FINETTI_MPI=/nowhere/module.so SLURM_STEP_NUM_TASKS=2
several FINETTI_MPI="$PWD/one.yaml" OMPI_COMM_WORLD_SIZE=4
# A copy of the tool elsewhere looks beside itself, and finds nothing.
mkdir -p alone/bin
cp "$FINETTI" alone/bin
FINETTI=$PWD/alone/bin/finetti several OMPI_COMM_WORLD_SIZE=4

# Modules that are none, are of another version, or find fewer ranks than were started.
# module NAME TEXT: made of that C.
module() {
    printf '#include "finetti/study.h"\n#include <stdio.h>\n%s\n' "$2" >"$1.c"
    cc -shared -fPIC -I"$SRC/include" "$1.c" -o "$1.so"
}
module empty 'int nothing;'
several FINETTI_MPI="$PWD/empty.so" OMPI_COMM_WORLD_SIZE=4
module refuses 'fin_status finetti_ranks_join(fin_ranks_calls *c, fin_error *err) {
    (void)c; snprintf(err->message, sizeof err->message, "not today"); return err->status = FIN_ERR_UNSUPPORTED; }'
several FINETTI_MPI="$PWD/refuses.so" OMPI_COMM_WORLD_SIZE=4
grep -q "not today" stderr || fail "the module's own words: $(cat stderr)"
module single 'static uint64_t least(const int *mine, int *all) { *all = *mine; return 0; }
static int test(uint64_t *request) { (void)request; return 1; }
static void end(void) { puts("end"); fflush(stdout); }
fin_status finetti_ranks_join(fin_ranks_calls *c, fin_error *err) {
    (void)err; c->rank = 0; c->ranks = 1; c->least = least; c->test = test; c->end = end; return FIN_OK; }'
WORD=4 several FINETTI_MPI="$PWD/single.so" OMPI_COMM_WORLD_SIZE=4
mkdir -p alone/lib
FINETTI_MPI=$PWD/single.so OMPI_COMM_WORLD_SIZE=1 "$FINETTI" study run one.yaml --store single.db >out || fail "one rank"
grep -qx end out || fail "the module was not used"

# Alone: one process of mpirun without a module, one task of srun, several on purpose, and commands that have no ranks.
works() {
    env "$@" "$FINETTI" study run one.yaml --store "works-$RANDOM$RANDOM.db" >stdout 2>stderr </dev/null || fail "$*: $(cat stderr)"
}
works FINETTI_MPI=/nowhere/module.so
works FINETTI_MPI=/nowhere/module.so OMPI_COMM_WORLD_SIZE=1
works FINETTI_MPI=/nowhere/module.so SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=4
works FINETTI_MPI=none OMPI_COMM_WORLD_SIZE=4
env FINETTI_MPI=/nowhere/module.so OMPI_COMM_WORLD_SIZE=4 "$FINETTI" risk >/dev/null

# info says whether there is one.
[ "$(FINETTI_MPI=/nowhere/module.so "$FINETTI" info --json | grep -o '"MPI": "[a-z]*"')" = '"MPI": "no"' ] || fail "info: a module that is not there"
[ "$(FINETTI_MPI=$PWD/single.so "$FINETTI" info --json | grep -o '"MPI": "[a-z]*"')" = '"MPI": "yes"' ] || fail "info: a module"
