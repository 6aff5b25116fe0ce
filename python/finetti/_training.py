"""What came out of finetti.train: arrays, and the file that the command line goes on from."""

import numpy as np

from . import _arrays
from ._core import ArgumentError, check, encoded, error, ffi, lib, text
from ._command import DTYPES, Result, left_in
from ._html import table
from ._lab import FORMS, TASKS, TRAIN, frame

_STATUS = np.array([text(lib.fin_run_status_name(i)) for i in range(lib.FIN_RUN_DIVERGED + 1)])
_RUN = ("status", "at", "converged_at", "stuck_at", "left_at")  # one number for each run
_POINT = tuple(name for name, _ in ffi.typeof("fin_train_point").fields)
_CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}


class Training:
    """What came out of finetti.train.

    Attributes
    ----------
    step : array (logs,)
        The logged steps.
    kappa, nu, theta, eta, rho, lam, risk, risk_error, excess, distance, gradient : array (runs, logs)
        The state at these steps. excess = risk - eps^2; distance: to M, sqrt(theta^2 + eta^2 + rho^2); gradient: its
        norm on the spheres, NaN if the risk is simulated. Logs that a run did not reach are NaN.
    status : array of str (runs,)
        'converged', 'stuck', 'diverged', or 'unconverged' (none of these).
    at : array of int (runs,)
        Steps made.
    converged_at, stuck_at, left_at : array (runs,)
        The step at which it was first seen that a run had converged, was stuck, had left M; NaN: not met.
    final : dict of arrays (runs,)
        The state of every run at its end, by the names above.
    settings : dict
        Every setting that was used, 'auto' worked out.
    """

    def __init__(self, training, seed):
        self.settings = _settings(lib.fin_training_get(training))
        self._seed = seed  # of the task; None: that of the settings
        self._arrays = dict(_read(training))
        self._logs = [name for name in self._arrays if name in _POINT]
        for name in ("step", *self._logs, *_RUN[1:]):
            setattr(self, name, self._arrays[name])
        self.status = _STATUS[self._arrays["status"]]
        self.final = dict(zip(_POINT, _ends(lib.fin_training_runs(training), len(self)).T))

    def __len__(self):
        return len(self.status)

    def count(self, status="converged"):
        """How many runs ended so."""
        if status not in _STATUS:
            raise ArgumentError(f"status = {status!r}; it is one of {', '.join(_STATUS)}")
        return int((self.status == status).sum())

    def to_frame(self):
        """A pandas DataFrame, one row for each run and logged step."""
        runs, logs = self.kappa.shape
        return frame({"run": np.repeat(np.arange(runs), logs), "step": np.tile(self.step, runs),
                      **{name: getattr(self, name).ravel() for name in self._logs}})

    def ends_to_frame(self):
        """A pandas DataFrame, one row for each run: where it ended."""
        return frame({"run": np.arange(len(self)), **{name: getattr(self, name) for name in _RUN}, **self.final})

    def save(self, path):
        """Writes the NPZ file that `finetti train --out` writes.

        finetti.train(resume=path, steps=...) and `finetti train --resume` go on from it; NumPy reads it.
        """
        err = error()
        check(lib.fin_training_write(self._again(), encoded(path), err), err)

    def summary(self):
        """What finetti.run("train") leaves, of these runs: share, median_risk, farthest, ..., as a Result."""
        out, err = ffi.new("fin_result **"), error()
        check(lib.fin_training_result(self._again(), ffi.NULL, out, err), err)
        return Result("train", self.settings, (), {}, *left_in(out))

    def _repr_html_(self):
        rows = [[name, self.count(name), float(np.median(self.final["risk"][self.status == name])),
                 float(np.median(np.abs(self.final["kappa"][self.status == name]))),
                 float(np.median(np.abs(self.final["nu"][self.status == name])))] for name in _STATUS if name in self.status]
        return table(f"Training of {len(self)} runs, {int(self.at.max())} steps",
                     ("ended", "runs", "median risk", "median |κ|", "median |ν|"), rows)

    def _again(self, steps=-1):
        """A fin_training that goes on from here."""
        seed = ffi.NULL if self._seed is None else ffi.new("uint64_t *", self._seed)
        names = [ffi.new("char[]", name.encode()) for name in self._arrays]
        arrays = ffi.new("fin_train_array[]", [
            {"name": name, "dtype": _CODES[array.dtype], "ndim": array.ndim, "shape": array.shape,
             "data": ffi.from_buffer(array)} for name, array in zip(names, self._arrays.values())])
        source = ffi.new("fin_training_source *", {"arrays": arrays, "count": len(names), "seed": seed})
        return made(lib.fin_training_resume, source, steps)

    def __repr__(self):
        kinds = self.status.tolist()
        found = ", ".join(f"{kinds.count(name)} {name}" for name in _STATUS if name in kinds)
        return f"<Training of {len(self)} runs: {found}>"


def made(create, *arguments):
    """The fin_training that a call makes."""
    out, err = ffi.new("fin_training **"), error()
    check(create(out, *arguments, err), err)
    return ffi.gc(out[0], lib.fin_training_destroy)


def _settings(parts):
    """Every setting, 'auto' worked out."""
    kind, form = TASKS[text(lib.fin_task_kind_name(lib.fin_task_get_kind(parts.task)))], \
        FORMS[text(lib.fin_form_name(parts.form))]
    return {"task": kind.name, "form": form.name, **kind.table.read(lib.fin_task_get_settings(parts.task)),
            **form.table.read(parts.form_settings), **TRAIN.read(parts.settings)}


def _read(training):
    """Copies of the library's arrays, by name."""
    array, err = ffi.new("fin_train_array *"), error()
    for i in range(lib.fin_training_array_count(training)):
        check(lib.fin_training_get_array(training, i, array, err), err)
        yield text(array.name), _arrays.copy(array.data, tuple(array.shape[0:array.ndim]), DTYPES[array.dtype])


def _ends(train, runs):
    """Where every run is now: (runs, numbers of a fin_train_point)."""
    ends, run, err = np.empty((runs, len(_POINT))), ffi.new("fin_run *"), error()
    source, size = ffi.cast("char *", ffi.addressof(run, "now")), ffi.sizeof("fin_train_point")
    target = ffi.from_buffer(ends)
    for r in range(runs):
        check(lib.fin_train_get_run(train, r, run, err), err)
        ffi.memmove(target + r * size, source, size)
    return ends
