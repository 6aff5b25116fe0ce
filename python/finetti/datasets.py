"""Data to try things on: made ones, whose answers are known, and readers for files that you have.

>>> from finetti import datasets
>>> data = datasets.make_bags(100, d=5, L=6, classes=True)
>>> data
Data(100 bags, 600 tokens, 5 columns, y, location)
>>> len(data.X), data.y[:3], data.location.shape
(100, array([...]), (100,))
"""

import csv

import numpy as np

from ._bags import Bags
from ._core import FormatError, check, encoded, error, ffi, lib, text

__all__ = ["Data", "make_bags", "make_contexts", "read_bags", "read_musk"]

_PLAIN = ("X", "y", "location", "names", "groups", "extras", "feature_names", "notes")


class Data:
    """What the functions of finetti.datasets return.

    Attributes
    ----------
    X : Bags
        Pass it to fit as it is.
    y : array (n) or None
        Labels: numbers, or names of classes.
    location : array (n) of int, or None
        Made bags: the responsible token of each, from 0.
    names : array (n) of str, or None
        Names of the bags in a file.
    groups : array (n) of int, or None
        Which bags belong together; pass it as bag_groups.
    extras : dict of arrays (tokens)
        Other columns of a file that were asked for.
    feature_names : list of str, or None
    notes : list of str
        What a reader had to say, such as columns of text that were left out.
    task, family : the model that made the data, or None

    Examples
    --------
    >>> import finetti
    >>> data = finetti.datasets.make_bags(3, d=4, L=2)
    >>> data.task.name, data.names is None
    ('slr', True)
    """

    def __init__(self, X, y=None, task=None, family=None, **others):
        self.X, self.y, self.task, self.family = X, y, task, family
        for name in _PLAIN[2:]:
            setattr(self, name, others.pop(name, {} if name == "extras" else [] if name == "notes" else None))
        self.__dict__.update(others)

    def __repr__(self):
        there = [name for name in ("y", "location", "groups") if getattr(self, name) is not None]
        return (f"Data({len(self.X)} bags, {len(self.X.tokens)} tokens, {self.X.tokens.shape[1]} columns"
                f"{''.join(', ' + name for name in there)})")

    def frame(self):
        """A DataFrame with a row for each token: bag, y if there is one, the features, extras. Needs pandas.

        Examples
        --------
        >>> import finetti
        >>> table = finetti.datasets.make_bags(3, d=2, L=4).frame()
        >>> table.columns.tolist(), len(table)
        (['bag', 'y', 'x0', 'x1'], 12)
        """
        import pandas
        lengths = np.diff(self.X.offsets)
        names = np.arange(len(lengths)) if self.names is None else self.names
        columns = {"bag": np.repeat(names, lengths)}
        if self.y is not None:
            columns["y"] = np.repeat(self.y, lengths)
        features = self.feature_names or [f"x{j}" for j in range(self.X.tokens.shape[1])]
        columns.update(zip(features, self.X.tokens.T))
        return pandas.DataFrame({**columns, **self.extras})


def make_bags(n=300, *, d=10, L=8, classes=False, seed=1, task="slr", **settings):
    """Bags of L tokens in d columns, one of which is responsible for the label: single-location regression.

    The numbers are those of `finetti simulate` with the same settings; classes=True is its --sign.

    Parameters
    ----------
    n : int, default=300
    d, L : int, default=10 and 8
        Columns, and tokens of a bag.
    classes : bool, default=False
        Labels are 1 where the output is positive, else 0, and not the output itself.
    seed : int, default=1
    task : str, default='slr'
        One of finetti.tasks.names().
    settings
        Of the task, such as mu=3, eps=0.1.

    Returns
    -------
    Data

    Examples
    --------
    >>> import finetti
    >>> data = finetti.datasets.make_bags(200, d=5, L=4, mu=3, classes=True)
    >>> model = finetti.SingleLocationClassifier(model="mixture").fit(data.X[:150], data.y[:150])
    >>> found = [p.argmax() for p in model.locate(data.X[150:])]
    >>> bool((found == data.location[150:]).mean() > 0.7)
    True
    """
    from . import tasks
    made = tasks.Task(task, {"d": d, "L": L, **settings}, seed=seed)
    X, y, location = made.draw(n)
    bags = Bags(X) if isinstance(X, np.ndarray) else Bags(list(X))
    y = (np.asarray(y) > 0).astype(np.int64) if classes else np.asarray(y)
    return Data(bags, y, task=made, location=np.asarray(location))


def make_contexts(n=100, L=32, Q=8, *, family="concept", seed=1, **settings):
    """Contexts of exchangeable tokens with queries: (sample, family).

    Parameters
    ----------
    n, L, Q : int
        Contexts, tokens of each, queries of each.
    family : str, default='concept'
        One of finetti.families.names().
    seed : int, default=1
    settings
        Of the family, such as d=5, noise=0.1.

    Returns
    -------
    sample : with keys (n, L, dk), values (n, L, dv), queries, answers, truth, z
    family : Family

    Examples
    --------
    >>> import finetti
    >>> sample, family = finetti.datasets.make_contexts(10, L=20, Q=3, d=2)
    >>> sample.keys.shape, family.predict(sample.keys, sample.values, sample.queries).shape
    ((10, 20, 2), (10, 3, 1))
    """
    from . import families
    made = families.Family(family, settings, seed=seed)
    return made.draw(n, L, Q), made


def read_bags(path, *, bag=None, label=None, features=None, group=None, extras=None, kind="auto"):
    """Bags from a file, as `finetti fit` reads it: CSV (also gzipped), NPZ, a folder of NPY, HDF5.

    Parameters
    ----------
    path : str or path
    bag, label, group : str, default=None
        Columns; None: 'bag', 'bag_id' or the first; 'label' or 'y'; no groups.
    features : str, default=None
        Columns such as 'f1:f166' or 'x*,age'; None: all others that are numbers.
    extras : str, default=None
        Columns to keep beside the features, '*' for all.
    kind : str, default='auto'
        What labels are: 'auto', 'regression' or 'classes'.

    Returns
    -------
    Data

    Examples
    --------
    >>> import os, tempfile, finetti
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scans.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("patient,volume,uptake,ill\\nann,1.5,2,yes\\nann,0.5,1,yes\\nbob,2,1,no\\n")
    ...     data = finetti.datasets.read_bags(path, bag="patient", label="ill")
    >>> data.names.tolist(), data.y.tolist(), data.feature_names
    (['ann', 'bob'], ['yes', 'no'], ['volume', 'uptake'])
    """
    words = {"path": encoded(path), "bag": bag, "label": label, "group": group, "features": features, "kind": kind,
             "extras": extras}
    held = {name: ffi.new("char[]", word if isinstance(word, bytes) else str(word).encode())
            for name, word in words.items() if word is not None}
    source = ffi.new("fin_bags_source *", {**held, "class_count": -1, "unlabelled": 1})
    out, err = ffi.new("fin_bag_set **"), error()
    check(lib.fin_bag_set_read(out, source, ffi.NULL, err), err)
    found = ffi.gc(out[0], lib.fin_bag_set_destroy)
    view = lib.fin_bag_set_bags(found)
    n, d = view.n, view.d
    offsets = np.frombuffer(ffi.buffer(view.offsets, 8 * (n + 1)), np.int64).copy()
    offsets -= offsets[0]
    kinds = {lib.FIN_F32: np.float32, lib.FIN_F64: np.float64}
    rows, dtype = int(offsets[-1]), np.dtype(kinds[view.dtype])
    tokens = np.frombuffer(ffi.buffer(view.tokens, rows * d * dtype.itemsize), dtype).reshape(rows, d).copy()
    labels = None
    if view.labels != ffi.NULL:
        labels = np.frombuffer(ffi.buffer(view.labels, 8 * n), np.float64).copy()
        count = lib.fin_bag_set_classes(found)
        if count and np.isfinite(labels).all():
            classes = np.array([text(lib.fin_bag_set_class(found, c)) for c in range(count)])
            labels = classes[labels.astype(np.int64)]
    groups = None
    if view.groups != ffi.NULL:
        groups = np.frombuffer(ffi.buffer(view.groups, 8 * n), np.int64).copy()
    return Data(Bags(tokens, lengths=np.diff(offsets)), labels,
                names=np.array([text(lib.fin_bag_set_name(found, i)) for i in range(n)]), groups=groups,
                feature_names=[text(lib.fin_bag_set_feature(found, j)) for j in range(d)],
                extras={text(lib.fin_bag_set_extra(found, k)): _extra(found, k, rows)
                        for k in range(lib.fin_bag_set_extras(found))},
                notes=[text(lib.fin_bag_set_note(found, i)) for i in range(lib.fin_bag_set_notes(found))])


def _extra(found, k, rows):
    numbers = lib.fin_bag_set_extra_numbers(found, k)
    if numbers != ffi.NULL:
        return np.frombuffer(ffi.buffer(numbers, 8 * rows), np.float64).copy()
    return np.array([text(lib.fin_bag_set_extra_text(found, k, t)) for t in range(rows)])


def read_musk(path):
    """The Musk data of the UCI repository, from its file clean1.data or clean2.data (not part of finetti).

    A bag is a molecule, a token one of its conformers (166 columns), and the label 'musk' or 'other'.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Data

    Examples
    --------
    >>> import os, tempfile, finetti
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clean1.data")
    ...     with open(path, "w") as file:
    ...         for name, label in (("MUSK-a", 1), ("MUSK-a", 1), ("NON-MUSK-b", 0)):
    ...             _ = file.write(f"{name},{name}+1," + "42," * 166 + f"{label}.\\n")
    ...     data = finetti.datasets.read_musk(path)
    >>> data, data.y.tolist(), data.names.tolist()
    (Data(2 bags, 3 tokens, 166 columns, y), ['musk', 'other'], ['MUSK-a', 'NON-MUSK-b'])
    """
    molecules, rows, labels = [], [], {}
    with open(path, newline="", encoding="ascii", errors="replace") as file:
        for number, line in enumerate(csv.reader(file), 1):
            if not line:
                continue
            if len(line) != 169:
                raise FormatError(f"{path}, line {number}: {len(line)} fields; the Musk data have 169: molecule, "
                                  "conformer, 166 numbers, class")
            try:
                rows.append([float(cell) for cell in line[2:168]])
                label = float(line[168].rstrip("."))
            except ValueError as problem:
                raise FormatError(f"{path}, line {number}: {problem}") from None
            molecules.append(line[0])
            if labels.setdefault(line[0], label) != label:
                raise FormatError(f"{path}, line {number}: molecule {line[0]!r} has two classes")
    if not rows:
        raise FormatError(f"{path} has no lines")
    bags = Bags(np.array(rows), groups=np.array(molecules))
    y = np.array(["musk" if labels[name] else "other" for name in bags.names])
    return Data(bags, y, names=np.array(bags.names), feature_names=[f"f{j}" for j in range(1, 167)])


def __dir__():
    return __all__
