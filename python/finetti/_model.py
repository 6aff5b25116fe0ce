"""The keywords of a call of the laboratory: sorted into tables, some of them arrays, turned into structs.

Where settings are arrays they are broadcast against each other, and a call of the library is made at every point.
"""

import numpy as np

from ._core import CancelledError, Watch, ffi, lib
from ._lab import FORMS, TASKS, create, fill, find, law, split
from .tasks import Task


class Model:
    """Task, form and settings of one call."""

    def __init__(self, task, form, given, lengths, *tables):
        self.own = task if isinstance(task, Task) else None
        self.kind = task._kind if self.own else find(TASKS, task, "task")
        self.form = None if form is None else find(FORMS, form, "form")
        self.tables = [self.kind.table, *([self.form.table] if self.form else []), *tables]
        self.parts = split(given, self.kind, self.form, *tables)
        if self.own and (self.parts[0] or lengths is not None):
            name = next(iter(self.parts[0]), "lengths")
            raise TypeError(f"{name!r} is a setting of the task, and the task is given as an object: make another with "
                            f"finetti.tasks.{task.name}({name}=...)")
        self.lengths = None if lengths is None else law(lengths, self.parts[0])
        arrays = {name: array for name, value in given.items() if type(value) not in _PLAIN
                  and (array := as_array(value, name)).ndim}
        self.arrays = self._take(arrays) if arrays else []

    def _take(self, arrays):
        """[(table, name, array)]; they are no longer among the parts."""
        found = [(i, name, arrays[name]) for i, part in enumerate(self.parts) for name in part if name in arrays]
        for i, name, _ in found:
            del self.parts[i][name]
        return found

    def task(self, values=None):
        """The C task, with these settings or the given ones."""
        if self.own:
            return self.own._plain
        return create(self.kind, self.parts[0] if values is None else values, self.lengths)

    def structs(self):
        """The structs of form and tables."""
        return [fill(table, part) for table, part in zip(self.tables[1:], self.parts[1:])]

    def varies(self):
        """Whether a setting of the task is an array."""
        return any(group == 0 for group, _, _ in self.arrays)

    def broadcast(self):
        """(shape, [(table, name, flat array)]): every point has one number of each."""
        try:
            arrays = np.broadcast_arrays(*[array for _, _, array in self.arrays])
        except ValueError:
            shapes = ", ".join(f"{name} {array.shape}" for _, name, array in self.arrays)
            raise ValueError(f"the shapes of the settings do not go together: {shapes}") from None
        columns = []
        for (group, name, _), array in zip(self.arrays, arrays):
            if array.dtype.kind not in "iufb":
                raise TypeError(f"{name} is an array of {array.dtype}; it must be one of numbers")
            if self.tables[group].fields[name].choices:
                raise TypeError(f"{name} is a name, not a number, and cannot be an array")
            columns.append((group, name, array.ravel()))
        return arrays[0].shape, columns

    def settings(self, task, structs, shape=()):
        """Every setting as a dict; arrays as arrays. task None: its settings vary, and 'auto' with them."""
        table, given = self.kind.table, self.parts[0]
        settings = table.read(lib.fin_task_get_settings(task)) if task else \
            {name: given.get(name, field.default) for name, field in table.fields.items()}
        for table, struct in zip(self.tables[1:], structs):
            settings.update(table.read(struct))
        if task and "auto" in (settings.get("lam"), settings.get("c")):  # the form takes them from the task
            lam, c = ffi.new("double *"), ffi.new("double *")
            lib.fin_task_bayes_parameters(task, lam, c)
            settings.update({name: value for name, value in (("lam", lam[0]), ("c", c[0])) if settings[name] == "auto"})
        settings.update({name: np.broadcast_to(array, shape) for _, name, array in self.arrays})
        return {"task": self.kind.name, **({"form": self.form.name} if self.form else {}), **settings}

    def varying(self, shape):
        """The settings that are arrays."""
        return {name: np.broadcast_to(array, shape) for _, name, array in self.arrays}


_PLAIN = (float, int, str, type(None))


def as_array(value, name):
    """A setting as an array; of no axes for a number."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it ({name}.filled(value)) or leave out what is masked")
    try:
        return np.asarray(value)
    except ValueError as problem:
        raise ValueError(f"{name} is no array of numbers: {problem}") from None


class _Part(Watch):
    """Progress of many calls: the i-th of n."""

    def __init__(self, progress, count):
        super().__init__(progress)
        self.index, self.count = 0, count

    def report(self, what, done, total):
        return super().report(what, self.index + (done / total if total > 0 else 0), self.count)


def each(model, progress, call):
    """call(task, structs, watch) -> tuple, at every point. Returns the tuples, the shape, the settings."""
    shape, columns = model.broadcast()
    structs, rows, varies = model.structs(), [], model.varies()
    task = None if varies else model.task()
    count = int(np.prod(shape, dtype=np.int64))
    with _Part(progress, count) as watch:
        for i in range(count):
            watch.index, values = i, dict(model.parts[0])
            for group, name, array in columns:
                if group:
                    model.tables[group].set(structs[group - 1], name, array[i].item())
                else:
                    values[name] = array[i].item()
            rows.append(call(model.task(values) if varies else task, structs, watch))
            if watch.report("points", 1, 1):
                raise CancelledError("cancelled")
    return rows, shape, model.settings(task, structs, shape)
