"""finetti.run: every row of the library's table of commands, with keywords, and what a run leaves.

Names, ranges and sentences are the library's own: a setting travels as the text that one writes on the command line, so
that the tool, a study and Python understand, refuse and compute the same.
"""

import functools
import inspect
import itertools
import json
import re
from collections.abc import Mapping

import numpy as np

from . import _arrays
from ._core import ArgumentError, FinettiError, Table, Watch, check, error, ffi, lib, text
from ._html import table
from ._lab import PROGRESS, common, frame
from ._signature import Keyword, signed
from ._texts import encoded

HOWS = tuple(text(lib.fin_how_name(i)) for i in range(lib.FIN_HOW_COUNT))
DTYPES = {lib.FIN_F32: "f4", lib.FIN_F64: "f8", lib.FIN_I32: "i4", lib.FIN_I64: "i8", lib.FIN_U8: "u1"}
_EXACT = 1 << 53  # whole numbers up to here are doubles


# ---- the table ----------------------------------------------------------------------------------

class Output:
    """A number or an array that a command leaves: name, meaning, unit (None: a plain number), is_series."""

    __slots__ = ("name", "meaning", "unit", "is_series")

    def __init__(self, row):
        self.name, self.meaning, self.unit = text(row.name), text(row.meaning), text(row.unit)
        self.is_series = self.meaning.startswith("(")

    def __repr__(self):
        return f"{self.name}: {self.meaning}{f' [{self.unit}]' if self.unit else ''}"


def _rows(row):
    while row.name:
        yield row[0]
        row += 1


def _until_null(get):
    """The texts that get(0), get(1), ... point to, up to NULL."""
    return list(itertools.takewhile(lambda one: one is not None, (text(get(i)) for i in itertools.count())))


class Command:
    """A row of the table of commands; its repr is its help.

    Attributes
    ----------
    name, summary : str
    settings : dict
        The keywords that finetti.run takes for it, by name: each with default, type, range and meaning.
    outputs : dict
        What it leaves, by name: each with meaning, unit and is_series.
    """

    def __init__(self, pointer):
        self.pointer = pointer
        self.name, self.summary = text(pointer.name), text(pointer.summary)
        self.outputs = {output.name: output for output in map(Output, _rows(pointer.outputs))}
        self.words = [text(word.name) for word in _rows(pointer.words)]
        self._settings = None

    def _room(self):
        """Room for the settings."""
        return ffi.new("int64_t[]", self.pointer.size // 8 + 1)

    @property
    def settings(self):
        if self._settings is None:
            self._settings = self._collect()
        return self._settings

    def _collect(self):
        """Words, and the rows of all tables that words can choose."""
        rows = {text(word.name): word for word in _rows(self.pointer.words)}
        choices = {name: self._choices(word) for name, word in rows.items()}
        found, count = {}, 0
        for chosen in itertools.product(*(choices[name] or [text(word.fallback)] for name, word in rows.items())):
            count += 1
            for table in self._tables(dict(zip(rows, chosen))):
                for name, field in table.fields.items():
                    entry = found.setdefault(name, [0, {}])
                    entry[0] += 1
                    entry[1].setdefault(table.name, (table, field))
        made = {name: _of_word(word, choices[name]) for name, word in rows.items()}
        for name, (times, fields) in found.items():
            made.setdefault(name, _or_several(common(list(fields.values()), False, times >= count)))
        return made

    def _choices(self, word):
        """What a word can be, as far as the tables say it; of a list of names, all at once."""
        if word.kind == lib.FIN_WORD_NAMES:
            return [",".join(_until_null(lambda i: word.names[i]))]
        return _until_null(lambda i: lib.fin_word_choice(ffi.addressof(word), i))

    def _tables(self, words):
        """The settings tables that these words choose; none if one of them is wrong."""
        groups, count, (pairs, kept) = ffi.new("fin_group[]", lib.FIN_GROUPS), ffi.new("int *"), pairs_of(words)
        if lib.fin_command_tables(self.pointer, self._room(), pairs, len(words), groups, count, ffi.NULL, ffi.NULL):
            return []
        return [_table(groups[i].table) for i in range(count[0])]

    def __repr__(self):
        lines = [f"{self.name}: {self.summary}", "", "Settings", "--------"]
        lines += [line for keyword in self.settings.values() for line in keyword.lines()]
        lines += ["", "Outputs", "-------", *map(repr, self.outputs.values())]
        return "\n".join(lines)


_known = {}


def _table(pointer):
    address = int(ffi.cast("intptr_t", pointer))
    if address not in _known:
        _known[address] = Table(pointer, "char")
    return _known[address]


def _of_word(word, choices):
    kind = f"Literal[{', '.join(map(repr, choices))}]" if choices and word.kind == lib.FIN_WORD_PLAIN else "str"
    pairs = " | Mapping[int, float]" if word.kind == lib.FIN_WORD_PAIRS else ""
    return Keyword(text(word.name), text(word.fallback), f"{kind}{pairs} | Sequence[{kind}{pairs}]", text(word.meaning))


def _or_several(keyword):
    """A setting of a command may be a list too, which makes it a sweep."""
    kinds = " | ".join(one for one in keyword.type.split(" | ") if one != "None")
    several = f"{kinds} | Sequence[{kinds}]" + ("" if keyword.field.choices else " | NDArray[Any]")
    return Keyword(keyword.name, keyword.default, several + " | None" * (keyword.default is None), keyword.meaning,
                   keyword.range, keyword.field)


class Commands(dict):
    """Command by name; printed, it is a list with summaries."""

    def __repr__(self):
        width = max(map(len, self))
        return "\n".join(f"{name:{width}}  {command.summary}" for name, command in self.items())


COMMANDS = Commands((command.name, command) for command in
                    (Command(lib.fin_command_at(i)) for i in range(lib.fin_command_count())))


def commands():
    """The commands that finetti.run takes, by name, with summary, settings and outputs; printed, a list of them.

    Examples
    --------
    >>> import finetti
    >>> finetti.commands()["urn"].summary
    'distance of a finite exchangeable sequence from independent draws'
    >>> finetti.commands()["rate"].settings["L"].meaning
    'tokens in a context'
    """
    return Commands(COMMANDS)


def find(name):
    """The Command of this name, or the library's way of saying that there is none."""
    command = COMMANDS.get(name) if isinstance(name, str) else None
    if command is None:
        if not isinstance(name, str):
            raise TypeError(f"a command is a text such as 'risk', not {name!r}")
        names = [ffi.new("char[]", one.encode()) for one in COMMANDS]
        near = text(lib.fin_nearest_name(encoded(name, "command"), ffi.new("char *[]", names), len(names)))
        raise ArgumentError(f"there is no command {name!r}" + (f"; did you mean {near!r}?" if near else
                                                               "; finetti.commands() lists them"))
    return command


# ---- settings as texts --------------------------------------------------------------------------

_number = {float: repr, int: str, str: str}


def word(value, name):
    """A setting as one writes it on the command line; None if it is an array."""
    kind = _number.get(type(value))
    if kind is not None:
        return kind(value)
    if isinstance(value, Mapping):  # {5: 0.2, 10: 0.8}
        return ",".join(f"{word(key, name)}:{word(part, name)}" for key, part in value.items())
    if isinstance(value, (bool, str)):
        return str(int(value)) if isinstance(value, bool) else str(value)
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        return word(value.item(), name)
    if isinstance(value, (list, tuple, range, np.ndarray)) or hasattr(value, "__array__"):
        return None
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if hasattr(value, "__float__") and not hasattr(value, "__len__"):
        return repr(float(value))
    raise TypeError(f"{name} must be a number, a text, or a list or an array of these, not {value!r} "
                    f"({type(value).__name__})")


def as_array(value, name):
    """A setting as an array; of no axes for a number."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it ({name}.filled(value)) or leave out what is masked")
    if isinstance(value, (list, tuple)) and any(isinstance(one, (str, Mapping)) for one in value):
        return np.array([word(one, name) for one in value], dtype=object)
    try:
        return np.asarray(value)
    except ValueError as problem:
        raise ValueError(f"{name} is no array of numbers: {problem}") from None


def split(given):
    """Keywords as ({name: text}, {name: array}); what is None is left out."""
    words, arrays = {}, {}
    for name, value in given.items():
        if value is not None:
            plain = word(value, name)
            if plain is None:
                arrays[name] = as_array(value, name)
            else:
                words[name] = plain
    return words, arrays


@functools.lru_cache(512)
def _chars(value, name):
    """A text for C, which must not be changed. Names and words come again and again."""
    return ffi.new("char[]", encoded(value, name))


def pairs_of(words):
    """(fin_pair[], what keeps its texts alive)."""
    kept = [(_chars(name, "a name"), _chars(value, name), ffi.NULL) for name, value in words.items()]
    return ffi.new("fin_pair[]", kept), kept


def settings_of(json_text):
    """The settings in the canonical JSON of a run, which writes infinite numbers as texts."""
    special = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
    settings = json.loads(json_text or "{}")
    return {name: special.get(value, value) if isinstance(value, str) else value
            for name, value in settings.get("settings", settings).items()}


def applied(command, words):
    """The struct of settings, if nothing is wrong with them."""
    values, err, (pairs, kept) = command._room(), error(), pairs_of(words)
    check(lib.fin_command_apply(command.pointer, values, pairs, len(words), ffi.NULL, err), err)
    return values


def canonical(command, words, settled=False):
    """Every setting that a run has, from its canonical JSON. settled: 'auto' worked out where that can be done."""
    values, err = applied(command, words), error()
    if settled:
        check(lib.fin_command_settle(command.pointer, values, err), err)
    buffer = ffi.new("char[]", lib.FIN_SETTINGS_TEXT)
    check(lib.fin_command_text(command.pointer, values, buffer, lib.FIN_SETTINGS_TEXT, err), err)
    fields = command.settings
    return {name: float(value) if type(value) is int and fields[name].field.kind is float else value
            for name, value in settings_of(ffi.string(buffer).decode("utf-8", "replace")).items()}


def at_first(words, varying):
    """The texts of the first point of a sweep."""
    return {**words, **{name: word(array.flat[0], name) for name, array in varying.items() if array.size}}


def _formulas(settings, words):
    """What was given as a formula, by name: settings are numbers at the first point."""
    found = {}
    for name, given in words.items():
        name = name.replace("-", "_")
        if type(settings.get(name)) in (int, float):
            try:
                float(given)
            except ValueError:
                found[name] = given
    return found


def of_sweep(settings, words, varying):
    """The settings of the first point as those of all: what varies as arrays, formulas as they were given."""
    return {**settings, **_formulas(settings, words), **varying}


def formula_values(name, words, varying):
    """What the formulas of a sweep come to at its points, by name; the library works them out."""
    if not varying or not next(iter(varying.values())).size:
        return {}
    row = COMMANDS[name]
    formulas = _formulas(canonical(row, at_first(words, varying)), words)
    used = set(re.findall(r"\w+", " ".join(formulas.values())))
    flat = {one: array.ravel() for one, array in varying.items()}
    values, known = {one: [] for one in formulas}, {}
    for i in range(next(iter(flat.values())).size if formulas else 0):
        point = tuple(array[i] for one, array in flat.items() if one in used)
        if point not in known:
            known[point] = canonical(row, {**words, **{one: word(array[i], one) for one, array in flat.items()}})
        for one in formulas:
            values[one].append(known[point][one])
    return {one: np.array(found) for one, found in values.items()}


# ---- results ------------------------------------------------------------------------------------

class Result(Mapping):
    """What a run leaves. result["risk"] and result.risk are a number's value; where settings were lists, an array.

    Attributes
    ----------
    command : str
    settings : dict
        Every setting that was used; lists as arrays. A formula with lists is the text that was given.
    errors : dict
        By name: 0 for a closed form; for a quadrature how well it stands; for a simulation the standard error.
    how : dict
        By name, how the number came about: 'closed form', 'quadrature', 'simulation', ... (an array if it differs
        between points).
    samples : dict
        By name: of a simulation or of a share; 0 where it does not apply.
    series : dict
        Arrays by name; they are attributes too. Of single runs only: a sweep leaves numbers.
    notes : list of str
        Remarks, such as why a number is not there.
    shape : tuple
        Of the arrays; () for a single run.
    """

    def __init__(self, command, settings, shape, varying, numbers, series, notes, formulas=dict):
        self.command, self.shape, self._settings, self._varying, self._formulas = command, shape, settings, varying, formulas
        order = {name: i for i, name in enumerate(COMMANDS[command].outputs)}
        numbers = sorted(numbers, key=lambda number: order.get(number[0], len(order)))
        self._values = {name: value for name, value, *_ in numbers}
        self.errors = {name: error for name, _, error, *_ in numbers}
        self.how = {name: how for name, _, _, how, _ in numbers}
        self.samples = {name: samples for name, _, _, _, samples in numbers}
        self.series = series
        self.notes = notes

    @property
    def settings(self):
        settings = self._settings  # once: another thread may replace it
        if callable(settings):
            settings = self._settings = settings()
        return settings

    def __getitem__(self, name):
        if name in self._values:
            return self._values[name]
        raise KeyError(f"{self.command} left no number {name!r}; there are {', '.join(self._values)}")

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __getattr__(self, name):
        for part in ("_values", "series"):
            found = self.__dict__.get(part, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{self.__dict__.get('command', 'a result')} left no {name!r}; there are "
                             f"{', '.join([*self.__dict__.get('_values', ()), *self.__dict__.get('series', ())])}")

    def __dir__(self):
        return [*super().__dir__(), *self._values, *self.series]

    def to_frame(self):
        """A pandas DataFrame, one row per run: the settings that vary, then numbers, with NAME_error where there is one.

        A setting that is a formula varies too: its column has what it comes to.
        """
        columns = {**self._varying, **self._formulas()}
        for name, value in self._values.items():
            columns[name] = value
            if np.any(self.errors[name]):
                columns[name + "_error"] = self.errors[name]
        return frame({name: np.reshape(value, -1) for name, value in columns.items()})

    def __repr__(self):
        width = max((len(name) for name in self._values), default=0)
        lines = [f"<{self.command}{f' of shape {self.shape}' if self.shape else ''}>"]
        for name, value in self._values.items():
            shown = _range(value) if self.shape else f"{value:.6g}" + (
                f" +- {self.errors[name]:.2g}" if self.errors[name] else "")
            how = self.how[name]
            how = how if isinstance(how, str) else " or ".join(np.unique(how))
            lines.append(f"{name:{width}}  {shown}  ({how})")
        lines += [f"{name}: array {array.shape}" for name, array in self.series.items()]
        return "\n".join(lines + [f"note: {note}" for note in self.notes])

    def summary(self):
        """A text: the settings that are not the usual ones, then every number with its error and how it came about."""
        usual = COMMANDS[self.command].settings
        given = [f"{name} = {value!r}" for name, value in self.settings.items()
                 if name not in self._varying and not (name in usual and _same(value, usual[name].default))]
        varying = [f"{name} = {_range(np.asarray(values, dtype=float))}" for name, values in self._varying.items()
                   if np.asarray(values).dtype.kind in "iuf"]
        return "\n".join([repr(self), *(["settings: " + ", ".join(given + varying)] if given + varying else [])])

    def _repr_html_(self):
        rows = []
        for name, value in self._values.items():
            how, error = self.how[name], self.errors[name]
            rows.append([name, _range(value) if self.shape else float(value),
                         "" if self.shape or not error else f"{error:.2g}",
                         how if isinstance(how, str) else " or ".join(np.unique(how))])
        rows += [[name, f"array {array.shape}", "", ""] for name, array in self.series.items()]
        return table(self.command + (f" of shape {self.shape}" if self.shape else ""),
                     ("number", "value", "error", "obtained by"), rows, self.notes)

    def __getstate__(self):
        return {**self.__dict__, "_settings": self.settings}


def _same(value, usual):
    return isinstance(value, (bool, int, float, str)) and value == usual


def _range(values):
    there = values[~np.isnan(values)]
    if not there.size:
        return "nan" if values.size else "empty"
    least, most = f"{there.min():.6g}", f"{there.max():.6g}"
    return least if least == most else f"{least} to {most}"


def once(command, words, progress=None):
    """(numbers, series, notes) of a single run."""
    out, (pairs, kept) = ffi.new("fin_result **"), pairs_of(words)
    with Watch(progress) as watch:
        watch.check(lib.fin_command_run(command.pointer, pairs, len(words), watch.pointer, out, watch.err))
    return left_in(out)


def left_in(out):
    """(numbers, series, notes) of the fin_result that a call has left in out, which goes."""
    result, get, string, notes = out[0], lib.fin_result_get_scalar, ffi.string, []
    try:
        numbers = [(string(s.name).decode(), s.value, s.error, HOWS[s.how], s.samples) for s in [
            get(result, i) for i in range(lib.fin_result_scalar_count(result))]]
        series = dict([array_of(lib.fin_result_get_series(result, i))
                       for i in range(lib.fin_result_series_count(result))])
        while note := lib.fin_result_note(result, len(notes)):
            notes.append(text(note))
    finally:
        lib.fin_result_destroy(result)
    return numbers, series, notes


def array_of(series):
    """(name, array) of a fin_series."""
    return text(series.name), _arrays.copy(series.data, tuple(series.shape[i] for i in range(series.ndim)),
                                           DTYPES[series.dtype])


def broadcast(arrays):
    """(shape, {name: array of that shape})."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values())), dict(
            zip(arrays, np.broadcast_arrays(*arrays.values())))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"the shapes of the settings do not go together: {shapes}") from None


def _column(name, array, column):
    """Fills a fin_column; returns what keeps it alive."""
    kept = [ffi.new("char[]", encoded(name, "a name"))]
    column.name = kept[0]
    flat = array.ravel()
    if flat.dtype.kind not in "iufbUO":
        raise TypeError(f"{name} is an array of {array.dtype}; it must be one of numbers or texts")
    if flat.dtype.kind in "iufb" and not (flat.dtype.kind in "iu" and np.any(np.abs(flat) > _EXACT)):
        numbers = np.ascontiguousarray(flat, dtype=np.float64)
        column.numbers = _arrays.doubles(numbers)
        return [*kept, numbers]
    words = []
    for value in flat.tolist():
        one = word(value, name)
        if one is None:
            raise TypeError(f"{name} is an array of {array.dtype}; it must be one of numbers or texts")
        words.append(ffi.new("char[]", encoded(one, name)))
    kept += [words, ffi.new("char *[]", words or [ffi.NULL])]
    column.texts = kept[-1]
    return kept


def _viewer(owner, n, shape):
    """A function that makes arrays on memory of the library, which `owner` frees when the last of them goes."""
    made = {}  # columns share what is 0 everywhere

    def view(pointer, dtype=np.float64, size=8):
        if n and pointer not in made:
            memory = ffi.buffer(ffi.gc(pointer, lambda _, keep=owner: None), n * size)
            made[pointer] = np.frombuffer(memory, dtype).reshape(shape)
        return made[pointer] if n else np.empty(shape, dtype)

    return view


def sweep(command, words, arrays, progress=None):
    """(shape, varying, [(name, value, error, how, samples)]) of a run at every point."""
    shape, varying = broadcast(arrays)
    out, bad, (pairs, kept) = ffi.new("fin_sweep **"), ffi.new("int64_t *"), pairs_of(words)
    columns, n = ffi.new("fin_column[]", len(arrays)), int(np.prod(shape, dtype=np.int64))
    kept += [_column(name, array, columns[i]) for i, (name, array) in enumerate(varying.items())]
    points = ffi.new("fin_sweep_points *", (n, columns, len(arrays)))
    with Watch(progress) as watch:
        status = lib.fin_command_sweep(command.pointer, pairs, len(words), points, watch.pointer, out, bad, watch.err)
        try:
            watch.check(status)
        except FinettiError as problem:
            if bad[0] >= 0:
                problem.args = (f"point {bad[0]}: {re.sub(r'^point 0: ', '', str(problem))}",)
            raise
    owner, numbers = ffi.gc(out[0], lib.fin_sweep_destroy), []
    view, none = _viewer(owner, n, shape), np.broadcast_to(np.int64(0), shape)
    for i in range(lib.fin_sweep_count(owner)):
        column = lib.fin_sweep_get(owner, i)
        how = np.array(HOWS)[view(column.hows, np.uint8, 1)] if column.hows else HOWS[column.how]
        samples = view(column.samples, np.int64) if column.samples else none
        numbers.append((text(column.name), view(column.value), view(column.error), how, samples))
    return shape, varying, numbers


def run(command, /, *, progress=None, **settings):
    """Runs a command of the library's table: `finetti.run("rate", L=256)` is `finetti lab rate --L 256`.

    Parameters
    ----------
    command : str
        {commands}
    progress : bool or function
        {progress}.
    **settings
        Of the command, as on the command line; '-' and '_' are the same, None leaves one at its default.
        finetti.commands()[command] shows them all, with defaults and ranges. Lists and arrays are broadcast against
        each other, and the command runs at every point.

    Returns
    -------
    Result
        Numbers as attributes and by name, with errors, how, samples, series, notes, settings; of the broadcast shape
        where settings are lists.

    Examples
    --------
    >>> import finetti
    >>> result = finetti.run("urn", N=50, red=0.4, L=3)
    >>> list(result), result.how["distance"]
    (['distance', 'bound'], 'closed form')
    >>> curve = finetti.run("risk", lam=[0.05, 0.1, 0.2], show="risk,linear")
    >>> curve.risk.round(4).tolist()
    [0.0793, 0.1135, 0.4248]
    """
    row = find(command)
    words, arrays = split(settings)
    if arrays:
        shape, varying, numbers = sweep(row, words, arrays, progress)
        return Result(row.name, lambda: of_sweep(canonical(row, at_first(words, varying)), words, varying), shape, varying, numbers, {}, [],
                      functools.partial(formula_values, row.name, words, varying))
    numbers, series, notes = once(row, words, progress)
    return Result(row.name, lambda: canonical(row, words), (), {}, numbers, series, notes)


@signed([*COMMANDS["curve"].settings.values(), PROGRESS])
def learning_curve(alpha=None, *, progress=None, **given):
    """What can be learnt of the task spiked from n = alpha d bags by theory: run("curve", alpha=alpha, ...).

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Result
        With numbers q_k, q_v, optimal, known, linear, and erm with a form; arrays where alpha is one. docs/learning.md
        says what they are.

    Examples
    --------
    >>> import finetti
    >>> curve = finetti.learning_curve([1, 2, 4], snr=5, L=3, eps=0.5)
    >>> curve.optimal.round(4).tolist()
    [0.8225, 0.5992, 0.4825]
    """
    return run("curve", alpha=alpha, progress=progress, **given)


def _overloads():
    """For the type stubs: a signature for each command."""
    for name, command in COMMANDS.items():
        first = Keyword("command", inspect.Parameter.empty, f"Literal[{name!r}]", "", kind=Keyword.POSITIONAL_ONLY)
        yield inspect.Signature([first, *command.settings.values(), PROGRESS])


run.overloads = _overloads
run.__doc__ = run.__doc__.replace("{commands}", "\n        ".join(repr(COMMANDS).splitlines())).replace(
    "{progress}", PROGRESS.meaning)
