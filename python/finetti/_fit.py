"""A model fitted to bags, on the C side: it owns its memory, answers, and can be written down and read again.

Nothing here looks at what people pass; _estimators.py has done that. A Fit never changes once it is made, so that any
number of threads may ask it at once.
"""

import operator
from functools import partial
from math import isnan

import numpy as np

from ._arrays import copy
from ._core import ArgumentError, FormatError, Table, Watch, __version__, check, encoded, error, ffi, lib, text

TABLE = Table(ffi.addressof(lib, "fin_fit_table"), "fin_fit_settings")

_BAGS = ffi.typeof("fin_bags *")
_ERROR = ffi.typeof("fin_error *")
_INT64S = ffi.typeof("int64_t[]")
_DOUBLES = ffi.typeof("double[]")
_CODES = {"f": lib.FIN_F32, "d": lib.FIN_F64}
_DTYPES = {lib.FIN_F32: np.float32, lib.FIN_F64: np.float64, lib.FIN_I32: np.int32, lib.FIN_I64: np.int64,
           lib.FIN_U8: np.uint8}
_NUMBERS = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}


def view(tokens, offsets, labels=None, groups=None):
    """A fin_bags over arrays that the caller keeps alive."""
    n = len(offsets) - 1
    return ffi.new(_BAGS, (n, tokens.shape[-1], 0, n, ffi.from_buffer(_INT64S, offsets), _CODES[tokens.dtype.char],
                           ffi.from_buffer(tokens), ffi.NULL if labels is None else ffi.from_buffer(_DOUBLES, labels),
                           ffi.NULL if groups is None else ffi.from_buffer(_INT64S, groups)))


def level(bags):
    """Which columns are constant within every bag, and not all the same: (d) of bool."""
    out, err = np.zeros(bags.tokens.shape[1], np.uint8), error()
    check(lib.fin_bags_level(view(bags.tokens, bags.offsets), ffi.NULL, ffi.from_buffer("unsigned char[]", out), err), err)
    return out.astype(bool)


def row(model):
    """What the model of this name is: its row in the library's table, with heads, sides, whole, constant, chooses."""
    return lib.fin_fit_model_get(TABLE.make({"model": model}))


def _interruptible(tokens, call):
    """call(progress, err) -> status, checked. Ctrl-C is heard in calls that take long, at the price of microseconds."""
    if tokens.size > 1 << 22:
        with Watch(None) as watch:
            watch.check(call(watch.pointer, watch.err))
        return
    err = ffi.new(_ERROR)
    status = call(ffi.NULL, err)
    if status:
        check(status, err)


# The models of a bag as a whole, by name.
WHOLE = tuple(name for name in TABLE.fields["model"].choices if row(name).whole and not row(name).constant)


class Fit:
    """A fin_fit. classes: 0 for numbers; d: columns of a token.

    used: which columns of what people pass these are (ascending), None: all; width: how many there are in all.
    """

    __slots__ = ("pointer", "owner", "classes", "d", "used", "width", "none_far")

    def __init__(self, pointer, owner=None, used=None, width=None):
        self.pointer = pointer
        self.owner = owner  # what `pointer` belongs to, if it is not its own
        info = ffi.new("fin_fit_info *")
        lib.fin_fit_get_info(pointer, info)
        self.classes, self.d = info.classes, info.d
        self.used, self.width = used, self.d if used is None else width
        self.none_far = bytes(8 * self.d)

    @classmethod
    def create(cls, settings, classes, bags, labels, weights=None, progress=None, groups=None, used=None):
        """Fits to bags with labels (and weights): contiguous arrays of doubles. groups: int64, of bags."""
        settings = TABLE.make(settings)
        tokens = bags.tokens if used is None else np.ascontiguousarray(bags.tokens[:, used])
        struct = view(tokens, bags.offsets, labels, groups)
        out = ffi.new("fin_fit **")
        chosen = ffi.NULL if weights is None else ffi.from_buffer(_DOUBLES, weights)
        with Watch(progress) as watch:
            watch.check(lib.fin_fit_create(out, settings, classes, struct, chosen, ffi.NULL, watch.pointer, watch.err))
        return cls(ffi.gc(out[0], lib.fin_fit_destroy), None, used, bags.tokens.shape[1])

    # ---- answers ----------------------------------------------------------------------------------

    def take(self, tokens):
        """The columns of tokens that the model looks at."""
        return tokens if self.used is None else np.ascontiguousarray(tokens[..., self.used])

    def spread_out(self, values):
        """Values of columns (last axis) for all columns: 0 for those that are not looked at."""
        if self.used is None:
            return values
        out = np.zeros(values.shape[:-1] + (self.width,))
        out[..., self.used] = values
        return out

    def predict(self, tokens, offsets, spread=True, coverage=None):
        """(mean, sd, is any token far outside of what the model was fitted to?) of every bag.

        mean, sd: (n) for numbers, (n, classes) for classes; sd is None unless it is asked for. With coverage (numbers)
        intervals (n, 2) take its place. tokens may have three axes: C sees no difference.
        """
        n = len(offsets) - 1
        shape = (n, self.classes) if self.classes else n
        mean = np.empty(shape)
        sd = np.empty(shape) if spread else None
        struct = view(tokens, offsets)
        far = ffi.new(_INT64S, self.d)
        if coverage is not None:
            sd = np.empty((n, 2))
            answer = partial(lib.fin_fit_interval, self.pointer, struct, coverage, ffi.from_buffer(_DOUBLES, mean),
                             ffi.NULL, ffi.from_buffer(_DOUBLES, sd))
        else:
            answer = partial(lib.fin_fit_predict, self.pointer, struct, ffi.from_buffer(_DOUBLES, mean),
                             ffi.from_buffer(_DOUBLES, sd) if spread else ffi.NULL)
        _interruptible(tokens, lambda progress, err: answer(progress, err) or lib.fin_fit_outside(
            self.pointer, struct, far, ffi.NULL, ffi.NULL, err))
        return mean, sd, ffi.buffer(far)[:] != self.none_far

    def outside(self, tokens, offsets):
        """Of every column: how many tokens are far outside of the training range, and its ends: (count, low, high)."""
        count, low, high, err = np.zeros(self.d, np.int64), np.empty(self.d), np.empty(self.d), error()
        check(lib.fin_fit_outside(self.pointer, view(tokens, offsets), ffi.from_buffer(_INT64S, count),
                                  ffi.from_buffer(_DOUBLES, low), ffi.from_buffer(_DOUBLES, high), err), err)
        return count, low, high

    def locate(self, tokens, offsets, labels=None, own=False):
        """(probability of every token that it is responsible, given the labels if there are any; own, none of fin_locations).

        The latter two are None unless they are asked for, and NaN where the model does not say.
        """
        location = np.empty(len(tokens))
        to = {"prior" if labels is None else "given": ffi.from_buffer(_DOUBLES, location)}
        tokens_own, none = (np.empty(len(tokens)), np.empty(len(offsets) - 1)) if own else (None, None)
        if own:
            to.update(own=ffi.from_buffer(_DOUBLES, tokens_own), none=ffi.from_buffer(_DOUBLES, none))
        struct = view(tokens, offsets, labels)
        to = ffi.new("fin_locations *", to)
        _interruptible(tokens, lambda progress, err: lib.fin_fit_locate(self.pointer, struct, to, progress, err))
        return location, tokens_own, none

    def evidence(self, tokens, offsets, alone=False):
        """(what a bag's prediction loses without each token, what is predicted of it alone or None)."""
        change, only = np.empty(len(tokens)), np.empty(len(tokens)) if alone else None
        to = ffi.new("fin_evidence *", {"change": ffi.from_buffer(_DOUBLES, change),
                                        **({"only": ffi.from_buffer(_DOUBLES, only)} if alone else {})})
        struct = view(tokens, offsets)
        _interruptible(tokens, lambda progress, err: lib.fin_fit_evidence(self.pointer, struct, to, progress, err))
        return change, only

    def curve(self, tokens, offsets, labels, groups=None, progress=None):
        """(bags, score, se) of the learning curve, on the bags that it was fitted to."""
        size = ffi.new("fin_curve_size[]", lib.FIN_CURVE_SIZES)
        with Watch(progress) as watch:
            watch.check(lib.fin_fit_curve(self.pointer, view(tokens, offsets, labels, groups), watch.pointer, size,
                                          watch.err))
        return tuple(np.array([getattr(one, name) for one in size]) for name in ("bags", "score", "se"))

    # ---- what it is -------------------------------------------------------------------------------

    def settings(self):
        """The settings it was fitted with, as a dict."""
        return TABLE.read(lib.fin_fit_get_settings(self.pointer))

    def info(self):
        """What was fitted, as a dict (fin_fit_info), with the model and its parts."""
        info = ffi.new("fin_fit_info *")
        lib.fin_fit_get_info(self.pointer, info)
        out = {"model": self.settings()["model"]}
        out.update((name, getattr(info, name)) for name, _ in ffi.typeof("fin_fit_info").fields)
        for name in ("inner_loss", "base_loss", "locator_loss"):
            out[name] = None if isnan(out[name]) else out[name]
        parts, weight = [], ffi.new("double *")
        for i in range(info.parts):
            part = lib.fin_fit_part(self.pointer, i, weight)
            parts.append({"model": TABLE.read(part)["model"], "basis": self._basis(part), "weight": weight[0]})
        out["parts"] = parts
        out["positive"] = None if info.positive < 0 else info.positive
        out["locates"] = bool(lib.fin_fit_locates(self.pointer))
        out["locator"] = self._title(lib.fin_fit_part(self.pointer, info.locator, ffi.NULL)) if out["locates"] else None
        return out

    def _basis(self, settings):
        """The features of a token, where auto has been worked out."""
        return TABLE.fields["basis"].choices[lib.fin_fit_basis(settings, self.classes)]

    def _title(self, settings):
        """A single model as the tool names it: softmax+rbf, mixture:linear, softmax x2."""
        usual = ffi.new("fin_fit_settings *", settings[0])
        usual.basis = lib.FIN_BASIS_AUTO
        basis, plain = self._basis(settings), self._basis(usual) == "linear"
        ending = {"both": "+rbf", "rbf": ":rbf"}.get(basis, "" if plain else ":linear")
        heads = f" x{settings.heads}" if settings.heads > 1 and lib.fin_fit_model_get(settings).heads else ""
        return TABLE.read(settings)["model"] + ending + heads

    def importance(self):
        """(of the score, of the value) of every column."""
        key, value, err = np.empty(self.d), np.empty(self.d), error()
        check(lib.fin_fit_importance(self.pointer, ffi.from_buffer(_DOUBLES, key), ffi.from_buffer(_DOUBLES, value),
                                     err), err)
        return self.spread_out(key), self.spread_out(value)

    def directions(self, part=0):
        """(keys (heads, d), values (heads, outputs, d)) of a part."""
        settings = lib.fin_fit_part(self.pointer, part, ffi.NULL)
        err = error()
        several = settings != ffi.NULL and lib.fin_fit_model_get(settings).heads
        heads = settings.heads if several else 1
        outputs = self.classes if self.classes > 2 else 1
        keys, values = np.empty((heads, self.d)), np.empty((heads, outputs, self.d))
        for h in range(heads):
            for o in range(outputs):
                check(lib.fin_fit_directions(self.pointer, part, h, o, ffi.from_buffer(_DOUBLES, keys[h]),
                                             ffi.from_buffer(_DOUBLES, values[h, o]), err), err)
        return self.spread_out(keys), self.spread_out(values)

    # ---- in memory and in files -------------------------------------------------------------------

    def tensors(self):
        """Everything beside the settings: [(name, array)], copied."""
        count = lib.fin_fit_tensors(self.pointer, ffi.NULL, 0)
        list_ = ffi.new("fin_tensor[]", count)
        lib.fin_fit_tensors(self.pointer, list_, count)
        return [(text(t.name), copy(t.data, tuple(t.shape[0:t.ndim]), _DTYPES[t.dtype])) for t in list_]

    def __reduce__(self):
        columns = () if self.used is None else (self.used.tolist(), self.width)
        return restore, (self.settings(), self.tensors(), __version__, *columns)

    def write(self, path, names, notes=None):
        """Writes a model file. names: of fin_bags_names, features, classes, label, bag and group; any may be None."""
        names, alive = _names(**names)
        none = ffi.new(_BAGS, {"d": self.d})
        out, err = ffi.new("fin_bag_set **"), error()
        check(lib.fin_bag_set_make(out, none, names, err), err)
        bag_set = ffi.gc(out[0], lib.fin_bag_set_destroy)
        lines = [tuple(ffi.new("char[]", _bytes(str(word))) for word in note) for note in (notes or {}).items()]
        entries = ffi.new("fin_entry[]", lines)
        check(lib.fin_model_write(encoded(path), self.pointer, bag_set, entries, len(lines), err), err)
        del alive


def cross_predictions(settings, classes, bags, labels, groups, used, folds, repeats, progress):
    """Predictions (n) or (n, classes) for bags that were left out, averaged over repeats; folds as `finetti fit` makes them."""
    settings, n = TABLE.make(settings), len(bags.offsets) - 1
    tokens = bags.tokens if used is None else np.ascontiguousarray(bags.tokens[:, used])
    fold, err = np.empty((repeats, n), np.int32), error()
    together = ffi.NULL if groups is None else ffi.from_buffer(_INT64S, groups)
    check(lib.fin_folds_make(n, classes, ffi.from_buffer(_DOUBLES, labels), together, repeats, folds, settings.seed,
                             ffi.from_buffer("int32_t[]", fold), err), err)
    split = ffi.new("fin_folds *", (repeats, folds, ffi.from_buffer("int32_t[]", fold)))
    out = ffi.new("fin_validation **")
    with Watch(progress) as watch:
        watch.check(lib.fin_validate(out, 1, settings, classes, view(tokens, bags.offsets, labels, groups), split,
                                     watch.pointer, watch.err))
    validation = ffi.gc(out[0], lib.fin_validation_destroy)
    return copy(lib.fin_validation_mean(validation, 0), (n, classes) if classes else (n,), np.float64)


def restore(settings, tensors, version=__version__, used=None, width=None):
    """The Fit back from a pickle: settings, tensors, the version of the package that wrote them, columns in use."""
    try:
        return _restore(settings, tensors, used, width)
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        if version == __version__:
            raise FormatError(f"this is no model that finetti pickled, or it is damaged: {problem}") from problem
        raise FormatError(
            f"this model was pickled by finetti {version}, and finetti {__version__} cannot read it ({problem}). Read "
            "it there and write it with save, whose files load_model reads, or fit it again") from problem


def _restore(settings, tensors, used, width):
    if "features" in settings and "basis" not in settings:  # its name in version 0.1
        settings = {"basis" if name == "features" else name: value for name, value in settings.items()}
    list_ = ffi.new("fin_tensor[]", len(tensors))
    tensors = [(name, np.ascontiguousarray(array)) for name, array in tensors]
    for tensor, (name, array) in zip(list_, tensors):
        tensor.name = name.encode() + b"\0"  # one that does not fit is refused here
        tensor.dtype = _NUMBERS[array.dtype]
        tensor.ndim = array.ndim
        for axis, length in enumerate(array.shape):
            tensor.shape[axis] = length
        tensor.data = ffi.from_buffer(array) if array.size else list_  # nothing is read there, but it must not be NULL
    out, err = ffi.new("fin_fit **"), error()
    check(lib.fin_fit_restore(out, TABLE.make(settings), list_, len(tensors), err), err)
    fit = Fit(ffi.gc(out[0], lib.fin_fit_destroy))
    if used is None:
        return fit
    used = np.array(used, dtype=np.int64)
    inside = used.ndim == 1 and len(used) == fit.d and 0 <= used[0] and used[-1] < operator.index(width)
    if not (inside and (np.diff(used) > 0).all()):
        raise ValueError("the columns in use are not those of the tensors")
    return Fit(fit.pointer, None, used, width)


def read(path):
    """(Fit, names as Fit.write takes them, notes) from a model file."""
    out, err = ffi.new("fin_model **"), error()
    check(lib.fin_model_read(encoded(path), out, err), err)
    model = ffi.gc(out[0], lib.fin_model_destroy)
    fit = Fit(lib.fin_model_fit(model), model)
    features = [text(name) for name in lib.fin_model_feature_names(model)[0:fit.d]]
    classes = [text(name) for name in lib.fin_model_class_names(model)[0:fit.classes]] if fit.classes else None
    entries = ffi.new("fin_entry **")
    count = lib.fin_model_notes(model, entries)
    notes = {text(entry.key): text(entry.value) for entry in entries[0][0:count]}
    names = {"features": features, "classes": classes, "label": text(lib.fin_model_label(model)) or None,
             "bag": text(lib.fin_model_bag(model)) or None, "group": text(lib.fin_model_group(model)) or None}
    return fit, names, notes


def _bytes(word):
    """A text for C, where it ends at the first zero byte: so there must be none."""
    word = word.encode() if isinstance(word, str) else word
    if b"\0" in word:
        raise ArgumentError(f"{word!r} has a zero byte, which no name in a file may have")
    return word


def _names(features=None, classes=None, **titles):
    """(fin_bags_names, what has to stay alive as long as it)."""
    alive = []

    def words(names):
        if names is None:
            return ffi.NULL
        texts = [ffi.new("char[]", _bytes(name)) for name in names]
        alive.extend([texts, ffi.new("char *[]", texts)])
        return alive[-1]

    titles = {name: ffi.new("char[]", _bytes(title)) for name, title in titles.items() if title is not None}
    alive.append(titles)
    return ffi.new("fin_bags_names *", {"features": words(features), "classes": words(classes),
                                        "class_count": len(classes or ()), **titles}), alive
