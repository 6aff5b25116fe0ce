"""A model fitted to bags, on the C side: it owns its memory, answers, and can be written down and read again.

Nothing here looks at what people pass; _estimators.py has done that. A Fit never changes once it is made, so that any
number of threads may ask it at once.
"""

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


def view(tokens, offsets, labels=None):
    """A fin_bags over arrays that the caller keeps alive."""
    n = len(offsets) - 1
    return ffi.new(_BAGS, (n, tokens.shape[-1], 0, n, ffi.from_buffer(_INT64S, offsets), _CODES[tokens.dtype.char],
                           ffi.from_buffer(tokens), ffi.NULL if labels is None else ffi.from_buffer(_DOUBLES, labels)))


class Fit:
    """A fin_fit. classes: 0 for numbers; d: columns of a token."""

    __slots__ = ("pointer", "owner", "classes", "d")

    def __init__(self, pointer, owner=None):
        self.pointer = pointer
        self.owner = owner  # what `pointer` belongs to, if it is not its own
        info = ffi.new("fin_fit_info *")
        lib.fin_fit_get_info(pointer, info)
        self.classes, self.d = info.classes, info.d

    @classmethod
    def create(cls, settings, classes, bags, labels, weights=None, progress=None):
        """Fits to bags with labels (and weights): contiguous arrays of doubles."""
        settings = TABLE.make(settings)
        struct = view(bags.tokens, bags.offsets, labels)
        out = ffi.new("fin_fit **")
        chosen = ffi.NULL if weights is None else ffi.from_buffer(_DOUBLES, weights)
        with Watch(progress) as watch:
            watch.check(lib.fin_fit_create(out, settings, classes, struct, chosen, ffi.NULL, watch.pointer, watch.err))
        return cls(ffi.gc(out[0], lib.fin_fit_destroy))

    # ---- answers ----------------------------------------------------------------------------------

    def predict(self, tokens, offsets, spread=True):
        """(mean, sd) of every bag: (n) for numbers, (n, classes) for classes; sd is None unless it is asked for.

        tokens may have three axes: C sees no difference.
        """
        n = len(offsets) - 1
        shape = (n, self.classes) if self.classes else n
        mean = np.empty(shape)
        sd = np.empty(shape) if spread else None
        struct = view(tokens, offsets)
        err = ffi.new(_ERROR)
        status = lib.fin_fit_predict(self.pointer, struct, ffi.from_buffer(_DOUBLES, mean),
                                     ffi.from_buffer(_DOUBLES, sd) if spread else ffi.NULL, err)
        if status:
            check(status, err)
        return mean, sd

    def locate(self, bags, labels=None):
        """Probability of every token that it decided; given the labels if there are any."""
        prior = np.empty(len(bags.tokens))
        given = np.empty_like(prior) if labels is not None else None
        err = error()
        struct = view(bags.tokens, bags.offsets, labels)
        check(lib.fin_fit_locate(self.pointer, struct, ffi.from_buffer(_DOUBLES, prior),
                                 ffi.NULL if given is None else ffi.from_buffer(_DOUBLES, given), err), err)
        return prior if given is None else given

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
        parts, weight = [], ffi.new("double *")
        for i in range(info.parts):
            part = TABLE.read(lib.fin_fit_part(self.pointer, i, weight))
            parts.append({"model": part["model"], "basis": part["basis"], "weight": weight[0]})
        out["parts"] = parts
        out["locates"] = bool(lib.fin_fit_locates(self.pointer))
        return out

    def importance(self):
        """(of the score, of the value) of every column."""
        key, value, err = np.empty(self.d), np.empty(self.d), error()
        check(lib.fin_fit_importance(self.pointer, ffi.from_buffer(_DOUBLES, key), ffi.from_buffer(_DOUBLES, value),
                                     err), err)
        return key, value

    def directions(self, part=0):
        """(keys (heads, d), values (heads, outputs, d)) of a part."""
        settings = lib.fin_fit_part(self.pointer, part, ffi.NULL)
        err = error()
        several = settings != ffi.NULL and TABLE.read(settings)["model"] in ("softmax", "erf", "linear")
        heads = settings.heads if several else 1
        outputs = self.classes if self.classes > 2 else 1
        keys, values = np.empty((heads, self.d)), np.empty((heads, outputs, self.d))
        for h in range(heads):
            for o in range(outputs):
                check(lib.fin_fit_directions(self.pointer, part, h, o, ffi.from_buffer(_DOUBLES, keys[h]),
                                             ffi.from_buffer(_DOUBLES, values[h, o]), err), err)
        return keys, values

    # ---- in memory and in files -------------------------------------------------------------------

    def tensors(self):
        """Everything beside the settings: [(name, array)], copied."""
        count = lib.fin_fit_tensors(self.pointer, ffi.NULL, 0)
        list_ = ffi.new("fin_tensor[]", count)
        lib.fin_fit_tensors(self.pointer, list_, count)
        return [(text(t.name), copy(t.data, tuple(t.shape[0:t.ndim]), _DTYPES[t.dtype])) for t in list_]

    def __reduce__(self):
        return restore, (self.settings(), self.tensors(), __version__)

    def write(self, path, features=None, classes=None, label=None, notes=None):
        """Writes a model file, with the names of columns and classes."""
        names, alive = _names(features, classes, label)
        none = ffi.new(_BAGS, {"d": self.d})
        out, err = ffi.new("fin_bag_set **"), error()
        check(lib.fin_bag_set_make(out, none, names, err), err)
        bag_set = ffi.gc(out[0], lib.fin_bag_set_destroy)
        lines = [tuple(ffi.new("char[]", _bytes(str(word))) for word in note) for note in (notes or {}).items()]
        entries = ffi.new("fin_entry[]", lines)
        check(lib.fin_model_write(encoded(path), self.pointer, bag_set, entries, len(lines), err), err)
        del alive


def restore(settings, tensors, version=__version__):
    """The Fit back from a pickle: its settings and tensors, and the version of the package that wrote them."""
    try:
        return _restore(settings, tensors)
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        if version == __version__:
            raise FormatError(f"this is no model that finetti pickled, or it is damaged: {problem}") from problem
        raise FormatError(
            f"this model was pickled by finetti {version}, and finetti {__version__} cannot read it ({problem}). Read "
            "it there and write it with save, whose files load_model reads, or fit it again") from problem


def _restore(settings, tensors):
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
    return Fit(ffi.gc(out[0], lib.fin_fit_destroy))


def read(path):
    """(Fit, names of columns, names of classes or None, name of the label, notes) from a model file."""
    out, err = ffi.new("fin_model **"), error()
    check(lib.fin_model_read(encoded(path), out, err), err)
    model = ffi.gc(out[0], lib.fin_model_destroy)
    fit = Fit(lib.fin_model_fit(model), model)
    features = [text(name) for name in lib.fin_model_feature_names(model)[0:fit.d]]
    classes = [text(name) for name in lib.fin_model_class_names(model)[0:fit.classes]] if fit.classes else None
    entries = ffi.new("fin_entry **")
    count = lib.fin_model_notes(model, entries)
    notes = {text(entry.key): text(entry.value) for entry in entries[0][0:count]}
    return fit, features, classes, text(lib.fin_model_label(model)), notes


def _bytes(word):
    """A text for C, where it ends at the first zero byte: so there must be none."""
    word = word.encode() if isinstance(word, str) else word
    if b"\0" in word:
        raise ArgumentError(f"{word!r} has a zero byte, which no name in a file may have")
    return word


def _names(features, classes, label):
    """(fin_bags_names, what has to stay alive as long as it)."""
    alive = []

    def words(names):
        if names is None:
            return ffi.NULL
        texts = [ffi.new("char[]", _bytes(name)) for name in names]
        alive.extend([texts, ffi.new("char *[]", texts)])
        return alive[-1]

    title = ffi.NULL if label is None else ffi.new("char[]", _bytes(label))
    alive.append(title)
    return ffi.new("fin_bags_names *", {"features": words(features), "classes": words(classes),
                                        "class_count": len(classes or ()), "label": title}), alive
