#!/usr/bin/env bash
# A new command, form, task, family or bag model is one file and one row: added to a copy of the tree, each is there for the tool, its
# help and completion, studies, training, Python, C and the reference. Objects that do not change are taken from the
# build, so that it takes seconds. Of each kind: the file and the row (add), and below what must find it.
. "$SRC/tests/cli/common.bash"
objects=$BUILD/CMakeFiles/finetti_objects.dir
[ -d "$objects" ] || skip "the build does not leave its objects where make does"

mkdir tree
cp -r "$SRC"/{CMakeLists.txt,LICENSE,README.md,cli,cmake,docs,examples,include,python,src,studies,third_party,tools,web} tree

tables=() # the files that have a new row
row() { # TABLE SED [SOURCE]: one row more in this file; which source it is in, if it is a header
    local before
    before=$(wc -l <"tree/$1")
    sed -i "$2" "tree/$1"
    [ "$(wc -l <"tree/$1")" = $((before + 1)) ] || fail "$1: the row was not added"
    tables+=("${3:-$1}")
}

# ---- a command -----------------------------------------------------------------------------------

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
row src/command/command.c 's/^    C(urn) .*/&\n    C(dummy) \\/'

# ---- a form: w_l = lam chi_l^2, with a quadrature, and none of erf's kernels -----------------------

cat >tree/src/attention/dummy.c <<'END'
/* square: w_l = lam chi_l^2. */
#include "attention/form.h"

#define FIELDS(F, C) FIN_FORM_LAM(F, C)
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, square_settings, "square", FIELDS);

static double value(const fin_form_settings *s, double chi)
{
    return s->lam * chi * chi;
}

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    for (int64_t l = 0; l < offsets[n] - offsets[0]; l++)
        w[l] = value(s, chi[l]);
}

static void backward(const fin_form_settings *s, const fini_pass *t)
{
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t l = t->offsets[i] - t->offsets[0]; l < t->offsets[i + 1] - t->offsets[0]; l++) {
            double slope = t->df[i] * t->z[l];
            t->p[l] = slope * 2 * s->lam * t->chi[l];
            t->dlam[i] += slope * t->chi[l] * t->chi[l];
        }
}

const fin_form fini_form_square = {
    .name = "square",
    .summary = "w_l = lam chi_l^2",
    .settings = &square_settings,
    .elementwise = 1,
    .weights = weights,
    .backward = backward,
    .value = value,
};
END
row src/attention/form.c 's/^    F(linear) .*/&\n    F(square) \\/'

# ---- a task whose relevance is decided otherwise: by |X.k*|, so that the posterior is no softmax of X.k* -----------

cat >tree/src/task/dummy.c <<'END'
/* far: tokens N(0, I); the relevant one is drawn by softmax(snr |X.k*|). */
#include "task/task.h"

#define FIELDS(F, C) FIN_TASK_COMMON(F, C) FIN_TASK_SNR(F, C)
#define FIN_TABLE_STRUCT fin_task_settings
FIN_TABLE(static, far_settings, "far", FIELDS);

static fin_status resolve(fin_task_settings *s, fin_error *err)
{
    (void)err;
    s->mu = 0;
    s->gamma = 1;
    return FIN_OK;
}

static double odds(const fin_task_settings *s, double chi_star)
{
    return s->snr * fabs(chi_star);
}

const fin_task_kind fini_task_far = {
    .name = "far",
    .summary = "tokens N(0, I); the relevant one is drawn by softmax(snr |X.k*|)",
    .settings = &far_settings,
    .resolve = resolve,
    .odds = odds,
};
END
row src/task/task.c 's/^    K(slr) .*/&\n    K(far) \\/'

# ---- a family: coins with a beta prior ------------------------------------------------------------

cat >tree/src/family/dummy.c <<'END'
/* coin: tokens are 0 or 1, the probability of 1 has a beta law. */
#include "family/family.h"

#define FIELDS(F, C) FIN_LATENT_ALPHA(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, coin_settings, "coin", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    (void)err;
    latent->shape.dv = 1;
    latent->shape.outcomes = latent->shape.latent = latent->shape.statistic = 2;
    latent->shape.posterior = 2;
    return FIN_OK;
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work, fin_error *err)
{
    (void)work, (void)err;
    fin_random random;
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample);
    double a = fin_random_gamma(&random, latent->settings.alpha);
    double b = fin_random_gamma(&random, latent->settings.alpha);
    s->z[0] = a / (a + b);
    s->z[1] = b / (a + b);
    for (int64_t l = 0; l < s->L; l++) {
        double u = fin_random_uniform(&random);
        if (s->values)
            s->values[l] = u > s->z[0];
    }
    for (int64_t q = 0; q < s->Q; q++) {
        double u = fin_random_uniform(&random);
        if (s->answers)
            s->answers[q] = u > s->z[0];
        for (int j = 0; s->truth && j < 2; j++)
            s->truth[2 * q + j] = s->z[j];
    }
    return FIN_OK;
}

static fin_status posterior(const fin_latent *latent, const double *statistic, double *a,
                            double *work, fin_error *err)
{
    (void)work, (void)err;
    for (int j = 0; j < 2; j++)
        a[j] = latent->settings.alpha + statistic[j];
    return FIN_OK;
}

static fin_status predict(const fin_latent *latent, const double *statistic, const fini_query *query,
                          double *work, fin_error *err)
{
    fin_status status = posterior(latent, statistic, work, NULL, err);
    for (int64_t q = 0; q < query->m; q++)
        for (int j = 0; j < 2; j++)
            query->mean[2 * q + j] = work[j] / (work[0] + work[1]);
    return status;
}

/* E 2 Var(p | tosses) of a beta law: alpha / ((2 alpha + 1) (2 alpha + L)). */
static double closed_risk(const fin_latent *latent, int64_t L)
{
    double a = latent->settings.alpha;
    return a / ((2 * a + 1) * (2 * a + (double)L));
}

const fin_family fini_family_coin = {
    .name = "coin",
    .summary = "tosses of a coin, its probability a beta law",
    .settings = &coin_settings,
    .value_categories = true,
    .posterior_parts = "alpha outcomes",
    .resolve = resolve,
    .room = fini_outcomes_room,
    .draw = draw,
    .accumulate = fini_outcomes_count,
    .posterior = posterior,
    .predict = predict,
    .closed_risk = closed_risk,
    .posterior_mean = fini_outcomes_mean,
};
END
row src/family/family.c 's/^    F(mean) .*/&\n    F(coin) \\/'

# ---- a bag model: the first token decides, whatever it is ---------------------------------------------

cat >tree/src/bags/dummy.c <<'END'
/* first: f = v.phi_1 + b, of the first token of a bag. */
#include "bags/bags.h"

static int64_t scratch(const fini_bag_shape *shape)
{
    return 2 * shape->outputs;
}

static void forward(const fini_bag *bag, double *f)
{
    for (int64_t o = 0; o < bag->shape->outputs; o++)
        f[o] = bag->U[o] + bag->extra[o];
}

static double loss(const fini_bag *bag, double y, double *dU, double *dextra)
{
    int64_t O = bag->shape->outputs;
    double *f = bag->scratch, *df = f + O;
    forward(bag, f);
    double value = fini_emission_loss(bag->shape, f, y, df);
    for (int64_t i = 0; i < bag->L * O; i++)
        dU[i] = i < O ? df[i] : 0;
    for (int64_t o = 0; o < O; o++)
        dextra[o] += df[o];
    return value;
}

static void predict(const fini_bag *bag, double *out, double *variance)
{
    forward(bag, bag->scratch);
    fini_emission_predict(bag->shape, bag->scratch, out);
    if (variance)
        variance[0] = 0;
}

static void locate(const fini_bag *bag, const double *y, double sigma2, double *weight)
{
    (void)y, (void)sigma2;
    for (int64_t l = 0; l < bag->L; l++)
        weight[l] = l == 0;
}

static const fini_bag_form first_form = {.name = "first",
                                         .keys = fini_size_none,
                                         .values = fini_size_outputs,
                                         .extras = fini_size_outputs,
                                         .scratch = scratch,
                                         .loss = loss,
                                         .predict = predict,
                                         .locate = locate};
const fini_bag_model fini_bag_model_first = {.is = {.name = "first"}, .form = &first_form};
END
row include/finetti/bags.h 's/^    M(BAYES, bayes)$/    M(BAYES, bayes) \\\n    M(FIRST, first)/' src/bags/model.c

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
for table in "${tables[@]}"; do
    rm "build/CMakeFiles/finetti_objects.dir/$table.o"
done
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

# A form, a task, a family: risks, training, encoders, help, completion, info.
for kind in 'form square w_l = lam chi_l^2' 'task far tokens N(0, I)' 'family coin tosses of a coin'; do
    read -r word name summary <<<"$kind"
    sees "^  $name  *$summary" "$FINETTI" help tasks
    sees "^  $name  *$summary" "$FINETTI" info
    sees "\"$name\": \"$summary" "$FINETTI" info --json
done
for command in risk train landscape; do
    sees "^--form.*|square" "$FINETTI" complete $command
    sees "^--task.*|far" "$FINETTI" complete $command
    sees "|square|" "$FINETTI" help $command
done
sees "^--family.*|coin" "$FINETTI" complete latent risk
sees "^--family.*|coin" "$FINETTI" complete lab encoder
sees "^--family.*|far" "$FINETTI" complete lab encoder
sees "Settings of family coin" "$FINETTI" help latent draw --family coin
refuses 2 "did you mean square?" risk --form squar
sees 'quadrature' "$FINETTI" risk --form square --lam 0.02
sees 'simulation' "$FINETTI" risk --task far --form square --show risk,bayes,linear --samples 2000
refuses 1 'no softmax of lam' risk --task far --form bayes --samples 2000
sees 'simulation' "$FINETTI" risk --task far --form bayes --lam 2 --c 0 --samples 2000
sees 'simulation' "$FINETTI" risk --task far --m 2 --form softmax --samples 2000
sees '"steps": 20' "$FINETTI" train --form square --lam 0.02 --alpha 0.0001 --steps 20 --runs 2 --json
sees '"steps": 20' "$FINETTI" train --form softmax --task far --engine reduced --steps 20 --runs 2 --json
sees '"steps": 20' "$FINETTI" train --form square --task far --engine ambient --d 8 --alpha 0.0001 --steps 20 --runs 2 --json
sees 'y' "$FINETTI" simulate --task far --n 3 --d 4 --out -
sees '0.0285714' "$FINETTI" latent risk --family coin --alpha 2 --L 10 --samples 2000
sees 'v1' "$FINETTI" latent draw --family coin --n 2 --L 3 --out -
sees '"excess"' "$FINETTI" lab encoder --family coin --steps 3 --json
sees '"excess"' "$FINETTI" lab encoder --family far --d 4 --steps 3 --json
refuses 1 'has no label to learn' lab encoder --family coin --objective supervised --steps 3
refuses 2 'is not one of' lab regret --family coin

# A bag model: fit, predict, locate, help, completion, info. The label is the sign of the first of three tokens.
"$PYTHON" - >first.csv <<'END'
import random
random.seed(1)
print("bag,label,x1,x2")
for bag in range(80):
    tokens = [[random.gauss(0, 1), random.gauss(0, 1)] for _ in range(3)]
    for x in tokens:
        print(bag, "yes" if tokens[0][0] > 0 else "no", *x, sep=",")
END
sees "^--model.*|first" "$FINETTI" complete fit
sees "|first" "$FINETTI" help fit
refuses 2 "did you mean first?" fit first.csv --model frist
sees '"first"' "$FINETTI" fit first.csv --model first --compare mean --cv 4 --no-curve --json --out first.fin
"$PYTHON" - seen.txt <<'END'
import json, sys
rows = {r["model"]: r["mean"]["accuracy"] for r in json.load(open(sys.argv[1]))["validation"]["models"]}
assert rows["first"] > 0.9 > rows["mean"], rows
END
sees 'first' "$FINETTI" info first.fin
sees '"yes"' "$FINETTI" predict first.fin first.csv --json
accepts locate first.fin first.csv --out located.csv
"$PYTHON" - <<'END'
import csv
rows = list(csv.DictReader(open("located.csv")))
weight = [c for c in rows[0] if c in ("weight", "probability")][0]
assert all(float(r[weight]) == (i % 3 == 0) for i, r in enumerate(rows)) and len(rows) == 240, rows[:4]
END

cat >stones.yaml <<'END'
study: stones
title: Pebbles
runs:
  - id: few
    command: dummy
    axes: {pebbles: [1, 2, 3]}
  - id: rows
    command: risk
    set: {lam: 0.02, samples: 2000, L: 5}
    axes: {form: [square, softmax], task: [slr, far]}
  - id: coins
    command: latent
    set: {family: coin, alpha: 2, show: bayes}
    axes: {L: [1, 10]}
claims:
  - id: heavy
    statement: Three pebbles weigh one and a half.
    from: few
    take: load
    reduce: max
    expect: {equal: 1.5}
  - id: tossed
    statement: After ten tosses 2 / 70 are left.
    from: coins
    where: {L: 10}
    take: bayes
    reduce: mean
    expect: {equal: 0.0285714285714286, tolerance: 1e-12}
END
sees '[Cc]onfirmed\|holds\|passed' "$FINETTI" study run stones.yaml --store stones.db

if [[ ${targets[*]} == *wheel* ]]; then
    mkdir site
    "$PYTHON" -m zipfile -e build/python/finetti-*.whl site
    PYTHONPATH=$work/site "$PYTHON" - <<'END'
import numpy as np
import finetti

assert finetti.run("dummy", pebbles=21).load == 10.5
assert finetti.run("dummy", pebbles=[1, 2]).load.tolist() == [0.5, 1.0]
row = finetti.commands()["dummy"]
assert row.outputs["load"].unit == "kg" and "how many pebbles there are" in repr(row)
assert "dummy" in finetti.run.__doc__

square = finetti.risk(form="square", lam=0.02)
assert square.method == "quadrature" and "square" in finetti.risk.__doc__
simulated = finetti.risk(form="square", lam=0.02, method="simulation", samples=20000)
assert abs(square.risk - simulated.risk) < 5 * simulated.error
assert len(finetti.train(form="square", lam=0.02, runs=2, steps=10, alpha=1e-4)) == 2

assert "far" in finetti.tasks.names()
task = finetti.tasks.far(d=6, L=5, snr=3)
X, y, location = task.draw(2000)
w = task.posterior(X)
assert abs(w.max(axis=1).mean() - (w.argmax(axis=1) == location).mean()) < 0.05
error = ((task.predict(X) - y) ** 2).mean()
assert abs(error / finetti.bayes_risk("far", L=5, snr=3, samples=20000).risk - 1) < 0.2

rows = np.genfromtxt("first.csv", delimiter=",", skip_header=1, usecols=(2, 3)).reshape(80, 3, 2)
labels = rows[:, 0, 0] > 0
model = finetti.SingleLocationClassifier(model="first").fit(list(rows), labels)
assert model.score(list(rows), labels) > 0.9

assert "coin" in finetti.families.names()
coin = finetti.families.coin(alpha=2.0)
assert coin.posterior(None, np.array([[0.0], [1.0], [1.0]]))["alpha"].tolist() == [3.0, 4.0]
assert coin.risk(10).method == "closed form"
assert finetti.run("latent", family="coin", alpha=2, L=10, samples=2000).bayes == 2 / (5 * 14)
for name in ("risk", "train"):
    assert "square" in repr(finetti.commands()[name]) and "far" in repr(finetti.commands()[name])
assert "coin" in repr(finetti.commands()["latent"])
END
else
    echo "SKIPPED: Python: no wheel is built here"
fi
