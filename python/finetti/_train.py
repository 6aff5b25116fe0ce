"""finetti.train: how k and v move on their spheres, for many runs at a time."""

import operator
import warnings

from . import _arrays
from ._core import ArgumentError, Watch, __version__, encoded, error, ffi, lib, text
from ._command import as_array, pairs_of, split
from ._lab import (FORM, FORMS, LENGTHS, OVERLAP_NAMES, OVERLAPS, PROGRESS, TASK, TASKS, TRAIN, fill, find, law, union)
from ._signature import Keyword, parameters, signed
from ._training import Training, made
from .tasks import Task

# ---- arguments ------------------------------------------------------------------------------------

def _schedule(value, name):
    """A schedule as text, such as 0:1,1000:0.5."""
    if value is None:
        return ""
    pairs = value.items() if hasattr(value, "items") else value
    try:
        pairs = [(operator.index(step), float(number)) for step, number in pairs]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be such as {{0: 1.0, 1000: 0.5}} (from this step on: value), not {value!r}") \
            from None
    if not pairs:
        raise ArgumentError(f"{name} is empty; it must be such as {{0: 1.0, 1000: 0.5}}")
    return _list(pairs)


def _list(pairs):
    return ",".join(f"{step}:{number!r}" for step, number in pairs)


def _starting_overlaps(start, runs):
    """Fields of fin_training_start from {name: number or array (runs,)}."""
    odd = [name for name in start if name not in OVERLAP_NAMES]
    if odd:
        raise TypeError(f"start has no {odd[0]!r}; it can have {', '.join(OVERLAP_NAMES)}")
    arrays = {name: as_array(value, f"start: {name}") for name, value in start.items()}
    count = runs if any(array.ndim for array in arrays.values()) else 1
    for name, array in arrays.items():
        if array.ndim > 1 or array.ndim == 1 and len(array) != runs:
            raise ValueError(f"start: {name} has shape {array.shape}; it must be a number, or one for each of the "
                             f"{runs} runs")
        if array.dtype.kind not in "iufb":
            raise TypeError(f"start: {name} must be numbers, not {array.dtype}")
    points = ffi.new("fin_overlaps[]", count)
    for r in range(count):
        points[r] = fill(OVERLAPS, {name: array.flat[r if array.ndim else 0].item()
                                    for name, array in arrays.items()})[0]
    return {"count": count, "overlaps": points}


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
    return {"count": 1 if k.ndim == 1 else runs, "k": pointers[0], "v": pointers[1]}


_OWN = [
    Keyword("start", None, "Mapping[str, float | ArrayLike] | tuple[NDArray[np.float64], NDArray[np.float64]] | None",
            "where runs start: a dict of overlaps such as {'kappa': 0.1, 'nu': 0.1} (numbers, or arrays with one for "
            "each run; the others are those of k = k*, v = v*), or a pair (k, v) of arrays (d) or (runs, d). init "
            "follows from it"),
    Keyword("lam_schedule", None, "Mapping[int, float] | Sequence[tuple[int, float]] | None",
            "lam by steps, such as {0: 1, 1000: 0.5}, instead of lam; divided by 1 + decay t too"),
    Keyword("alpha_schedule", None, "Mapping[int, float] | Sequence[tuple[int, float]] | None",
            "alpha by steps, instead of alpha"),
    Keyword("resume", None, "Training | str | bytes | os.PathLike[str] | None",
            "goes on from a Training, or from a file that Training.save or `finetti train --out` wrote, with its "
            "settings; beside it only steps (not fewer) and progress. The numbers are those of runs that did not stop"),
]

_OVERLAPS = [Keyword(field.name, None, "float | ArrayLike | None", f"the same as start={{{field.name!r}: ...}}",
                     f"{field.lowest:g} to {field.highest:g}", field) for field in OVERLAPS.fields.values()]


@signed([TASK, FORM, *union(TASKS), LENGTHS, *union(FORMS), *parameters(TRAIN), *_OWN, *_OVERLAPS, PROGRESS])
def train(task="slr", form="erf", *, lengths=None, start=None, lam_schedule=None, alpha_schedule=None, resume=None,
          progress=None, **given):
    """Trains k and v on their spheres: with the exact gradient of the risk, by SGD, or as gradient flow.

    Run r is a function of the settings, the seed and r alone. The seed is that of the task too, unless the task is
    given as an object. What stops a training, KeyboardInterrupt or CancelledError, has what was done so far in its
    attribute `training`, and resume=problem.training goes on.

    Parameters
    ----------
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
    if resume is not None:
        others = {"lengths": lengths, "start": start, "lam_schedule": lam_schedule, "alpha_schedule": alpha_schedule}
        return _go_on(resume, task, form, {**given, **others}, progress)
    _together(given, lam_schedule, alpha_schedule)
    overlaps = {name: given.pop(name) for name in OVERLAP_NAMES if given.get(name) is not None}
    if overlaps and start is not None:
        raise TypeError(f"{next(iter(overlaps))} and start both say where runs start; give one of them")
    lists = {"lam_schedule": _schedule(lam_schedule, "lam_schedule"),
             "alpha_schedule": _schedule(alpha_schedule, "alpha_schedule")}
    return _create(task, form, given, lengths, overlaps or start, lists, progress)


def _create(task, form, given, lengths, start, lists, progress):
    own = task if isinstance(task, Task) else None
    kind = own._kind if own else find(TASKS, task, "task")
    given, arrays = split(given)
    if arrays:
        raise TypeError(f"{next(iter(arrays))} is an array; a training has one {next(iter(arrays))} (make several)")
    wrong = [name for name in given if name in kind.table.fields] + ["lengths"] * (lengths is not None)
    if own and wrong:
        raise TypeError(f"{wrong[0]!r} is a setting of the task, and the task is given as an object: make another with "
                        f"finetti.tasks.{own.name}({wrong[0]}=...)")
    law_of_length = own._lengths if own else law(lengths, given)
    if law_of_length == ((), ()):
        raise ArgumentError("lengths is empty; it must be such as {5: 0.2, 10: 0.8}")
    fields = _start(start, given, own.settings["d"] if own else kind.table.make({"d": given.get("d")}).d)
    words = {"task": kind.name, "form": form, **given, **lists,
             "lengths": _list(zip(*law_of_length)) if law_of_length else ""}
    if own:
        words.update(split(own._given)[0])
        fields["seed"] = ffi.new("uint64_t *", own.seed)
        fields.update(zip(("k_star", "v_star"), map(_arrays.doubles, own._directions or ())))
    pairs, kept = pairs_of(words)
    training = made(lib.fin_training_create, pairs, len(words), ffi.new("fin_training_start *", fields))
    return _finish(training, own and own.seed, progress)


def _start(start, given, d):
    """Fields of fin_training_start. `init` follows from what is given."""
    if start is None:
        if given.get("init") == "vectors":
            raise TypeError("init = 'vectors' needs start: a pair (k, v) of arrays of shape (d) or (runs, d)")
        return {}
    init, runs = "overlaps" if hasattr(start, "keys") else "vectors", TRAIN.make({"runs": given.get("runs")}).runs
    if given.setdefault("init", init) != init:
        raise TypeError(f"start is given as {init}, but init = {given['init']!r}; leave out init")
    return _starting_overlaps(start, runs) if init == "overlaps" else _starting_vectors(start, d, runs)


def _finish(training, seed, progress):
    """Goes on to the end. What stops it carries what was done so far."""
    try:
        with Watch(progress) as watch:
            steps = lib.fin_training_get(training).settings.steps
            watch.check(lib.fin_train_run(lib.fin_training_runs(training), steps, watch.pointer, watch.err))
    except BaseException as problem:
        problem.training = Training(training, seed)
        raise
    err = error()
    if lib.fin_training_check_step(training, err):
        warnings.warn(text(err.message), RuntimeWarning, stacklevel=3)
    return Training(training, seed)


def _together(given, lam_schedule, alpha_schedule):
    for schedule, name in ((lam_schedule, "lam"), (alpha_schedule, "alpha")):
        if schedule is not None and given.get(name) is not None:
            raise TypeError(f"{name}_schedule takes the place of {name}; give one or the other")
    if given.get("log_every") is not None and given.get("log_decade"):
        raise TypeError("log_decade takes the place of log_every; give one or the other")


# ---- going on -------------------------------------------------------------------------------------

def _go_on(source, task, form, given, progress):
    steps = given.pop("steps", None)
    steps = -1 if steps is None else TRAIN.make({"steps": steps}).steps
    odd = [name for name, value in given.items() if value is not None] + ["task"] * (task != "slr") \
        + ["form"] * (form != "erf")
    if odd:
        raise TypeError(f"{odd[0]!r} cannot be changed: resume takes the settings of what it goes on from; only steps "
                        "and progress go with it")
    if isinstance(source, Training):
        return _finish(source._again(steps), source._seed, progress)
    path = ffi.new("char[]", encoded(source))
    training = made(lib.fin_training_resume, ffi.new("fin_training_source *", {"path": path}), steps)
    version = text(lib.fin_training_get(training).version)
    if version != __version__:
        warnings.warn(f"the file was written by version {version}, this is {__version__}; numbers may differ",
                      stacklevel=3)
    return _finish(training, None, progress)
