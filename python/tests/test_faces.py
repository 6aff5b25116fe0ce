"""Every command of the table through its four faces: C, Python, a study and the tool.

Random settings, which are the same in every run, give the same numbers to the last bit, or are refused in the same
words; wrong settings of each kind are refused by all faces with the library's sentence. C is fin_command_run as a
program calls it, with texts of its own making. FINETTI_TEST_SIZE says how many settings are drawn.
"""

import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import settings

import finetti
from finetti._command import COMMANDS, DTYPES, HOWS, _rows
from finetti._core import error, ffi, lib, text
from tool import TOOL

SRC = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
DRAWS = min(40, max(2, settings.default.max_examples // 8))
TIMED = "clock"  # differs from run to run


# ---- settings -------------------------------------------------------------------------------------

EXAMPLES = {lib.FIN_WORD_PAIRS: ["2:0.25,3:0.75", "4:1"], lib.FIN_WORD_WHOLES: ["2,4", "3"]}
FILES = {}


@pytest.fixture(scope="module", autouse=True)
def encoder(tmp_path_factory):
    """What words that name an encoder's folder or a file of images may be."""
    folder = str(tmp_path_factory.mktemp("bert"))
    subprocess.run([sys.executable, os.path.join(SRC, "tests", "cli", "text_folder.py"), folder], check=True)
    images = os.path.join(folder, "images.csv")
    pick = random.Random(1)
    with open(images, "w", encoding="utf-8") as file:
        print("label", *(f"p{k}" for k in range(16)), sep=",", file=file)
        for i in range(60):
            print("ab"[i % 2], *(round(pick.gauss(k % 4 * (i % 2), 1), 3) for k in range(16)), sep=",", file=file)
    FILES.update(encoder=folder, data=images)


def words_of(command, pick):
    """Random words, some of them left out."""
    chosen = {}
    for word in _rows(command.pointer.words):
        if text(word.name) in FILES:
            chosen[text(word.name)] = FILES[text(word.name)]
            continue
        choices = EXAMPLES.get(word.kind) or command._choices(word)
        if word.kind == lib.FIN_WORD_NAMES:
            names = choices[0].split(",")
            choices = [",".join(pick.sample(names, pick.randint(1, len(names))))]
        if choices and pick.random() < (0.3 if word.kind in EXAMPLES else 0.7):
            chosen[text(word.name)] = pick.choice(choices)
    return chosen


def fields_of(command, chosen):
    """{name: field} of the tables that these words choose."""
    return {name: field for table in reversed(command._tables(chosen)) for name, field in table.fields.items()
            if name not in chosen}


def size(field):
    """A size for a run of milliseconds: cube roots of defaults."""
    return int(max(field.lowest, 2, round(field.default ** (1 / 3))))


def is_size(field):
    return field.kind is int and field.default != "auto" and field.default >= 8


def some(field, pick):
    """A random value that the table takes, and that keeps a run short."""
    if field.choices:
        return pick.choice(field.choices)
    if field.name == "seed":
        return pick.randint(0, 2**53)
    if field.kind is int:
        usual = 3 if field.default == "auto" else size(field) if is_size(field) else field.default
        return int(min(field.highest, max(field.lowest, pick.randint(usual // 2, 2 * usual + 1))))
    usual = pick.uniform(0, 3) if field.default in ("auto", 0) else field.default * pick.uniform(0.5, 1.5)
    return min(field.highest, max(field.lowest, usual))


def draw(command, pick):
    given = words_of(command, pick)
    fields = fields_of(command, given)
    given.update({name: size(field) for name, field in fields.items() if is_size(field)})
    for name in pick.sample(sorted(fields), min(len(fields), pick.randint(0, 3))):
        given[name] = some(fields[name], pick)
    return given


# ---- faces ----------------------------------------------------------------------------------------
# Each answers ({name: (bits of value and error, how, samples)}, {name: (type, shape, bytes)}), or the sentence.

def bits(*numbers):
    """Every bit, but for those of NaN, which say nothing."""
    return struct.pack(f"{len(numbers)}d", *(math.nan if number != number else number for number in numbers))


def by_c(name, given):
    keep = []

    def chars(value):
        keep.append(ffi.new("char[]", (f"{value:.17g}" if isinstance(value, float) else str(value)).encode()))
        return keep[-1]

    pairs = ffi.new("fin_pair[]", [(chars(setting), chars(value), ffi.NULL) for setting, value in given.items()])
    out, err = ffi.new("fin_result **"), error()
    if lib.fin_command_run(lib.fin_command_find(name.encode()), pairs, len(given), ffi.NULL, out, err):
        assert out[0] == ffi.NULL
        return text(err.message)
    scalars, series = {}, {}
    for i in range(lib.fin_result_scalar_count(out[0])):
        s = lib.fin_result_get_scalar(out[0], i)
        scalars[text(s.name)] = bits(s.value, s.error), text(lib.fin_how_name(s.how)), s.samples
    for i in range(lib.fin_result_series_count(out[0])):
        s = lib.fin_result_get_series(out[0], i)
        shape = [s.shape[j] for j in range(s.ndim)]
        count = int(DTYPES[s.dtype][1:])
        for n in shape:
            count *= n
        series[text(s.name)] = DTYPES[s.dtype], shape, bytes(ffi.buffer(s.data, count)) if count else b""
    lib.fin_result_destroy(out[0])
    return untimed(scalars), series


def untimed(scalars):
    return {name: found for name, found in scalars.items() if found[1] != TIMED}


def arrays(series):
    return {name: (array.dtype.str[1:], list(array.shape), array.tobytes()) for name, array in series.items()}


def by_python(name, given):
    try:
        result = finetti.run(name, **given)
    except finetti.FinettiError as problem:
        return str(problem)
    assert result.settings.keys() <= COMMANDS[name].settings.keys()
    return untimed({key: (bits(value, result.errors[key]), result.how[key], result.samples[key])
                    for key, value in result.items()}), arrays(result.series)


def by_tool(name, given):
    """finetti lab NAME --json, and the arrays from the file that --out leaves."""
    words = [word for key, value in given.items()
             for word in (f"--{key}", repr(value) if isinstance(value, float) else str(value))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.npz")
        done = subprocess.run([TOOL, "lab", name, *words, "--json", "--out", path], capture_output=True,
                              text=True)
        if done.returncode:
            return done.stderr.strip()
        with np.load(path) as found:  # numbers too, which have no axes
            series = {key: found[key] for key in found.files if found[key].ndim}
    special = {None: np.nan, "nan": np.nan, "inf": np.inf, "-inf": -np.inf}
    return untimed({key: (bits(*(special.get(one[part], one[part]) for part in ("value", "error"))), one["how"],
                          one["samples"]) for key, one in json.loads(done.stdout)["scalars"].items()}), arrays(series)


def study_of(runs):
    """A study with a block for each (command, settings)."""
    return {"study": "faces", "runs": [{"id": f"run{i}", "command": name, "set": given}
                                       for i, (name, given) in enumerate(runs)]}


def by_plan(name, given):
    """What a study says of the settings, without a run; None if it takes them."""
    try:
        finetti.study_plan(study_of([(name, given)]))
    except finetti.FinettiError as problem:
        return str(problem)
    return None


def by_study(runs):
    """The same for a list of (command, settings), which are the runs of one study."""
    plan = finetti.study_plan(study_of(runs))
    result = finetti.study(study_of(runs))
    numbers, series, there = result.scalars(long=True).rows(), result.series(), result.runs()
    reasons = {row["hash"]: row["reason"] for row in there.rows() if row["state"] == "failed"}
    found = {hash_: ({}, arrays(series.get(hash_, {}))) for hash_ in plan["hash"]}
    for row in numbers:
        found[row["hash"]][0][row["name"]] = bits(row["value"], row["error"]), row["how"], row["samples"]
    result.store.close()
    by_block = dict(zip(plan["block"], plan["hash"]))
    answers = []
    for i in range(len(runs)):
        hash_ = by_block[f"run{i}"]
        answers.append(reasons.get(hash_) or (untimed(found[hash_][0]), found[hash_][1]))
    return answers


# ---- the same numbers -----------------------------------------------------------------------------

@pytest.mark.parametrize("name", COMMANDS)
def test_same_numbers(name):
    """Refusals count too; but some draws must be taken."""
    pick = random.Random(f"numbers {name}")
    taken, answers = [], []
    for _ in range(40 * DRAWS):
        given = draw(COMMANDS[name], pick)
        c, python, refusal = by_c(name, given), by_python(name, given), by_plan(name, given)
        assert c == python, given
        if refusal is not None:
            assert isinstance(c, str) and c in refusal and c in by_tool(name, given), given
            continue
        tool = by_tool(name, given)
        assert c == tool or isinstance(c, str) and c in tool, given
        taken.append((name, given))
        answers.append(c)
        if sum(not isinstance(one, str) for one in answers) == DRAWS:
            break
    assert sum(not isinstance(one, str) for one in answers) == DRAWS
    for given, c, study in zip(taken, answers, by_study(taken)):
        assert stored(c) == study, given


def stored(answer):
    """As a store keeps it: SQLite has no -0, of single numbers; arrays are bytes."""
    if isinstance(answer, str):
        return answer
    return {name: (bits(*(number + 0.0 for number in struct.unpack("2d", numbers))), *rest)
            for name, (numbers, *rest) in answer[0].items()}, answer[1]


# ---- the same sentences ---------------------------------------------------------------------------

def wrong(command, pick):
    """[(kind, settings)]: one setting of each is wrong, in every way in which it can be."""
    words = list(_rows(command.pointer.words))
    chosen = {text(word.name): text(word.fallback) for word in words}
    fields = fields_of(command, {})
    numbers = [field for field in fields.values() if not field.choices]
    whole = [field for field in numbers if field.kind is int]
    made = [("unknown name", {pick.choice(sorted(fields)) + "x": 1}), ("unknown name", {"zzzzzzzzzz": 1})]
    elsewhere = sorted(command.settings.keys() - fields.keys() - chosen.keys())
    made += [("a setting of another task, form or family", {pick.choice(elsewhere): 1})] if elsewhere else []
    for kind, value in (("NaN", "nan"), ("no number", "many"), ("no number", "1e999"), ("no number", ""),
                        ("no number", "0x"), ("no number", "3,4")):
        made.append((kind, {pick.choice(numbers).name: value}))
    field = pick.choice([field for field in numbers if field.highest < 1e200])
    made.append(("too large", {field.name: repr(2 * field.highest + 1)}))
    field = pick.choice([field for field in numbers if field.lowest > -1e200])
    made.append(("too small", {field.name: repr(field.lowest - 1 if field.kind is int else field.lowest - 0.5)}))
    made += [("not whole", {pick.choice(whole).name: "2.5"})] if whole else []
    made += [("bad choice", {field.name: "zzz"}) for field in fields.values() if field.choices][:2]
    for word in words:
        name = text(word.name)
        if word.kind in EXAMPLES:
            made += [("malformed list", {name: value}) for value in ("5:,", "5", "5:0.2,,10:0.8", "a:b", "4,,8", "8,4")
                     if by_plan(command.name, {name: value})]  # "5" is a list of whole numbers
        elif command._choices(word):
            made += [("bad word", {name: "zzz"}), ("bad word", {name: f"{text(word.fallback)},zzz"})]
        made.append(("long word", {name: "x" * 6000}))
    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_same_sentences(name):
    pick = random.Random(f"sentences {name}")
    for kind, given in wrong(COMMANDS[name], pick):
        c = by_c(name, given)
        assert isinstance(c, str) and c, (kind, given)
        assert by_python(name, given) == c, (kind, given)
        assert c in (by_plan(name, given) or ""), (kind, given)
        assert c in by_tool(name, given), (kind, given)
        if "-" not in "".join(given):
            dashed = {key.replace("_", "-"): value for key, value in given.items()}
            assert by_c(name, dashed).replace("-", "_") == c.replace("-", "_"), (kind, given)
