"""Every public function of the C library, as the headers declare it, with NULL for each of its pointers in turn.

The calls are made from the headers: a new function is called without a line here if the objects that it takes are
known (Objects), and fails this test with the names of what is not. All other arguments of a call are good ones, so that
it is the NULL that is answered, in a process of its own: nothing may end it. What has to come back stands in base.h:

    a call that returns fin_status    FIN_ERR_ARGUMENT and a sentence
    any other                         0, -1, NaN, NULL or "", and nothing written
    where NULL has a meaning          success, as with the pointer: err, progress, user, const settings, what is
                                      released, and what is marked FIN_OR_NULL

A call without NULL has to succeed, and whatever succeeds leaves a clean err.
"""

import faulthandler
import glob
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from finetti._core import ffi, lib

SRC = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NULL = ffi.NULL
UNFIT = {"fin_corpus_task.settings"}  # the defaults are refused: they ask for what a task has not
ABSENT = set() if lib.fin_explore_there() else {"fin_explore_write"}  # there is no page to write in every build


# ---- what the headers declare ---------------------------------------------------------------------

class Parameter:
    def __init__(self, text, ctype):
        self.ctype = ctype
        self.name = re.search(r"\(\*(\w+)\)|(\w+)(\s*\[\w*\])*$", text.replace("FIN_OR_NULL", "").strip())
        self.name = self.name.group(1) or self.name.group(2)
        self.pointer = ctype.kind in ("pointer", "function")
        self.optional = "FIN_OR_NULL" in text or self.name in ("err", "progress", "user") or bool(
            re.match(r"const fin_\w*settings \*\w*settings$|fin_sum ", text))


class Function:
    def __init__(self, name, parameters):
        self.name = name
        kind = ffi.typeof(getattr(lib, name))
        self.result = kind.result
        self.fallible = kind.result.cname == "enum fin_status"
        self.parameters = [Parameter(*pair) for pair in zip(parameters, kind.args)]
        assert len(parameters) == len(kind.args), f"{name}: the header is not understood"
        if parameters and name.endswith(("_destroy", "_close", "_free", "_abort")):
            self.parameters[0].optional = True


def split(text):
    """The parameters of a declaration: parted by commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [" ".join(part.split()) for part in parts]


def declared():
    functions = {}
    for path in sorted(glob.glob(os.path.join(SRC, "include", "finetti", "*.h"))):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        for name, rest in re.findall(r"^FIN_API\s+(?!extern)[^;(]*?\b(fin_\w+)\((.*?)\);", text, flags=re.S | re.M):
            functions[name] = Function(name, [] if rest == "void" else split(rest))
    return functions


FUNCTIONS = declared()


def test_headers_are_read():
    """As many functions as the module has."""
    known = {name for name in dir(lib) if name.startswith("fin_") and not isinstance(getattr(lib, name), ffi.CData)}
    assert known == set(FUNCTIONS)


# ---- good arguments -------------------------------------------------------------------------------

def good(status, err):
    assert status == 0, ffi.string(err.message)


def defaults(kind, table, **values):
    struct = ffi.new(kind + " *")
    lib.fin_settings_defaults(table, struct, ffi.sizeof(kind))
    for name, value in values.items():
        setattr(struct, name, value)
    return struct


STUDY = b"""\
study: small
runs:
  - id: grid
    command: risk
    set: {eps: 0.1, show: "risk,linear"}
    axes: {L: [2, 3]}
claims:
  - {id: low, statement: The risk is low., take: risk, reduce: max, expect: {at_most: 100}}
figures:
  - id: curve
    title: Risk
    kind: lines
    from: grid
    x: {take: L}
    lines: [{take: risk}]
"""
BAGS = b"bag,label,a,b\n" + b"".join(
    b"%d,%d,%g,%g\n" % (i, i % 2, 0.1 * j + i % 2, 0.3 * j + 0.01 * i) for i in range(12) for j in range(2))
FOLDS = b"bag,fold\n" + b"".join(b"%d,%d\n" % (i, i // 2 % 2) for i in range(12))
TABLE = b"a,b\n1,2\n3,4\n"


class Objects:
    """One good object of every type, made when it is asked for, and kept alive. Small: two samples, two columns."""

    filled = ""  # a store with a study in it

    def __init__(self):
        self.kept, self.made = [], {}
        self.err = self.keep(ffi.new("fin_error *"))
        self.folder = tempfile.mkdtemp()

    def keep(self, thing):
        self.kept.append(thing)
        return thing

    def get(self, name):
        if name not in self.made:
            self.made[name] = getattr(self, name)()
        return self.made[name]

    def create(self, kind, call):
        """What `call` creates: call(out, err) is a status."""
        out = self.keep(ffi.new(kind + " **"))
        good(call(out, self.err), self.err)
        return out[0]

    def array(self, kind, numbers):
        return self.keep(ffi.new(kind + "[]", numbers))

    def struct(self, kind, **fields):
        return self.keep(ffi.new(kind + " *", fields))

    def text(self, text):
        return self.array("char", text)

    def texts(self, *texts):
        return self.array("char *", [self.text(text) for text in texts])

    def numbers(self, count=4096):
        return self.array("double", [0.1 + 0.1 * (i * i % 7) for i in range(count)])

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return self.text(path.encode())

    # settings and rows of tables

    def fin_settings(self): return ffi.addressof(lib.fin_risk_table)
    def fin_field(self): return lib.fin_risk_table.fields
    def fin_task_kind(self): return lib.fin_task_find(b"slr")
    def fin_form(self): return lib.fin_form_find(b"erf")
    def fin_family(self): return lib.fin_family_find(b"concept")
    def fin_command(self): return lib.fin_command_find(b"risk")

    def fin_word(self): return self.get("fin_command").words

    def fin_ranks_calls(self):
        calls = self.struct("fin_ranks_calls", version=1, ranks=1)
        for name, field in ffi.typeof("fin_ranks_calls").fields:
            if field.type.kind in ("pointer", "function"):
                setattr(calls, name, self.keep(ffi.callback(field.type, lambda *rest: 0)))
        return calls

    def fin_task_settings(self):
        return self.keep(defaults("fin_task_settings", lib.fin_task_kind_table(self.get("fin_task_kind")), d=4, L=3))

    def fin_form_settings(self):
        return self.keep(defaults("fin_form_settings", lib.fin_form_table(self.get("fin_form"))))

    def fin_latent_settings(self):
        return self.keep(defaults("fin_latent_settings", lib.fin_family_table(self.get("fin_family")), d=2))

    def fin_fit_settings(self):
        return self.keep(defaults("fin_fit_settings", ffi.addressof(lib.fin_fit_table), iterations=3, penalty=1.0,
                                  basis=lib.FIN_BASIS_LINEAR))

    def fin_encoder_settings(self):
        return self.keep(defaults("fin_encoder_settings", ffi.addressof(lib.fin_encoder_table), width=4, layers=1,
                                  heads=1))

    def fin_corpus_settings(self):
        return self.keep(defaults("fin_corpus_settings", ffi.addressof(lib.fin_corpus_table), L=3, M=2,
                                  objective=lib.FIN_OBJECTIVE_SUPERVISED))

    def fin_learn_settings(self):
        return self.keep(defaults("fin_learn_settings", ffi.addressof(lib.fin_learn_table), steps=2, batch=2,
                                  evaluate_on=2))

    def fin_train_settings(self):
        return self.keep(defaults("fin_train_settings", ffi.addressof(lib.fin_train_table), steps=2, runs=1))

    def fin_probe_settings(self):
        return self.keep(defaults("fin_probe_settings", ffi.addressof(lib.fin_probe_table), train=9, test=9,
                                  penalty=0.1))

    def fin_risk_settings(self):
        return self.keep(defaults("fin_risk_settings", ffi.addressof(lib.fin_risk_table), samples=16))

    def fin_tune_settings(self):
        return self.keep(defaults("fin_tune_settings", ffi.addressof(lib.fin_tune_table), restarts=1, iterations=2))

    def fin_cross_settings(self):
        return self.keep(defaults("fin_cross_settings", ffi.addressof(lib.fin_cross_table)))

    def fin_study_settings(self):
        return self.keep(defaults("fin_study_settings", ffi.addressof(lib.fin_study_table), threads=1))

    def fin_covariance(self):
        return self.keep(defaults("fin_covariance", ffi.addressof(lib.fin_covariance_table)))

    def fin_overlaps(self):
        return self.keep(defaults("fin_overlaps", ffi.addressof(lib.fin_overlaps_table), kappa=0.5, nu=0.5))

    # tasks, attention, training

    def fin_task(self):
        return self.create("fin_task", lambda out, err: lib.fin_task_create(
            out, self.get("fin_task_kind"), self.get("fin_task_settings"), NULL, 1, lib.FIN_TASK_AMBIENT, err))

    def fin_lengths(self):
        return self.struct("fin_lengths", count=2, L=self.array("int64_t", [2, 3]), p=self.array("double", [1, 2]))

    def fin_batch(self):
        return self.struct("fin_batch", n=2, d=4, dtype=lib.FIN_F64, tokens=self.numbers(24), offsets=self.offsets())

    def offsets(self): return self.array("int64_t", [0, 3, 6])

    def fin_attention(self):
        return self.create("fin_attention", lambda out, err: lib.fin_attention_create(
            out, self.get("fin_form"), NULL, 4, lib.FIN_F64, 3, err))

    def fin_gradient(self): return self.struct("fin_gradient", k=self.numbers(4), v=self.numbers(4))

    def fin_projections(self): return self.struct("fin_projections", chi=self.numbers(6), z=self.numbers(6))

    def fin_risk_point(self):
        return self.struct("fin_risk_point", kappa=0.5, nu=0.5, lam=0.1, gamma=0.7, mu=1, m=1, L_mean=3)

    def fin_train(self):
        return self.create("fin_train", lambda out, err: lib.fin_train_create(
            out, self.get("fin_task"), self.get("fin_form"), NULL, self.get("fin_train_settings"), NULL, err))

    def fin_pair(self):
        return self.array("fin_pair", [{"name": self.text(b"lam"), "text": self.text(b"0.2")}])

    def fin_training(self):
        pairs = self.array("fin_pair", [{"name": self.text(name), "text": self.text(value)} for name, value in
                                        ((b"d", b"4"), (b"steps", b"2"), (b"runs", b"1"))])
        return self.create("fin_training", lambda out, err: lib.fin_training_create(out, pairs, 3, NULL, err))

    def training_arrays(self):
        training = self.get("fin_training")
        count = lib.fin_training_array_count(training)
        arrays = self.keep(ffi.new("fin_train_array[]", count))
        for i in range(count):
            good(lib.fin_training_get_array(training, i, arrays + i, self.err), self.err)
        return arrays

    def fin_training_source(self):
        return self.struct("fin_training_source", arrays=self.get("training_arrays"),
                           count=lib.fin_training_array_count(self.get("fin_training")))

    def fin_command_values(self):
        command = self.get("fin_command")
        values = self.keep(ffi.new("double[]", command.size // 8 + 1))
        good(lib.fin_command_apply(command, values, NULL, 0, NULL, self.err), self.err)
        return values

    def fin_group(self): return self.keep(ffi.new("fin_group[]", lib.FIN_GROUPS))

    def fin_result(self):
        return self.create("fin_result", lambda out, err: lib.fin_command_run(
            self.get("fin_command"), self.get("fin_pair"), 1, NULL, out, err))

    def fin_sweep_points(self):
        column = self.struct("fin_column", name=self.text(b"L"), numbers=self.array("double", [2, 3]))
        return self.struct("fin_sweep_points", n=2, columns=column, count=1)

    def fin_sweep(self):
        return self.create("fin_sweep", lambda out, err: lib.fin_command_sweep(
            self.get("fin_command"), NULL, 0, self.get("fin_sweep_points"), NULL, out, NULL, err))

    # contexts and families

    def fin_cross(self):
        cross = self.create("fin_cross", lambda out, err: lib.fin_cross_create(
            out, self.get("fin_cross_settings"), NULL, 2, 1, 8, err))
        keys = self.array("double", [0, 0, 0, 1, 1, 0, 1, 1])
        good(lib.fin_cross_load(cross, 4, keys, self.numbers(), NULL, self.err), self.err)
        return cross

    def fin_cross_batch(self):
        return self.struct("fin_cross_batch", n=2, dk=2, dv=1, dtype=lib.FIN_F64, offsets=self.offsets(),
                           query_offsets=self.offsets(), keys=self.numbers(), values=self.numbers(),
                           queries=self.numbers())

    def fin_heads(self):
        return self.struct("fin_heads", H=1, d=2, dk=2, dv=1, out=1, settings=self.get("fin_cross_settings"),
                           Q=self.numbers(), K=self.numbers(), V=self.numbers())

    def fin_heads_batch(self):
        return self.struct("fin_heads_batch", n=2, offsets=self.offsets(), query_offsets=self.offsets(),
                           tokens=self.numbers(), queries=self.numbers())

    def fin_tune_data(self):
        return self.struct("fin_tune_data", n=2, dk=2, dv=1, offsets=self.offsets(), keys=self.numbers(),
                           values=self.numbers())

    def fin_latent_sample(self): return self.struct("fin_latent_sample", n=2, L=3, Q=2, keys=self.numbers())

    def fin_latent(self):
        return self.create("fin_latent", lambda out, err: lib.fin_latent_create(
            out, self.get("fin_family"), self.get("fin_latent_settings"), 1, err))

    def fin_random(self):
        random = self.struct("fin_random")
        lib.fin_random_open(random, 1, 2000, 0)
        return random

    # bags

    def fin_bags(self): return self.bags(12)

    def bags(self, n):
        tokens = [0.1 * (i * i % 13) + i // 2 % 2 * j for i in range(2 * n) for j in range(2)]
        return self.struct("fin_bags", n=n, d=2, total=n, dtype=lib.FIN_F64, tokens=self.array("double", tokens),
                           offsets=self.array("int64_t", [2 * i for i in range(n + 1)]),
                           labels=self.array("double", [i % 2 for i in range(n)]))

    def fin_fit(self):
        return self.create("fin_fit", lambda out, err: lib.fin_fit_create(
            out, self.get("fin_fit_settings"), 2, self.get("fin_bags"), NULL, NULL, NULL, err))

    def fit_tensors(self):
        count = lib.fin_fit_tensors(self.get("fin_fit"), NULL, 0)
        tensors = self.keep(ffi.new("fin_tensor[]", count))
        lib.fin_fit_tensors(self.get("fin_fit"), tensors, count)
        return tensors

    def fin_locations(self): return self.struct("fin_locations", prior=self.numbers(24))

    def folds(self): return self.array("int32_t", [i // 2 % 2 for i in range(12)])

    def fin_folds(self): return self.struct("fin_folds", repeats=1, folds=2, fold=self.folds())

    def fin_fit_others(self): return self.struct("fin_fit_others", count=1, models=self.get("fin_fit_settings"))

    def fin_validation(self):
        return self.create("fin_validation", lambda out, err: lib.fin_validate(
            out, 1, self.get("fin_fit_settings"), 2, self.get("fin_bags"), self.get("fin_folds"), NULL, err))

    def fin_bags_source(self): return self.struct("fin_bags_source", path=self.path("bags.csv", BAGS), class_count=-1)

    def fin_bag_set(self):
        return self.create("fin_bag_set", lambda out, err: lib.fin_bag_set_read(
            out, self.get("fin_bags_source"), NULL, err))

    def fin_bags_names(self): return self.struct("fin_bags_names", class_count=2)

    def fin_bag_report(self):
        return self.struct("fin_bag_report", fit=self.get("fin_fit"), model=self.text(b"softmax"),
                           set=self.get("fin_bag_set"), data=self.text(b"bags.csv"))

    def fin_bag_picture(self):
        return self.struct("fin_bag_picture", tokens=2, x=self.numbers(2), y=self.numbers(2), value=self.numbers(2),
                           title=self.text(b"bag"), meaning=self.text(b"probability"))

    def fin_entry(self): return self.struct("fin_entry", key=self.text(b"note"), value=self.text(b"text"))

    def model_path(self):
        path = self.path("model.fin")
        good(lib.fin_model_write(path, self.get("fin_fit"), self.get("fin_bag_set"), self.get("fin_entry"), 1,
                                 self.err), self.err)
        return path

    def fin_model(self):
        return self.create("fin_model", lambda out, err: lib.fin_model_read(self.get("model_path"), out, err))

    # files

    def fin_table(self):
        return self.create("fin_table", lambda out, err: lib.fin_table_read_texts(
            self.path("table.csv", TABLE), out, err))

    def fin_columns(self):
        return self.struct("fin_columns", what=self.text(b"--key"), file=self.text(b"file"), count=2,
                           names=self.texts(b"a", b"b"))

    def fin_csv(self):
        return self.create("fin_csv", lambda out, err: lib.fin_csv_open(
            self.path("out.csv"), self.texts(b"a", b"b"), 2, out, err))

    def fin_npz_writer(self):
        return self.create("fin_npz_writer", lambda out, err: lib.fin_npz_create(self.path("out.npz"), out, err))

    def npz_path(self):
        path = self.path("in.npz")
        good(lib.fin_npz_commit(self.filled_writer(path), NULL, self.err), self.err)
        return path

    def filled_writer(self, path):
        writer = self.create("fin_npz_writer", lambda out, err: lib.fin_npz_create(path, out, err))
        good(lib.fin_npz_add(writer, b"a", lib.FIN_F64, 1, self.array("int64_t", [2]), self.numbers(), self.err),
             self.err)
        return writer

    def fin_npz(self):
        return self.create("fin_npz", lambda out, err: lib.fin_npz_open(self.get("npz_path"), out, err))

    def fin_tensor(self):
        return self.struct("fin_tensor", name=b"a", dtype=lib.FIN_F64, ndim=1, shape=[2], data=self.numbers())

    def fin_tensor_file(self):
        return self.create("fin_tensor_file", lambda out, err: lib.fin_tensors_open(self.get("model_path"), out, err))

    # encoders

    def fin_encoder_shape(self):
        shape = self.struct("fin_encoder_shape")
        lib.fin_corpus_get_shape(self.get("fin_corpus"), shape)
        return shape

    def fin_head(self): return ffi.addressof(self.get("fin_encoder_shape").head[0])

    def fin_encoder(self):
        return self.create("fin_encoder", lambda out, err: lib.fin_encoder_create(
            out, self.get("fin_encoder_settings"), self.get("fin_encoder_shape"), 1, err))

    def encoder_tensors(self):
        count = lib.fin_encoder_tensors(self.get("fin_encoder"), NULL, 0)
        tensors = self.keep(ffi.new("fin_tensor[]", count))
        lib.fin_encoder_tensors(self.get("fin_encoder"), tensors, count)
        return tensors

    def fin_sequences(self):
        inputs = self.get("fin_encoder_shape").inputs
        return self.struct("fin_sequences", n=2, offsets=self.offsets(),
                           tokens=self.array("float", [0.1 * (i % 7) for i in range(6 * inputs)]))

    def fin_memory(self):
        return self.struct("fin_memory", n=4, inputs=2, values=1, offsets=self.array("int64_t", [0, 3, 6, 9, 12]),
                           tokens=self.array("float", [0.1 * (i * i % 7) for i in range(24)]), classes=2,
                           labels=self.array("double", [0, 1, 0, 1]))

    def fin_corpus(self):
        return self.create("fin_corpus", lambda out, err: lib.fin_corpus_memory(
            out, self.get("fin_corpus_settings"), self.get("fin_memory"), 1, err))

    def fin_examples(self):
        examples = self.struct("fin_examples")
        return examples

    def fin_learn(self):
        return self.create("fin_learn", lambda out, err: lib.fin_learn_create(
            out, self.get("fin_learn_settings"), self.get("fin_encoder"), self.get("fin_corpus"), NULL, NULL, 0, 1,
            err))

    def fin_probe(self):
        return self.create("fin_probe", lambda out, err: lib.fin_probe_fit(
            out, 9, 2, self.numbers(), 0, 1, self.numbers(), 0.1, err))

    def fin_token_source(self):
        return self.struct("fin_token_source", bags={"path": self.path("bags.csv", BAGS), "class_count": -1})

    def fin_token_set(self):
        return self.create("fin_token_set", lambda out, err: lib.fin_token_set_read(
            out, self.get("fin_token_source"), NULL, err))

    def fin_token_part(self): return self.struct("fin_token_part", folds=2)

    def fin_token_scale(self):
        return self.struct("fin_token_scale", columns=self.get("fin_encoder_shape").inputs, center=self.numbers(),
                           scale=self.numbers())

    def checkpoint_path(self):
        path = self.path("encoder.fin")
        good(lib.fin_checkpoint_write(path, self.get("fin_encoder"), self.get("fin_learn"), NULL, NULL, 0, self.err),
             self.err)
        return path

    def fin_checkpoint(self):
        return self.create("fin_checkpoint", lambda out, err: lib.fin_checkpoint_read(
            self.get("checkpoint_path"), out, err))

    # encoders of text

    def text_folder(self):
        folder = os.path.join(self.folder, "bert")
        subprocess.run([sys.executable, os.path.join(SRC, "tests", "cli", "text_folder.py"), folder], check=True)
        return self.text(folder.encode())

    def two_texts(self): return self.texts(b"the film was great", b"bad film")

    def fin_text_encoder(self):
        return self.create("fin_text_encoder", lambda out, err: lib.fin_text_encoder_open(
            out, self.get("text_folder"), err))

    def fin_text_pieces(self):
        return self.create("fin_text_pieces", lambda out, err: lib.fin_text_pieces_cut(
            out, self.get("fin_text_encoder"), 2, self.get("two_texts"), NULL, 0, err))

    def fin_text_pass(self): return self.struct("fin_text_pass", pooled=self.array("float", [0] * ROOM))

    # studies

    def fin_study(self):
        return self.create("fin_study", lambda out, err: lib.fin_study_parse(
            STUDY, len(STUDY), b"small", NULL, out, err))

    def fin_studies(self): return self.array("fin_study *", [self.get("fin_study")])

    def fin_study_changes(self): return self.struct("fin_study_changes")

    def fin_study_calls(self): return self.struct("fin_study_calls")

    def store_path(self):
        lib.fin_store_close(self.get("fin_store"))
        return self.path("store.db")

    def fin_store(self):
        """A copy of one that was filled once: running a study takes a while."""
        filled = os.path.exists(self.filled)
        if filled:
            shutil.copy(self.filled, os.path.join(self.folder, "store.db"))
        store = self.create("fin_store", lambda out, err: lib.fin_store_open(
            self.path("store.db"), lib.FIN_STORE_CREATE, out, err))
        if not filled:
            good(lib.fin_study_conduct(self.get("fin_study"), store, self.get("fin_study_settings"), NULL,
                                       self.struct("fin_study_count"), self.err), self.err)
        return store

    def fin_query(self): return self.struct("fin_query", study=self.text(b"small"))

    def fin_figure(self): return self.struct("fin_figure", study=self.text(b"small"), id=self.text(b"curve"))


POISON = 8  # an address that nobody may follow
ROOM = 256  # of arrays that are written to
# Numbers by name, and where a function needs others; texts, and arrays that are not just numbers, by function.
NUMBERS = {"n": 2, "d": 4, "L": 3, "Q": 2, "M": 2, "dk": 2, "dv": 1, "capacity": 8, "longest": 3, "classes": 2,
           "i": 0, "j": 0, "h": 0, "o": 0, "c": 0, "part": 0, "run": 0, "l": 1, "degree": 2, "stream": 2000,
           "dtype": 1, "folds": 2, "repeats": 1, "room": ROOM, "until": -1, "rank": 0, "ranks": 1, "first": 0,
           "epoch": 0, "flags": 0, "size": ROOM, "most": 16, "step": 1, "bins": 4, "steps": -1, "how": 0, "some": 0,
           "dry": 1, "force": 0, "threads": 1, "which": 0, "columns": 0, "whole": 0, "state": 0, "status": 0, "buffer": ROOM,
           "N": 10, "R": 3, "g": 2.0, "dof": 4.0, "q2": 1.0, "height": 2, "width": 2, "rows": 1, "open": 3,
           "kappa": 2.0, "a": 0.0, "b": 1.0, "tol": 1e-3, "nodes": 4096, "shape": 2.0, "blocks": 2, "total": 2,
           "bound": 5, "form": 0, "bytes": 64}
SPECIAL = {
    "fin_bag_set_drop.drop": lambda o: o.array("unsigned char", [1, 0]),
    "fin_bag_set_make.bags": lambda o: o.struct("fin_bags", d=2),
    "fin_checkpoint_entry.key": lambda o: o.text(b"finetti"),
    "fin_checkpoint_read.path": lambda o: o.get("checkpoint_path"),
    "fin_columns_read.text": lambda o: o.text(b"a"),
    "fin_command_find.name": lambda o: o.text(b"risk"),
    "fin_covariance_matrix.d": lambda o: 2,
    "fin_csv_cells.texts": lambda o: o.texts(b"a", b"b"),
    "fin_csv_open.count": lambda o: 2,
    "fin_csv_open.names": lambda o: o.texts(b"a", b"b"),
    "fin_encoder_tensors.tensors": lambda o: o.keep(ffi.new(f"fin_tensor[{ROOM}]")),
    "fin_fit_tensors.tensors": lambda o: o.keep(ffi.new(f"fin_tensor[{ROOM}]")),
    "fin_fit_baselines.models": lambda o: o.keep(ffi.new(f"fin_fit_settings[{ROOM}]")),
    "fin_fit_candidates.models": lambda o: o.keep(ffi.new(f"fin_fit_settings[{ROOM}]")),
    "fin_encoder_load.tensors": lambda o: o.get("encoder_tensors"),
    "fin_encoder_load.count": lambda o: lib.fin_encoder_tensors(o.get("fin_encoder"), NULL, 0),
    "fin_command_text.size": lambda o: 8192,
    "fin_command_text.buffer": lambda o: o.keep(ffi.new("char[8192]")),
    "fin_fit_candidates.base": lambda o: o.get("fin_fit_settings"),
    "fin_bags_level.sum": lambda o: NULL,
    "fin_fit_create.sum": lambda o: NULL,
    "fin_fit_create_among.sum": lambda o: NULL,
    "fin_learn_create.sum": lambda o: NULL,
    "fin_fit_curve.bags": lambda o: o.bags(40),
    "fin_fit_curve.fit": lambda o: o.create("fin_fit", lambda out, err: lib.fin_fit_create(
        out, o.get("fin_fit_settings"), 2, o.bags(40), NULL, NULL, NULL, err)),
    "fin_fit_interval.coverage": lambda o: 0.9,
    "fin_fit_interval.fit": lambda o: o.create("fin_fit", lambda out, err: lib.fin_fit_create(
        out, o.get("fin_fit_settings"), 0, o.bags(12), NULL, NULL, NULL, err)),
    "fin_fit_judge.labels": lambda o: o.array("double", [0, 1]),
    "fin_fit_restore.tensors": lambda o: o.get("fit_tensors"),
    "fin_fit_restore.count": lambda o: lib.fin_fit_tensors(o.get("fin_fit"), NULL, 0),
    "fin_folds_free.fold": lambda o: NULL,
    "fin_folds_make.n": lambda o: 12,
    "fin_folds_make.labels": lambda o: o.get("fin_bags").labels,
    "fin_folds_make.fold": lambda o: o.folds(),
    "fin_folds_make.groups": lambda o: o.array("int64_t", list(range(12))),
    "fin_folds_read.path": lambda o: o.path("folds.csv", FOLDS),
    "fin_images_write.images": lambda o: o.struct("fin_images", rows=1, count=1, height=2, width=2,
                                                  pixels=o.array("double", [0] * 4), high=1),
    "fin_latent_accumulate.statistic": lambda o: o.array("double", [0] * 64),
    "fin_latent_merge.other": lambda o: o.array("double", [0] * 64),
    "fin_latent_merge.statistic": lambda o: o.array("double", [0] * 64),
    "fin_latent_posterior.statistic": lambda o: o.array("double", [0] * 64),
    "fin_latent_predict.statistic": lambda o: o.array("double", [0] * 64),
    "fin_memory_hooks.release": lambda o: NULL,
    "fin_memory_hooks.allocate": lambda o: NULL,
    "fin_model_read.path": lambda o: o.get("model_path"),
    "fin_nearest_name.names": lambda o: o.texts(b"erf"),
    "fin_npz_array.name": lambda o: o.text(b"a"),
    "fin_npz_open.path": lambda o: o.get("npz_path"),
    "fin_npz_commit.npz": lambda o: o.filled_writer(o.path("out.npz")),
    "fin_probe_fit.y": lambda o: o.array("double", [0, 1] * 9),
    "fin_probe_fit.n": lambda o: 18,
    "fin_probe_fit.p": lambda o: 2,
    "fin_risk_erf.n": lambda o: 1,
    "fin_text_encoder_open.folder": lambda o: o.get("text_folder"),
    "fin_text_pieces_cut.texts": lambda o: o.get("two_texts"),
    "fin_text_pieces_cut.sizes": lambda o: o.array("int64_t", [3, 2]),
    "fin_npz_add_texts.count": lambda o: 0,
    "fin_npz_add.shape": lambda o: o.array("int64_t", [2]),
    "fin_npz_add.ndim": lambda o: 1,
    "fin_range_read.text": lambda o: o.text(b"1:3:3lin"),
    "fin_report_all.hand": lambda o: o.get("fin_studies"),
    "fin_report_figure.path": lambda o: o.path("figure.svg"),
    "fin_report_figures.study": lambda o: o.text(b"small"),
    "fin_report_write.studies": lambda o: o.texts(b"small"),
    "fin_settings_defaults.size": lambda o: ffi.sizeof("fin_risk_settings"),
    "fin_settings_find.name": lambda o: o.text(b"samples"),
    "fin_settings_parse.name": lambda o: o.text(b"samples"),
    "fin_settings_parse.text": lambda o: o.text(b"10"),
    "fin_settings_set.field": lambda o: lib.fin_risk_table.fields + 1,
    "fin_settings_set.number": lambda o: 10.0,
    "fin_store_export.path": lambda o: o.path("runs.csv"),
    "fin_store_gc.drop": lambda o: o.text(b"small"),
    "fin_store_merge.other": lambda o: o.get("store_path"),
    "fin_store_merge.store": lambda o: o.create("fin_store", lambda out, err: lib.fin_store_open(
        o.path("other.db"), lib.FIN_STORE_CREATE, out, err)),
    "fin_store_open.path": lambda o: o.get("store_path"),
    "fin_study_read.path": lambda o: o.path("study.yaml", STUDY),
    "fin_study_parse.text": lambda o: o.text(STUDY),
    "fin_study_parse.size": lambda o: len(STUDY),
    "fin_study_get_run.i": lambda o: 0,
    "fin_study_share.study": lambda o: o.array("fin_study *", [NULL]),
    "fin_table_column.name": lambda o: o.text(b"a"),
    "fin_table_read.path": lambda o: o.path("table.csv", TABLE),
    "fin_table_read_texts.path": lambda o: o.path("table.csv", TABLE),
    "fin_table_parse.text": lambda o: o.text(TABLE),
    "fin_table_parse.size": lambda o: len(TABLE),
    "fin_table_parse_texts.text": lambda o: o.text(TABLE),
    "fin_table_parse_texts.size": lambda o: len(TABLE),
    "fin_task_find.name": lambda o: o.text(b"slr"),
    "fin_task_set_directions.k_star": lambda o: o.array("double", [1, 0, 0, 0]),
    "fin_task_set_directions.v_star": lambda o: o.array("double", [0, 1, 0, 0]),
    "fin_tensors_open.path": lambda o: o.get("model_path"),
    "fin_train_run.until": lambda o: 2,
    "fin_word_group.word": lambda o: o.text(b"task"),
    "fin_word_group.choice": lambda o: o.text(b"slr"),
}


def value(objects, function, parameter):
    """A good argument."""
    special = SPECIAL.get(f"{function.name}.{parameter.name}")
    if special:
        return special(objects)
    kind, name = parameter.ctype, parameter.name
    if kind.kind in ("primitive", "enum"):
        return NUMBERS.get(name, 0.5 if kind.cname == "double" else 1)
    if kind.kind == "function" or kind.item.kind == "function":
        return objects.keep(ffi.callback(kind, lambda *rest: 0))
    if kind.item.kind == "pointer" and kind.item.item.kind != "primitive":
        return objects.array(kind.item.cname, [ffi.cast(kind.item, POISON)])  # where an object is put
    item = kind.item.cname
    if item.startswith("struct ") and hasattr(objects, item[7:]):
        return objects.get(item[7:])
    if item == "double":
        return objects.numbers()
    if item == "int64_t" and name.endswith("offsets"):
        return objects.offsets()
    if item == "char" and name != "buffer":
        return objects.path("new.npz") if name == "path" else objects.text(b"small" if name == "study" else name.encode())
    if item == "void" and name == "values":
        return objects.get("fin_risk_settings" if "_settings_" in function.name else "fin_command_values")
    if item == "void":
        return objects.numbers()
    return objects.keep(ffi.new(f"{item}[{ROOM}]"))


# ---- calls ----------------------------------------------------------------------------------------

def nothing(result, ctype):
    """Is it an answer that says: nothing?"""
    if ctype.kind == "pointer":
        return result == NULL or (ctype.item.cname == "char" and ffi.string(result) == b"")
    if ctype.kind in ("primitive", "enum"):
        return result in (0, -1) or math.isnan(result)
    return True


def call(function, null):
    """Calls `function` with NULL as its parameter number `null` (None: nowhere); a sentence if the answer is wrong."""
    objects = Objects()
    arguments = [value(objects, function, parameter) for parameter in function.parameters]
    err = None
    for i, parameter in enumerate(function.parameters):
        if parameter.name == "err" and i != null:
            err = arguments[i] = ffi.new("fin_error *")
    if null is not None:
        arguments[null] = NULL
    result = getattr(lib, function.name)(*arguments)
    shutil.rmtree(objects.folder, ignore_errors=True)
    said = ffi.string(err.message).decode() if err else ""
    if not function.fallible:
        if null is None or function.parameters[null].optional or nothing(result, function.result):
            return None
        return f"answers {result}"
    if null is None or function.parameters[null].optional:
        if null is not None and f"{function.name}.{function.parameters[null].name}" in UNFIT:
            return None if result == lib.FIN_ERR_UNSUPPORTED and said else f"answers status {result}"
        if function.name in ABSENT:
            return None if result == lib.FIN_ERR_UNSUPPORTED else f"answers status {result}"
        if result != lib.FIN_OK:
            return f"fails: {said}"
        return f"succeeds and leaves {said!r}" if said or (err and err.status) else None
    if result != lib.FIN_ERR_ARGUMENT:
        return f"answers status {result}: {said}"
    for argument in arguments:
        if isinstance(argument, ffi.CData) and ffi.typeof(argument).kind == "array" and \
                ffi.typeof(argument).item.kind == "pointer" and argument[0] == ffi.cast("void *", POISON):
            return "leaves an object that is none"
    return None if len(said) > 20 else f"does not say what is wrong: {said!r}"


def child(function, nulls, pipe):
    """Makes the calls one by one, and says what comes of each; the process may end in any of them."""
    for null in nulls:
        try:
            problem = call(function, null)
        except BaseException as failure:
            problem = f"cannot be tried: {failure!r}"
        os.write(pipe, (json.dumps(problem) + "\n").encode())


def tried(function):
    """{call: problem} of all calls of a function."""
    nulls = [None] + [i for i, parameter in enumerate(function.parameters) if parameter.pointer]
    problems = {}
    while nulls:
        here, there = os.pipe()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            status = 1
            try:
                os.close(here)
                faulthandler.disable()
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                child(function, nulls, there)
                status = 0
            finally:
                os._exit(status)
        os.close(there)
        with os.fdopen(here) as lines:
            answers = [json.loads(line) for line in lines]
        _, status = os.waitpid(process, 0)
        if len(answers) < len(nulls):
            answers.append(f"ends the process ({status})")
        for null, problem in zip(nulls, answers):
            if problem:
                what = "no NULL" if null is None else f"{function.parameters[null].name} = NULL"
                problems[f"{function.name}: {what}"] = problem
        nulls = nulls[len(answers):]
    return problems


def test_null_is_answered(tmp_path):
    problems = {}
    first = Objects()
    shutil.copy(ffi.string(first.get("store_path")).decode(), tmp_path / "store.db")
    shutil.rmtree(first.folder)
    Objects.filled = str(tmp_path / "store.db")
    for function in FUNCTIONS.values():
        problems.update(tried(function))
    assert not problems, f"{len(problems)} calls:\n" + "\n".join(f"  {what} {why}" for what, why in problems.items())
