"""finetti.train: how k and v move on their spheres, for many runs at a time."""

import numpy as np

from . import _arrays
from ._core import ArgumentError, Watch, check, error, ffi, lib, text
from ._lab import FORMS, LENGTHS, OVERLAP_NAMES, OVERLAPS, PROGRESS, TASKS, TRAIN, fill, frame, union
from ._model import Model
from ._signature import Keyword, parameters, signed
from .tasks import create

_STATUS = np.array([text(lib.fin_run_status_name(i)) for i in range(lib.FIN_RUN_DIVERGED + 1)])
_RUN = ("status", "at", "converged_at", "stuck_at", "left_at")  # one number for each run
_POINT = tuple(name for name, _ in ffi.typeof("fin_train_point").fields)
_DTYPES = {lib.FIN_F64: np.float64, lib.FIN_I64: np.int64, lib.FIN_I32: np.int32}


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

    def __init__(self, train, settings):
        self.settings = settings
        array, err = ffi.new("fin_train_array *"), error()
        self._logs = []
        for i in range(lib.fin_train_array_count(train)):
            check(lib.fin_train_get_array(train, i, array, err), err)
            name, shape = text(array.name), tuple(array.shape[0:array.ndim])
            if name != "state":
                setattr(self, name, _arrays.copy(array.data, shape, _DTYPES[array.dtype]))
            if name not in _RUN and name not in ("step", "state"):
                self._logs.append(name)
        self.status = _STATUS[self.status]
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

    def __repr__(self):
        kinds = self.status.tolist()
        found = ", ".join(f"{kinds.count(name)} {name}" for name in _STATUS if name in kinds)
        return f"<Training of {len(self)} runs: {found}>"


def _ends(train, runs):
    """Where every run is now: (runs, numbers of a fin_train_point)."""
    ends, run, err = np.empty((runs, len(_POINT))), ffi.new("fin_run *"), error()
    source, size = ffi.cast("char *", ffi.addressof(run, "now")), ffi.sizeof("fin_train_point")
    target = ffi.from_buffer(ends)
    for r in range(runs):
        check(lib.fin_train_get_run(train, r, run, err), err)
        ffi.memmove(target + r * size, source, size)
    return ends


# ---- arguments ------------------------------------------------------------------------------------

def _schedule(value, name):
    """A fin_schedule (as a tuple) and what keeps it alive."""
    if value is None:
        return (0, ffi.NULL, ffi.NULL), None
    pairs = value.items() if hasattr(value, "items") else value
    try:
        pairs = [(step.__index__(), float(number)) for step, number in pairs]
    except (TypeError, ValueError, AttributeError):
        raise TypeError(f"{name} must be such as {{0: 1.0, 1000: 0.5}} (from this step on: value), not {value!r}") \
            from None
    if not pairs:
        raise ArgumentError(f"{name} is empty; it must be such as {{0: 1.0, 1000: 0.5}}")
    keep = ffi.new("int64_t[]", [step for step, _ in pairs]), ffi.new("double[]", [number for _, number in pairs])
    return (len(pairs), *keep), keep


def _starting_overlaps(start, runs):
    """(count, fin_overlaps[]) from {name: number or array (runs,)}."""
    odd = [name for name in start if name not in OVERLAP_NAMES]
    if odd:
        raise TypeError(f"start has no {odd[0]!r}; it can have {', '.join(OVERLAP_NAMES)}")
    arrays = {name: np.asarray(value) for name, value in start.items()}
    count = runs if any(array.ndim for array in arrays.values()) else 1
    for name, array in arrays.items():
        if array.ndim > 1 or array.ndim == 1 and len(array) != runs:
            raise ValueError(f"start: {name} has shape {array.shape}; it must be a number, or one for each of the "
                             f"{runs} runs")
        if array.dtype.kind not in "iuf":
            raise TypeError(f"start: {name} must be numbers, not {array.dtype}")
    points = ffi.new("fin_overlaps[]", count)
    for r in range(count):
        points[r] = fill(OVERLAPS, {name: array.flat[r if array.ndim else 0].item()
                                    for name, array in arrays.items()})[0]
    return {"count": count, "overlaps": points}, points


def _starting_vectors(start, d, runs):
    try:
        k, v = start
    except (TypeError, ValueError):
        raise TypeError("start must be a dict of overlaps, such as {'kappa': 0.1, 'nu': 0.1}, or a pair (k, v) of "
                        "arrays of shape (d) or (runs, d)") from None
    pointers = []
    for vector, name in ((k, "start: k"), (v, "start: v")):
        vector = _arrays.plain(vector, name)
        shape = (d,) if vector.ndim == 1 else (runs, d)
        pointers.append(_arrays.view(vector, name, dtype="d", shape=shape)[0])
    if k.ndim != v.ndim:
        raise ValueError(f"start: k has shape {k.shape}, v {v.shape}; they must be alike")
    return {"count": 1 if k.ndim == 1 else runs, "k": pointers[0], "v": pointers[1]}, pointers


def _start(start, settings, task):
    """Fields of fin_train_start, and what keeps them alive. `init` follows from what is given."""
    names = TRAIN.fields["init"].choices
    if start is None and settings.init == lib.FIN_INIT_OVERLAPS:
        start = {}
    if start is None:
        if settings.init == lib.FIN_INIT_VECTORS:
            raise TypeError("init = 'vectors' needs start: a pair (k, v) of arrays of shape (d) or (runs, d)")
        return {}, None
    overlaps = hasattr(start, "keys")
    wanted = lib.FIN_INIT_OVERLAPS if overlaps else lib.FIN_INIT_VECTORS
    if settings.init != wanted:
        raise TypeError(f"start is given as {names[wanted]}, but init = {names[settings.init]!r}; leave out init")
    if overlaps:
        return _starting_overlaps(start, settings.runs)
    return _starting_vectors(start, lib.fin_task_get_settings(task).d, settings.runs)


_OWN = [
    Keyword("start", None, "Mapping[str, float | ArrayLike] | tuple[NDArray[np.float64], NDArray[np.float64]] | None",
            "where runs start: a dict of overlaps such as {'kappa': 0.1, 'nu': 0.1} (numbers, or arrays with one for "
            "each run; the others are those of k = k*, v = v*), or a pair (k, v) of arrays (d) or (runs, d). init "
            "follows from it"),
    Keyword("lam_schedule", None, "Mapping[int, float] | Sequence[tuple[int, float]] | None",
            "lam by steps, such as {0: 1, 1000: 0.5}, instead of lam; divided by 1 + decay t too"),
    Keyword("alpha_schedule", None, "Mapping[int, float] | Sequence[tuple[int, float]] | None",
            "alpha by steps, instead of alpha"),
]

_OVERLAPS = [Keyword(field.name, None, "float | ArrayLike | None", f"the same as start={{{field.name!r}: ...}}",
                     f"{field.lowest:g} to {field.highest:g}", field) for field in OVERLAPS.fields.values()]


@signed([*union(TASKS), LENGTHS, *union(FORMS), *parameters(TRAIN), *_OWN, *_OVERLAPS, PROGRESS])
def train(task="slr", form="erf", *, lengths=None, start=None, lam_schedule=None, alpha_schedule=None, progress=None,
          **given):
    """Trains k and v on their spheres: with the exact gradient of the risk, by SGD, or as gradient flow.

    Run r is a function of the settings, the seed and r alone. The seed is that of the task too, unless the task is
    given as an object.

    Parameters
    ----------
    task : str or Task, default='slr'
        Generative model: a name of finetti.tasks.names(), or an object such as finetti.tasks.slr(d=80).
    form : str, default='erf'
        Attention form: erf, softmax, linear, shifted, softplus, hardmax, bayes.
    {parameters}

    Returns
    -------
    Training
        With arrays step (logs), kappa, nu, risk, ... (runs, logs), status (runs).

    Examples
    --------
    >>> import finetti
    >>> runs = finetti.train(lam=0.1, init="manifold", runs=10)
    >>> runs
    <Training of 10 runs: 10 converged>
    >>> runs.kappa.shape
    (10, 101)
    """
    _together(given, lam_schedule, alpha_schedule)
    overlaps = {name: given.pop(name) for name in OVERLAP_NAMES if given.get(name) is not None}
    if overlaps and start is not None:
        raise TypeError(f"{next(iter(overlaps))} and start both say where runs start; give one of them")
    start = overlaps or start
    if start is not None:
        given.setdefault("init", "overlaps" if hasattr(start, "keys") else "vectors")
    model = Model(task, form, given, lengths, TRAIN)
    if model.arrays:
        raise TypeError(f"{model.arrays[0][1]} is an array; a training has one {model.arrays[0][1]} (make several)")
    form_settings, settings = model.structs()
    task = _task(model, settings)
    first, keep = _start(start, settings, task)
    first["lam"], lam_kept = _schedule(lam_schedule, "lam_schedule")
    first["alpha"], alpha_kept = _schedule(alpha_schedule, "alpha_schedule")
    out, err = ffi.new("fin_train **"), error()
    check(lib.fin_train_create(out, task, model.form.pointer, form_settings, settings,
                               ffi.new("fin_train_start *", first), err), err)
    runs = ffi.gc(out[0], lib.fin_train_destroy)
    with Watch(progress) as watch:
        watch.check(lib.fin_train_run(runs, settings.steps, watch.pointer, watch.err))
    used = model.settings(task, [form_settings, lib.fin_train_get_settings(runs)])
    return Training(runs, used)


def _together(given, lam_schedule, alpha_schedule):
    for schedule, name in ((lam_schedule, "lam"), (alpha_schedule, "alpha")):
        if schedule is not None and given.get(name) is not None:
            raise TypeError(f"{name}_schedule takes the place of {name}; give one or the other")
    if given.get("log_every") is not None and given.get("log_decade"):
        raise TypeError("log_decade takes the place of log_every; give one or the other")


def _task(model, settings):
    """Vectors in R^d are made only where somebody looks at them: they are what limits d."""
    vectors = settings.engine == lib.FIN_ENGINE_AMBIENT or settings.init == lib.FIN_INIT_VECTORS
    if model.own:
        return model.own._in_space() if vectors else model.own._plain
    return create(model.kind, model.parts[0], model.lengths, settings.seed, lib.FIN_TASK_AMBIENT if vectors else 0)
