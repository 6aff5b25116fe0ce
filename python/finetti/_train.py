"""finetti.train: how k and v move on their spheres, for many runs at a time."""

import operator
import os
import warnings

from . import _arrays
from ._core import ArgumentError, FormatError, Watch, __version__, check, error, ffi, lib, text
from ._lab import (FORM, FORMS, LENGTHS, OVERLAP_NAMES, OVERLAPS, PROGRESS, TASK, TASKS, TRAIN, create, fill, find,
                   union)
from ._model import Model, as_array
from ._signature import Keyword, parameters, signed
from ._training import Training, put_back, read_file
from .tasks import Task

# ---- arguments ------------------------------------------------------------------------------------

def _schedule(value, name):
    """[(step, value)] of a schedule."""
    if value is None:
        return []
    pairs = value.items() if hasattr(value, "items") else value
    try:
        pairs = [(operator.index(step), float(number)) for step, number in pairs]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be such as {{0: 1.0, 1000: 0.5}} (from this step on: value), not {value!r}") \
            from None
    if not pairs:
        raise ArgumentError(f"{name} is empty; it must be such as {{0: 1.0, 1000: 0.5}}")
    if not all(0 <= step < 1 << 53 for step, _ in pairs):
        raise ArgumentError(f"{name}: steps must be from 0 to 2^53 - 1, not {[step for step, _ in pairs]}")
    return pairs


def _pointers(pairs):
    """A fin_schedule."""
    return len(pairs), ffi.new("int64_t[]", [step for step, _ in pairs]), ffi.new("double[]", [v for _, v in pairs])


def _starting_overlaps(start, runs):
    """(count, fin_overlaps[]) from {name: number or array (runs,)}."""
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
    start = overlaps or start
    if start is not None:
        given.setdefault("init", "overlaps" if hasattr(start, "keys") else "vectors")
    return _Runs(Model(task, form, given, lengths, TRAIN), start, lam_schedule, alpha_schedule).train(progress)


class _Runs:
    """The runs at step 0."""

    def __init__(self, model, start, lam_schedule, alpha_schedule):
        if model.arrays:
            raise TypeError(f"{model.arrays[0][1]} is an array; a training has one {model.arrays[0][1]} (make several)")
        self.model = model
        self.structs = form_settings, settings = model.structs()
        self.task = _task(model, settings)
        self.schedules = _schedule(lam_schedule, "lam_schedule"), _schedule(alpha_schedule, "alpha_schedule")
        lam, alpha = keep = [_pointers(pairs) for pairs in self.schedules]
        first, self.overlaps = _start(start, settings, self.task)
        self.pointer = _create(self.task, model.form.pointer, form_settings, settings,
                               {**first, "lam": lam, "alpha": alpha})
        del keep  # copied

    def train(self, progress):
        """Goes on to the end. What stops it carries what was done so far."""
        try:
            with Watch(progress) as watch:
                watch.check(lib.fin_train_run(self.pointer, self.structs[1].steps, watch.pointer, watch.err))
        except BaseException as problem:
            problem.training = self.result()
            raise
        return self.result()

    def result(self):
        model, used = self.model, lib.fin_train_get_settings(self.pointer)
        settings = model.settings(self.task, [self.structs[0], used])
        seed = model.own.seed if model.own else used.seed
        k, v = lib.fin_task_k_star(self.task), lib.fin_task_v_star(self.task)
        directions = tuple(_arrays.copy(one, (settings["d"],)) for one in (k, v)) if k != ffi.NULL else None
        return Training(self.pointer, settings, self._lines(used), directions, seed)

    def _lines(self, used):
        """The settings as text, as `finetti train --out` writes them."""
        model, groups = self.model, [(self.model.form.table, self.structs[0]),
                                     (self.model.kind.table, lib.fin_task_get_settings(self.task))]
        if used.init == lib.FIN_INIT_OVERLAPS:
            groups.append((OVERLAPS, self.overlaps))
        lines = [f"finetti {__version__}", f"task {model.kind.name}", f"form {model.form.name}"]
        room = ffi.new("char[64]")
        for table, struct in [*groups, (TRAIN, used)]:
            lines += [f"{field.name} {text(lib.fin_settings_text(field.pointer, struct, room, 64))}"
                      for field in table.fields.values()]
        law = model.own._lengths if model.own else model.lengths
        words = zip(("lengths", "lam_schedule", "alpha_schedule"), (list(zip(*law)) if law else [], *self.schedules))
        lines += [f"{name} " + ",".join(f"{a}:{_short(b)}" for a, b in pairs) for name, pairs in words if pairs]
        return "\n".join(lines) + "\n"


def _short(number):
    return repr(number)[:-2] if repr(number).endswith(".0") else repr(number)


def _create(task, form, form_settings, settings, start):
    out, err = ffi.new("fin_train **"), error()
    check(lib.fin_train_create(out, task, form, form_settings, settings, ffi.new("fin_train_start *", start), err), err)
    return ffi.gc(out[0], lib.fin_train_destroy)


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


# ---- going on -------------------------------------------------------------------------------------

def _go_on(source, task, form, given, progress):
    steps = given.pop("steps", None)
    steps = None if steps is None else TRAIN.make({"steps": steps}).steps
    odd = [name for name, value in given.items() if value is not None] + ["task"] * (task != "slr") \
        + ["form"] * (form != "erf")
    if odd:
        raise TypeError(f"{odd[0]!r} cannot be changed: resume takes the settings of what it goes on from; only steps "
                        "and progress go with it")
    if isinstance(source, Training):
        lines, arrays, directions, seed = source._lines, source._arrays, source._directions, source._seed
    else:
        arrays = read_file(source)
        if "settings" not in arrays:
            raise FormatError(f"{_label(source)} has no array settings; resume takes a file that Training.save or "
                              "'finetti train --out' wrote")
        lines, seed = arrays["settings"].tobytes().decode("utf-8", "replace"), None
        directions = tuple(arrays[name] for name in ("k_star", "v_star") if name in arrays) or None
    values = dict(line.partition(" ")[::2] for line in lines.splitlines())
    made = values.get("steps", "")
    if steps is not None and made.isdecimal() and steps < int(made):
        raise ArgumentError(f"steps = {steps} is less than the {made} steps that there are; give more of them")
    try:
        runs = _again(values, steps, directions, seed, len(arrays.get("at", ())))
        put_back(runs.pointer, arrays)
    except (TypeError, ValueError, KeyError) as problem:  # not of the arguments, but of the file
        what = f"the settings have no {problem}" if isinstance(problem, KeyError) else problem
        raise FormatError(f"{_label(source)}: {what}") from None
    return runs.train(progress)


def _label(source):
    return repr(source if isinstance(source, Training) else os.fsdecode(source))


def _again(values, steps, directions, seed, count):
    """The runs that the settings of a file describe, at step 0."""
    if values["finetti"] != __version__:
        warnings.warn(f"the file was written by version {values['finetti']}, this is {__version__}; numbers may differ",
                      stacklevel=5)
    values.pop("finetti")
    kind, form = find(TASKS, values.pop("task"), "task"), values.pop("form")
    words = {name: [pair.split(":") for pair in values.pop(name).split(",")] if name in values else None
             for name in ("lengths", "lam_schedule", "alpha_schedule")}
    words = {name: pairs and [(int(a), float(b)) for a, b in pairs] for name, pairs in words.items()}
    settings = {name: values.pop(name) for name in kind.table.fields}
    if words["lengths"]:
        del settings["L"], settings["L_min"]
    if int(values["runs"]) != count:
        raise FormatError(f"array at has {count} numbers, but the settings have runs {values['runs']}")
    values["steps"] = max(int(values["steps"]), steps or 0)
    overlaps = {name: float(values.pop(name)) for name in OVERLAP_NAMES if name in values}
    task = Task(kind.name, settings, words["lengths"], int(values["seed"]) if seed is None else seed,
                *(directions or (None, None)))
    model = Model(task, form, values, None, TRAIN)
    start = {"overlaps": overlaps, "vectors": directions}.get(values["init"])  # left behind: any will do
    return _Runs(model, start, words["lam_schedule"], words["alpha_schedule"])
