#!/usr/bin/env bash
# A new command is one file and one row: added to a copy of the tree, it is there for the tool, its help and completion,
# studies, Python, C and the reference. Objects that do not change are taken from the build, so that it takes seconds.
. "$SRC/tests/cli/common.bash"
objects=$BUILD/CMakeFiles/finetti_objects.dir
[ -d "$objects" ] || skip "the build does not leave its objects where make does"

# ---- the file and the row ------------------------------------------------------------------------

mkdir tree
cp -r "$SRC"/{CMakeLists.txt,LICENSE,README.md,cli,cmake,docs,examples,include,python,src,studies,third_party,tools} tree
cat >tree/src/lab/dummy.c <<'END'
/* dummy: twice a number. */
#include "command/command.h"

#define DUMMY_FIELDS(F, C)                                                                         \
    F(int64_t, pebbles, 3, 1, 1000, "how many pebbles there are")                                  \
    F(double, weight, 0.5, 0, 10, "of a pebble")

typedef struct dummy_values {
    DUMMY_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} dummy_values;

#define FIN_TABLE_STRUCT dummy_values
FIN_TABLE(static, dummy_table, "dummy", DUMMY_FIELDS);
#undef FIN_TABLE_STRUCT

static const fin_output outputs[] = {
    {"load", "what all pebbles weigh", "kg"},
    {NULL, NULL, NULL},
};

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const dummy_values *v = values;
    (void)progress, (void)err;
    fini_result_scalar(result, "load", (double)v->pebbles * v->weight, 0, FIN_HOW_CLOSED, 0);
    return FIN_OK;
}

const fin_command fini_command_dummy = {
    .name = "dummy",
    .summary = "the load of some pebbles",
    .revision = 1,
    .size = sizeof(dummy_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(dummy_table),
    .run = run,
};
END
before=$(wc -l <tree/src/command/command.c)
sed -i 's/^    C(urn) .*/&\n    C(dummy) \\/' tree/src/command/command.c
[ "$(wc -l <tree/src/command/command.c)" = $((before + 1)) ] || fail "the row was not added"

# ---- building ------------------------------------------------------------------------------------

cached() { # NAME: -D NAME=VALUE, as the build has it
    sed -n "s/^\($1\):[A-Z]*=\(.*\)/-D\n\1=\2/p" "$BUILD/CMakeCache.txt"
}
mapfile -t options < <(cached 'CMAKE_C_COMPILER' && cached 'CMAKE_BUILD_TYPE' && cached 'CMAKE_C_FLAGS' && cached 'FINETTI_[A-Z_]*')
FINETTI_SETUP=no cmake -S tree -B build "${options[@]}" -D BUILD_TESTING=OFF >configure.log 2>&1 || fail "$(tail -5 configure.log)"
for target in finetti_objects finetti_cli; do # a tool without objects of its own compiles them
    from=$BUILD/CMakeFiles/$target.dir to=build/CMakeFiles/$target.dir
    [ -d "$from" ] || continue
    (cd "$from" && find . -name '*.o' -print0 | tar cf - --null -T -) | tar xmf - -C "$to"
done
rm build/CMakeFiles/finetti_objects.dir/src/command/command.c.o
find tree -exec touch -d '2 days ago' {} + # older than the objects; what is generated is made again
find build -name flags.make -exec touch -d '2 days ago' {} +
find build -name build.make -exec touch -d '2 days ago' {} +
targets=(product commands_reference)
# A Python has no sanitizer in it.
grep -q '^wheel:' build/Makefile && ! grep -q '^FINETTI_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt" && targets+=(wheel)
cmake --build build -j 2 --target "${targets[@]}" >build.log 2>&1 || fail "$(grep -m 5 -i 'error' build.log || tail -5 build.log)"
compiled=$(grep -c 'Building C object .*finetti_objects' build.log)
[ "$compiled" -le 20 ] || echo "SKIPPED: speed: $compiled files were compiled again"
FINETTI=$work/build/finetti

# ---- everywhere ----------------------------------------------------------------------------------

sees() { # PATTERN COMMAND...: its output has this line
    local pattern=$1
    shift
    "$@" >seen.txt 2>&1 || fail "$*: $(head -c 300 seen.txt)"
    grep -q -e "$pattern" seen.txt || fail "$*: no '$pattern' in: $(head -c 600 seen.txt)"
}
sees '^  dummy  *the load of some pebbles' "$FINETTI" lab
sees '^  --pebbles INTEGER  *how many pebbles there are \[1 to 1000; default 3\]' "$FINETTI" help lab dummy
sees '^--pebbles' "$FINETTI" complete lab dummy
sees '10\.5' "$FINETTI" lab dummy --pebbles 21
sees '"load"' "$FINETTI" lab dummy --json
sees '^2,1\(,\|$\)' "$FINETTI" lab dummy --sweep pebbles=1,2
refuses 2 "did you mean 'pebbles'?" lab dummy --pebles 2
sees 'load .*what all pebbles weigh' "$FINETTI" study commands
sees '^| `load` | kg | what all pebbles weigh |' build/tools/commands

cat >stones.yaml <<'END'
study: stones
title: Pebbles
runs:
  - id: few
    command: dummy
    axes: {pebbles: [1, 2, 3]}
claims:
  - id: heavy
    statement: Three pebbles weigh one and a half.
    take: load
    reduce: max
    expect: {equal: 1.5}
END
sees '[Cc]onfirmed\|holds\|passed' "$FINETTI" study run stones.yaml --store stones.db

if [[ ${targets[*]} == *wheel* ]]; then
    mkdir site
    "$PYTHON" -m zipfile -e build/python/finetti-*.whl site
    PYTHONPATH=$work/site "$PYTHON" - <<'END'
import finetti

assert finetti.run("dummy", pebbles=21).load == 10.5
assert finetti.run("dummy", pebbles=[1, 2]).load.tolist() == [0.5, 1.0]
row = finetti.commands()["dummy"]
assert row.outputs["load"].unit == "kg" and "how many pebbles there are" in repr(row)
assert "dummy" in finetti.run.__doc__
END
else
    echo "SKIPPED: Python: no wheel is built here"
fi
