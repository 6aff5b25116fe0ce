"""Between a call and the library: numbers as settings, exceptions of callbacks, packages that are missing."""

import copy
import decimal
import fractions
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import finetti
from finetti import _core
from finetti._core import Table, Watch, ffi, keep_exception, lib

TABLE = Table(ffi.addressof(lib, "fin_train_table"), "fin_train_settings")

pytestmark = pytest.mark.usefixtures("two_threads")


# ---- settings -------------------------------------------------------------------------------------

@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.float16(2), np.int8(2), np.uint64(2), np.array(2),
                                   np.array(2.0), "2", np.str_("2"), type("Text", (str,), {})("2")],
                         ids=lambda value: f"{type(value).__name__} {value!r}")
def test_numbers_of_all_kinds(value):
    made = TABLE.make({"runs": value, "alpha": value})
    assert (made.runs, made.alpha) == (2, 2.0)


@pytest.mark.parametrize("value", [decimal.Decimal("0.5"), fractions.Fraction(1, 2), np.bool_(True), True])
def test_numbers_that_are_no_whole_ones(value):
    assert TABLE.make({"alpha": value}).alpha == float(value)


@pytest.mark.parametrize("value, kind", [
    (1j, TypeError), (np.complex64(1), TypeError), (np.array([1.0]), TypeError), ([1], TypeError), (b"1", TypeError),
    (object(), TypeError), ({}, TypeError), (np.datetime64("2020-01-01"), TypeError), (np.nan, ValueError),
    (10**400, ValueError), (-10**400, ValueError), (10**5000, ValueError), ("1\0", ValueError), ("\udc80", ValueError),
    ("", ValueError), ("auto", ValueError)], ids=lambda value: f"{type(value).__name__} {value!r:.20}"
    if not isinstance(value, int) else "int")
@pytest.mark.parametrize("name", ["runs", "alpha"])
def test_what_is_no_number(name, value, kind):
    with pytest.raises(kind, match=name):
        TABLE.make({name: value})


# ---- exceptions of callbacks ----------------------------------------------------------------------

def test_an_exception_belongs_to_the_call_whose_callback_raised_it():
    problem = KeyboardInterrupt()
    with Watch() as outer:
        keep_exception(KeyboardInterrupt, problem, None)  # in the callback, before it could guard itself
        with Watch() as inner:
            inner.check(lib.FIN_OK)
        with pytest.raises(KeyboardInterrupt) as caught:
            outer.check(lib.FIN_ERR_CANCELLED)
    assert caught.value is problem


def test_an_exception_that_nobody_asked_for_is_not_kept():
    with Watch():
        keep_exception(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert _core._failed.value is None


def test_what_a_callback_raised_goes_with_its_handler():
    class Problem(Exception):
        pass

    def fail(*news):
        raise Problem
    gc.disable()
    try:
        gone = None
        try:
            finetti.risk(form="softmax", method="simulation", progress=fail)
        except Problem as problem:
            gone = weakref.ref(problem)
        assert gone() is None  # without waiting for the collector
    finally:
        gc.enable()


def test_the_library_may_be_called_from_its_callbacks():
    def inside(*news):
        found.append(finetti.risk(form="softmax", method="simulation", samples=100).risk)
        with pytest.raises(finetti.CancelledError):
            finetti.risk(form="softmax", method="simulation", progress=lambda *news: True)
    found = []
    outside = finetti.risk(form="softmax", method="simulation", samples=20000, progress=inside).risk
    assert outside == finetti.risk(form="softmax", method="simulation", samples=20000).risk
    assert set(found) == {finetti.risk(form="softmax", method="simulation", samples=100).risk}


def test_every_error_knows_its_kind():
    assert finetti.ArgumentError.status == "invalid argument"
    with pytest.raises(finetti.FileError) as caught:
        finetti.train(resume="no such file")
    assert caught.value.status == "input or output failed"


# ---- signatures -----------------------------------------------------------------------------------

def test_signatures_can_be_changed_and_copied():
    signature = inspect.signature(functools.partial(finetti.risk, lam=3))
    assert signature.parameters["lam"].default == 3 and signature.parameters["d"].default == 400
    for again in (copy.deepcopy(signature), pickle.loads(pickle.dumps(signature))):
        assert again.parameters["lam"].type == signature.parameters["lam"].type
        assert list(again.parameters) == list(signature.parameters)


# ---- packages that are not installed --------------------------------------------------------------

@pytest.mark.parametrize("module, name, sentence", [
    ("numpy", "risk", "finetti.risk needs numpy, which is not installed: 'pip install numpy'"),
    ("sklearn", "SingleLocationRegressor", "finetti.SingleLocationRegressor needs scikit-learn"),
    ("scipy", "AttentionRegressor", "finetti.AttentionRegressor needs scipy"),
    ("_cffi_backend", "risk", "finetti needs cffi, which is not installed: 'pip install cffi'"),
])
def test_without(module, name, sentence):
    script = f"import sys; sys.modules['{module}'] = None; from finetti import {name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and f"ImportError: {sentence}" in done.stderr.splitlines()[-1]


def test_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with pytest.warns(UserWarning, match="a progress bar needs tqdm") as caught:
        finetti.risk(form="softmax", method="simulation", samples=100, progress=True)
    assert len(caught) == 1
