"""Python and the command line tool on random settings: the same numbers, bit by bit, or the same refusal.

JSON has 17 digits, which say every bit of a double; NPZ files have the bytes. Where the two may differ: messages of the
tool begin with the command's name, and Python may refuse a setting before the library sees it (names, types).
"""

import json
import os
import subprocess
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finetti
from finetti import families, tasks
from finetti._lab import FAMILIES
from finetti._lab import FORMS, OVERLAPS, RISK, TASKS, TRAIN
from tool import TOOL

EXAMPLES = 2 * settings.default.max_examples
many, few = settings(max_examples=EXAMPLES), settings(max_examples=EXAMPLES // 3)
seeds = st.integers(0, 2**32 - 1)

# Where a setting may be anything the table allows, a run could take all day: these are tried.
RANGES = {"d": (2, 9), "L": (1, 6), "L_min": (1, 6), "m": (1, 2), "eps": (0, 2), "gamma": (0.1, 2), "mu": (0, 9),
          "snr": (0, 20), "lam": (0, 3), "c": (-2, 2), "samples": (2, 200), "nodes": (8, 5000), "seed": (0, 2**53),
          "steps": (0, 30), "runs": (1, 3), "alpha": (0, 0.1), "alpha_lam": (0, 1e-3), "decay": (0, 0.1),
          "momentum": (0, 0.9), "penalty": (0, 2), "batch": (1, 4), "log_every": (1, 9), "log_decade": (0, 5),
          "risk_samples": (2, 50), "concentration": (0, 9), "D": (1, 9), "frequency": (0.1, 3), "dv": (1, 3),
          "prior": (0.1, 3), "noise": (0, 2), "scale": (0.2, 3), "degree": (1, 4), "offset": (0, 2),
          "outcomes": (2, 5), "alpha0": (0.1, 3), "rho": (-1, 1), "kappa": (-1, 1), "nu": (-1, 1), "theta": (-1, 1),
          "eta": (-1, 1)}


@st.composite
def some(draw, *tables):
    """Random settings of tables: {name: value}, some of them left out."""
    values = {}
    for table in tables:
        for name, field in table.fields.items():
            if draw(st.integers(0, 2)) == 0 and (field.choices or name in RANGES):
                low, high = RANGES.get(name, (0, 0))
                values[name] = draw(st.sampled_from(field.choices) if field.choices else st.integers(low, high)
                                    if field.kind is int else st.floats(low, high))
    return values


def words(values):
    return [word for name, value in values.items()
            for word in ("--" + name, value if isinstance(value, str) else repr(value))]


def run(*arguments):
    """(what the tool printed, None), or (None, what it complained about)."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    return done.stdout, None


def ask(call):
    """The same for Python."""
    try:
        return call(), None
    except (finetti.FinettiError, TypeError) as problem:
        return None, str(problem)


def agree(theirs, ours, in_words=True):
    """Both refuse, in the same words, or none does. True if there are answers to compare."""
    (found, refusal), (value, problem) = theirs, ours
    assert (refusal is None) == (problem is None), (refusal, problem)
    if problem is None:
        return True
    assert not in_words or problem in refusal, (problem, refusal)
    return False


def number(value):
    return {"inf": np.inf, "-inf": -np.inf, None: np.nan}.get(value, value) if not isinstance(value, dict) else value


def equal(theirs, ours):
    return np.array_equal(np.asarray(number(theirs), float), np.asarray(ours, float), equal_nan=True)


# ---- the laboratory -----------------------------------------------------------------------------------

@many
@given(st.data(), st.sampled_from(sorted(TASKS)), st.sampled_from(sorted(FORMS)))
def test_risk(data, task, form):
    given_ = data.draw(some(TASKS[task].table, FORMS[form].table, OVERLAPS, RISK))
    given_.setdefault("samples", 100)
    theirs = run("risk", "--task", task, "--form", form, *words(given_), "--show", "risk", "--json")
    ours = ask(lambda: finetti.risk(task, form, **given_))
    if agree(theirs, ours):
        found, result = json.loads(theirs[0]), ours[0]
        numbers = found["scalars"]
        for name, key in (("risk", "value"), ("error", "error"), ("samples", "samples")):
            assert equal(numbers["risk"][key], getattr(result, name)), name
        assert numbers["risk"]["how"] == result.method and ("risk_rare" in numbers) == result.rare
        for name, value in (result.gradient or {}).items():
            assert equal(numbers["d_" + name]["value"], value)
        for name, value in found["settings"].items():
            assert name in ("lengths", "show") or result.settings[name] == number(value), name


@many
@given(st.data(), st.sampled_from(sorted(TASKS)), st.sampled_from(sorted(FORMS)))
def test_train(data, task, form):
    given_ = data.draw(some(TASKS[task].table, FORMS[form].table, TRAIN))
    given_ = {"steps": 20, "runs": 2, "risk_samples": 20, **given_}
    if given_.get("init") == "vectors" or given_.get("log_decade"):
        given_.pop("init", None)
        given_.pop("log_every", None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "runs.npz")
        theirs = run("train", "--task", task, "--form", form, *words(given_), "--out", path, "--json")
        ours = ask(lambda: finetti.train(task, form, **given_))
        if agree(theirs, ours):
            own, found = os.path.join(folder, "own.npz"), json.loads(theirs[0])
            ours[0].save(own)
            with open(path, "rb") as one, open(own, "rb") as other:
                assert one.read() == other.read()
            assert [one["status"] for one in found["runs"]] == ours[0].status.tolist()
            same_summary(found["summary"], ours[0].summary())


def same_summary(found, summary):
    """finetti train --json says what the command train leaves."""
    runs = found["runs"]
    assert [found["status"][name] / runs for name in ("unconverged", "converged", "stuck", "diverged")] == \
        [summary[name] for name in ("unconverged", "share", "stuck", "diverged")]
    assert found["converged_interval"] == [summary.share_low, summary.share_high]
    for row, quantiles in zip(found["quantiles"].values(), summary.quantiles):
        assert all(map(equal, row, quantiles))
    assert list(found["quantiles"]) == ["abs_kappa", "abs_nu", "risk", "excess", "distance", "lam"]
    assert equal(found["largest_distance"], summary.farthest)
    assert equal(found["risk"]["largest_error"], summary.risk_error)
    assert found["risk"]["method"] == summary.how["risk_error"]
    assert found["risk"]["samples"] == summary.samples["risk_error"]


@many
@given(st.data(), st.sampled_from(sorted(TASKS)), st.sampled_from(["float", "double"]), st.integers(0, 50),
       st.integers(0, 2**53))
def test_simulate(data, task, dtype, first, seed):
    given_ = data.draw(some(TASKS[task].table))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.npz")
        theirs = run("simulate", "--task", task, *words({"d": 7, **given_}), "--n", 9, "--skip", first, "--seed", seed,
                     "--dtype", dtype, "--out", path)
        ours = ask(lambda: getattr(tasks, task)(seed=seed, **{"d": 7, **given_}).draw(
            9, first=first, dtype={"float": "float32", "double": "float64"}[dtype]))
        if agree(theirs, ours):
            found, (X, y, location) = np.load(path), ours[0]
            rows = X.tokens if isinstance(X, finetti.Bags) else X.reshape(-1, X.shape[-1])
            assert found["tokens"].tobytes() == rows.tobytes() and found["tokens"].dtype == rows.dtype
            assert found["y"].tobytes() == y.tobytes()
            assert np.array_equal(found["location"].ravel(), location.ravel())
            offsets = X.offsets if isinstance(X, finetti.Bags) else np.arange(10) * X.shape[1]
            assert np.array_equal(found["offsets"], offsets)


@many
@given(st.data(), st.sampled_from(sorted(FAMILIES)), st.integers(0, 6), st.integers(0, 4), st.integers(0, 2**53))
def test_latent(data, name, L, Q, seed):
    given_ = data.draw(some(FAMILIES[name].table))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.npz")
        theirs = run("latent", "draw", "--family", name, *words(given_), "--n", 4, "--L", L, "--Q", Q, "--seed", seed,
                     "--out", path)
        ours = ask(lambda: getattr(families, name)(seed=seed, **given_).draw(4, L, Q))
        if agree(theirs, ours):
            found, sample = np.load(path), ours[0]
            for part in ("keys", "values", "queries", "answers", "truth"):
                array = getattr(sample, part)
                assert array.size == 0 or found[part].tobytes() == array.tobytes(), part
            assert sample.z is None or found["z"].tobytes() == sample.z.tobytes()


# ---- bags: data and models in both directions ---------------------------------------------------------

FITS = st.fixed_dictionaries({
    "model": st.sampled_from("softmax erf linear mixture embedding mean max any stack auto".split()),
    "basis": st.sampled_from(["linear", "rbf", "both"]), "map": st.sampled_from(["nystrom", "fourier"]),
    "scaling": st.sampled_from(["standard", "pooled", "none"]), "landmarks": st.integers(1, 12),
    "heads": st.sampled_from([1, 1, 2]), "inner": st.just(2), "seed": st.integers(0, 2**53),
    "iterations": st.integers(1, 9), "penalty": st.sampled_from(["auto", 0.1, 10.0]),
    "gate": st.sampled_from(["auto", "free", "gaussian"]), "calibrate": st.sampled_from(["auto", "no", "yes"])})


def make_bags(seed, dtype):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 5, 30)
    tokens = random.normal(size=(lengths.sum(), 3)).astype(dtype)
    first = np.cumsum([0, *lengths])
    tokens[first[:-1], 0] += 4
    return tokens, lengths, first, tokens[first[:-1], 1].astype(float)


@few
@given(seeds, FITS, st.sampled_from([np.float32, np.float64]), st.booleans())
def test_fit_predict_locate(seed, options, dtype, regression):
    tokens, lengths, offsets, y = make_bags(seed, dtype)
    if options["model"] not in ("softmax", "erf", "linear", "stack", "auto"):
        options = {**options, "heads": 1}  # the tool refuses more, Python warns
    kind = finetti.SingleLocationRegressor if regression else finetti.SingleLocationClassifier
    y = y if regression else np.where(y > 0, 4, -2)
    own = {**options, "random_state": options["seed"]}
    del own["seed"]
    with tempfile.TemporaryDirectory() as folder:
        data, theirs_, ours_ = (os.path.join(folder, name) for name in ("x.npz", "theirs.fin", "ours.fin"))
        np.savez(data, tokens=tokens, offsets=offsets, y=y)
        there = words(options)
        theirs = run("fit", data, "--kind", "regression" if regression else "classes", "--cv", "none", "--quiet",
                     "--out", theirs_, *there)
        ours = ask(lambda: kind(**own).fit(tokens, y, lengths=lengths))
        if not agree(theirs, ours):
            return
        ours[0].save(ours_)
        models = [ours[0], finetti.load_model(theirs_), finetti.load_model(ours_)]
        for file in (theirs_, ours_):  # the tool reads both, and so did Python
            check_answers(folder, file, data, models, tokens, lengths, y, regression)


def check_answers(folder, file, data, models, tokens, lengths, y, regression):
    out = os.path.join(folder, "out.npz")
    assert run("predict", file, data, "--out", out)[1] is None
    found = np.load(out)
    for model in models:
        if regression:
            mean, deviation = model.predict(tokens, return_std=True, lengths=lengths)
            assert found["mean"].tobytes() == mean.tobytes() and found["sd"].tobytes() == deviation.tobytes()
        else:
            assert found["probability"].tobytes() == model.predict_proba(tokens, lengths=lengths).tobytes()
            assert model.classes_[found["class"]].tolist() == model.predict(tokens, lengths=lengths).tolist()
    theirs = run("locate", file, data, "--out", out)
    for model in models:
        if not hasattr(model, "locate"):  # BagEmbedding...: a model of the bag as a whole
            assert theirs[1]
            continue
        for labels, name in ((None, "probability"), (y, "given_label")):
            ours = ask(lambda: model.locate(tokens, labels, lengths=lengths))
            if agree(theirs, ours, in_words=False):  # the tool names its option --model
                found = np.load(out)
                assert found[name].tobytes() == ours[0][found["row"] - 1].tobytes()


# ---- attend -------------------------------------------------------------------------------------------

@few
@given(seeds, st.sampled_from(["cme", "softmax", "nw"]), st.sampled_from(["rbf", "linear", "matern32", "polynomial"]),
       st.booleans(), st.booleans(), st.floats(1e-3, 2), st.sampled_from(["auto", "dual", "primal"]))
def test_attend(seed, form, kernel, standardize, tune, noise, method):
    random = np.random.default_rng(seed)
    keys, queries = random.normal(size=(25, 2)), random.normal(size=(4, 2))
    values = np.sin(keys[:, 0]) + 0.1 * random.normal(size=25)
    own = {"form": form, "kernel": kernel, "noise": noise, "method": method}
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("context.csv", np.column_stack([keys, values])), ("queries.csv", queries)):
            np.savetxt(os.path.join(folder, name), rows, fmt="%.17g", delimiter=",", comments="",
                       header="a,b,v" if name == "context.csv" else "a,b")
        theirs = run("attend", os.path.join(folder, "context.csv"), "--key", "a,b", "--value", "v", "--query",
                     os.path.join(folder, "queries.csv"), *words(own), "--json", *["--standardize"] * standardize,
                     *["--tune", "--restarts", 1] * tune)
    more = {"standardize": standardize, "tune": tune, "restarts": 1}
    ours = ask(lambda: finetti.AttentionRegressor(**own, **more).fit(keys, values))
    if not agree(theirs, ours):
        return
    found, model = json.loads(theirs[0]), ours[0]
    assert model.settings_ == found["settings"]
    mean, deviation = model.predict(queries, return_std=True)
    assert [answer["mean"]["v"] for answer in found["answers"]] == mean.tolist()
    key = "sd_new" if form == "cme" else "spread"
    assert [answer[key]["v"] for answer in found["answers"]] == deviation.tolist()
    # The same settings in a Context, and in attend, which sums in another order: the matrix has a condition of 1e4.
    if not standardize:
        context = finetti.Context(keys, values, **model.settings_)
        assert context.predict(queries).tobytes() == mean.tobytes()
        if method == "auto":
            batch = finetti.attend(keys, values, queries, **model.settings_)
            np.testing.assert_allclose(batch, mean, rtol=1e-7, atol=1e-8)
