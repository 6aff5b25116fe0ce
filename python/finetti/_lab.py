"""What the functions of the laboratory share: tasks, forms and families by name, their keywords, results."""

import difflib
import operator

from ._core import ArgumentError, Table, check, error, ffi, lib, missing, text
from ._signature import Keyword, of_field, parameters, signed


class Kind:
    """A task or a form that the library has: a row of its table of tasks or forms."""

    __slots__ = ("name", "pointer", "table", "summary")

    def __init__(self, pointer, name, table, ctype, summary):
        self.name = text(name(pointer))
        self.pointer = pointer
        self.table = Table(table(pointer), ctype)
        self.summary = text(summary(pointer))


def _kinds(count, at, *parts):
    kinds = [Kind(at(i), *parts) for i in range(count())]
    return {kind.name: kind for kind in kinds}


TASKS = _kinds(lib.fin_task_count, lib.fin_task_at, lib.fin_task_kind_name, lib.fin_task_kind_table,
               "fin_task_settings", lib.fin_task_kind_summary)
FORMS = _kinds(lib.fin_form_count, lib.fin_form_at, lib.fin_form_name, lib.fin_form_table,
               "fin_form_settings", lib.fin_form_summary)
FAMILIES = _kinds(lib.fin_family_count, lib.fin_family_at, lib.fin_family_name, lib.fin_family_table,
                  "fin_latent_settings", lib.fin_family_summary)
OVERLAPS = Table(ffi.addressof(lib, "fin_overlaps_table"), "fin_overlaps")
RISK = Table(ffi.addressof(lib, "fin_risk_table"), "fin_risk_settings")
TRAIN = Table(ffi.addressof(lib, "fin_train_table"), "fin_train_settings")
OVERLAP_NAMES = tuple(OVERLAPS.fields)


def find(kinds, name, what):
    """The Kind called `name`, or an error that names the nearest one."""
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        near = difflib.get_close_matches(name, kinds, 1) if isinstance(name, str) else []
        hint = f"; did you mean {near[0]!r}? There are" if near else "; there are"
        raise ArgumentError(f"there is no {what} {name!r}{hint} {', '.join(kinds)}")
    return kind


# ---- keywords ---------------------------------------------------------------------------------

def _one_of(kinds):
    return f"Literal[{', '.join(map(repr, kinds))}]"


TASK = Keyword("task", "slr", f"{_one_of(TASKS)} | Task",
               "generative model: a name, or an object such as finetti.tasks.slr(d=80)",
               kind=Keyword.POSITIONAL_OR_KEYWORD)
FORM = Keyword("form", "erf", _one_of(FORMS), "attention form", kind=Keyword.POSITIONAL_OR_KEYWORD)
LENGTHS = Keyword("lengths", None, "Mapping[int, float] | Sequence[tuple[int, float]] | None",
                  "law of the sequence length, such as {5: 0.2, 10: 0.8}, instead of L and L_min")
PROGRESS = Keyword("progress", None, "bool | Callable[[str, float, float], object] | None",
                   "True: a bar on a terminal, if tqdm is there; or a function progress(what, done, total), which may "
                   "return True to cancel")


def union(kinds, arrays=False, without=()):
    """Keywords of all tasks or of all forms; a setting whose default depends on which one has the default None."""
    made = {}
    for kind in kinds.values():
        for name, field in kind.table.fields.items():
            if name not in without:
                made.setdefault(name, []).append((kind, field))
    return [common(fields, arrays, len(fields) == len(kinds)) for fields in made.values()]


def common(fields, arrays, everywhere):
    """The Keyword of a setting that several kinds (or tables) have: [(kind, field)]."""
    keyword = of_field(fields[0][1], arrays=arrays)
    defaults = {field.default for _, field in fields}
    if len(defaults) > 1:
        auto = "" if "auto" in keyword.type or "auto" not in defaults else " | Literal['auto']"
        usual = ", ".join(f"{kind.name} {field.default!r}" for kind, field in fields)
        return Keyword(keyword.name, None, f"{keyword.type}{auto} | None", f"{keyword.meaning}. None: {usual}",
                       keyword.range, keyword.field)
    if not everywhere:
        keyword.meaning = f"{', '.join(kind.name for kind, _ in fields)}: {keyword.meaning}"
    return keyword


def makers(kinds, what, cls, own):
    """{name: function} that makes an object of `cls` from the settings of a kind and the keywords `own`."""
    def maker(kind):
        def make(**given):
            others = {keyword.name: given.pop(keyword.name, keyword.default) for keyword in own}
            return cls(kind.name, {name: value for name, value in given.items() if value is not None}, **others)

        make.__name__ = make.__qualname__ = kind.name
        make.__module__ = cls.__module__
        make.__doc__ = f"""The {what} {kind.name}: {kind.summary}.

    Parameters
    ----------
    {{parameters}}

    Returns
    -------
    {cls.__name__}

    Examples
    --------
    >>> import {cls.__module__}
    >>> {cls.__module__}.{kind.name}(seed=3).name
    {kind.name!r}
    """
        return signed([*parameters(kind.table), *own])(make)

    return {name: maker(kind) for name, kind in kinds.items()}


# ---- structs ----------------------------------------------------------------------------------

_defaults = {}


def fill(table, values):
    """What Table.make does, in a fifth of the time: plain numbers go straight into a copy of the defaults."""
    default = _defaults.get(table)
    if default is None:
        default = _defaults[table] = table.make({})
    struct = ffi.new(table.ctype, default[0])
    if not values:
        return struct
    fields = table.fields
    for name, value in values.items():
        kind = fields[name].kind
        if type(value) is kind and kind is float or type(value) is int and kind is not str and -2**53 < value < 2**53:
            setattr(struct, name, value)
        else:
            table.set(struct, name, value)
    err = error()
    check(lib.fin_settings_validate(table.pointer, struct, err), err)
    return struct


# ---- tasks ------------------------------------------------------------------------------------

def law(lengths, settings):
    """(lengths, weights) from the keyword `lengths`; None if there is none."""
    if lengths is None:
        return None
    if "L" in settings or "L_min" in settings:
        raise TypeError("lengths takes the place of L and L_min; give one or the other")
    pairs = lengths.items() if hasattr(lengths, "items") else lengths
    try:
        pairs = [(operator.index(L), float(p)) for L, p in pairs]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"lengths must be such as {{5: 0.2, 10: 0.8}} (length: weight), not {lengths!r}") from None
    if any(abs(L) >= 2**62 for L, _ in pairs):
        raise ArgumentError("lengths has a number that is no length; a length is at most 2^31")
    return tuple(zip(*pairs)) or ((), ())


def create(kind, settings, lengths=None, seed=1, flags=0):
    """The C object. lengths: from law()."""
    out, err, law_of_length = ffi.new("fin_task **"), error(), ffi.NULL
    if lengths is not None:
        keep = (ffi.new("int64_t[]", lengths[0]), ffi.new("double[]", lengths[1]))
        law_of_length = ffi.new("fin_lengths *", (len(lengths[0]), *keep))
    check(lib.fin_task_create(out, kind.pointer, fill(kind.table, settings), law_of_length, seed, flags, err), err)
    return ffi.gc(out[0], lib.fin_task_destroy)


# ---- results ----------------------------------------------------------------------------------

def frame(columns):
    """A pandas DataFrame of equally long columns."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"{missing('pandas', 'to_frame()')}. The same numbers are arrays in the attributes") \
            from None
    return pandas.DataFrame(columns)


def _range(name, value):
    """What repr says of an array; nothing where it is 0 or False everywhere."""
    if isinstance(value, str):
        return f"{name} {value}"
    if value.dtype.kind == "U":
        return f"{name} {' or '.join(sorted(set(value.flat)))}"
    if not value.any():
        return None
    if value.dtype.kind == "b":
        return f"{name} at {value.sum()}"
    least, most = f"{value.min():.6g}", f"{value.max():.6g}"
    return f"{name} {least}" if least == most else f"{name} {least} to {most}"


class Answer:
    """Numbers in attributes: floats where all settings were numbers, arrays where some were arrays."""

    _columns = ()  # attributes that are columns of to_frame
    _shown = ()  # those that repr shows, where they say something (0 and False do not)

    def __init__(self, settings, varying, fields, formulas=dict):
        self._settings = settings
        self._varying = varying
        self._formulas = formulas
        self.__dict__.update(fields)

    @property
    def settings(self):
        """dict: every setting that was used, 'auto' worked out where it does not depend on an array."""
        settings = self._settings  # once: another thread may replace it
        if callable(settings):
            settings = self._settings = settings()
        return settings

    @property
    def shape(self):
        """tuple: the shape of the arrays; () for numbers."""
        return getattr(self.__dict__[self._columns[0]], "shape", ())

    def to_frame(self):
        """A pandas DataFrame, one row per point: the settings that vary (formulas by what they come to), then the results."""
        columns = {**self._varying, **self._formulas()}
        for name in self._columns:
            value = self.__dict__[name]
            if isinstance(value, dict):
                columns.update({f"d_{key}": part for key, part in value.items()})
            elif value is not None:
                columns[name] = value
        if not self.shape:
            return frame({name: [value] for name, value in columns.items()})
        size = 1
        for n in self.shape:
            size *= n
        return frame({name: value.reshape(size) if hasattr(value, "reshape") else [value] * size
                      for name, value in columns.items()})

    def __repr__(self):
        kind, values = type(self).__name__, {name: self.__dict__[name] for name in self._shown}
        if not self.shape:
            shown = [f"{name}={value!r}" for i, (name, value) in enumerate(values.items()) if value or not i]
            return f"{kind}({', '.join(shown)})"
        shown = filter(None, (_range(name, value) for name, value in values.items()))
        return f"<{kind} of shape {self.shape}: {', '.join(shown) or 'empty'}>"

    def __getstate__(self):
        return {**self.__dict__, "_settings": self.settings}
