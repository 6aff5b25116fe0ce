"""What came out of finetti.train: arrays, and the file that the command line goes on from."""

import numpy as np

from . import _arrays
from ._core import ArgumentError, FormatError, UnsupportedError, check, encoded, error, ffi, lib, text
from ._lab import frame

_STATUS = np.array([text(lib.fin_run_status_name(i)) for i in range(lib.FIN_RUN_DIVERGED + 1)])
_RUN = ("status", "at", "converged_at", "stuck_at", "left_at")  # one number for each run
_POINT = tuple(name for name, _ in ffi.typeof("fin_train_point").fields)
_DTYPES = {lib.FIN_F32: np.float32, lib.FIN_F64: np.float64, lib.FIN_I32: np.int32, lib.FIN_I64: np.int64,
           lib.FIN_U8: np.uint8}
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}


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
        'converged', 'stuck', 'diverged', or 'moving' (none of these).
    at : array of int (runs,)
        Steps made.
    converged_at, stuck_at, left_at : array (runs,)
        The step at which it was first seen that a run had converged, was stuck, had left M; NaN: not met.
    final : dict of arrays (runs,)
        The state of every run at its end, by the names above.
    settings : dict
        Every setting that was used, 'auto' worked out.
    """

    def __init__(self, train, settings, lines, directions, seed):
        self.settings = settings
        self._lines, self._directions, self._seed = lines, directions, seed  # what it takes to go on
        self._arrays = dict(_read(train))
        self._logs = [name for name in self._arrays if name in _POINT]
        for name in ("step", *self._logs, *_RUN[1:]):
            setattr(self, name, self._arrays[name])
        self.status = _STATUS[self._arrays["status"]]
        self.final = dict(zip(_POINT, _ends(train, len(self)).T))

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
        if self.settings["engine"] == "ambient" and self._seed != self.settings["seed"]:
            raise UnsupportedError(f"the file has one seed; here the task's is {self._seed} and the training's "
                                   f"{self.settings['seed']}. Pass both the same one, or resume the object itself")
        arrays = {"settings": np.frombuffer(self._lines.encode(), np.uint8), **self._arrays}
        if self._directions:
            arrays["k_star"], arrays["v_star"] = self._directions
        out, err = ffi.new("fin_npz_writer **"), error()
        check(lib.fin_npz_create(encoded(path), out, err), err)
        try:
            for name, array in arrays.items():
                check(lib.fin_npz_add(out[0], name.encode(), _CODES[array.dtype], array.ndim, array.shape,
                                      ffi.from_buffer(array), err), err)
        except BaseException:
            lib.fin_npz_abort(out[0])
            raise
        check(lib.fin_npz_commit(out[0], ffi.NULL, err), err)

    def __repr__(self):
        kinds = self.status.tolist()
        found = ", ".join(f"{kinds.count(name)} {name}" for name in _STATUS if name in kinds)
        return f"<Training of {len(self)} runs: {found}>"


def _read(train):
    """Copies of the library's arrays, by name."""
    array, err = ffi.new("fin_train_array *"), error()
    for i in range(lib.fin_train_array_count(train)):
        check(lib.fin_train_get_array(train, i, array, err), err)
        yield text(array.name), _arrays.copy(array.data, tuple(array.shape[0:array.ndim]), _DTYPES[array.dtype])


def _ends(train, runs):
    """Where every run is now: (runs, numbers of a fin_train_point)."""
    ends, run, err = np.empty((runs, len(_POINT))), ffi.new("fin_run *"), error()
    source, size = ffi.cast("char *", ffi.addressof(run, "now")), ffi.sizeof("fin_train_point")
    target = ffi.from_buffer(ends)
    for r in range(runs):
        check(lib.fin_train_get_run(train, r, run, err), err)
        ffi.memmove(target + r * size, source, size)
    return ends


# ---- going on -------------------------------------------------------------------------------------

def read_file(path):
    """{name: array} of an NPZ file."""
    out, err, found = ffi.new("fin_npz **"), error(), ffi.new("fin_array *")
    check(lib.fin_npz_open(encoded(path), out, err), err)
    file = ffi.gc(out[0], lib.fin_npz_close)
    arrays = {}
    for i in range(lib.fin_npz_count(file)):
        name = lib.fin_npz_name(file, i)
        check(lib.fin_npz_array(file, name, found, err), err)
        arrays[text(name)] = _arrays.copy(found.data, tuple(found.shape[0:found.ndim]), _DTYPES[found.dtype])
    return arrays


def put_back(train, arrays):
    """Hands the arrays of a stopped training to a new one, which looks at them closely."""
    count, err = lib.fin_train_array_count(train), error()
    given, keep = ffi.new("fin_train_array[]", count), []
    for i in range(count):
        check(lib.fin_train_get_array(train, i, given + i, err), err)
        array = arrays.get(text(given[i].name))
        if array is None or array.ndim not in (1, 2):
            raise FormatError(f"there is no array {text(given[i].name)} of one or two axes")
        keep.append(ffi.from_buffer(array))
        given[i].dtype, given[i].ndim, given[i].data = _CODES[array.dtype], array.ndim, keep[-1]
        given[i].shape = [*array.shape, 1][:2]
    check(lib.fin_train_resume(train, given, count, err), err)
