"""Encoder: transformer encoders of sets of tokens that learn to infer: pretrain, finetune, probe, look inside.

The commands `finetti pretrain`, `finetune` and `probe` in Python: the same defaults, scaling, folds and numbers, and the
same files.
"""

import operator

import numpy as np

from . import _arrays, _fit
from ._bags import Bags
from ._core import ArgumentError, Table, Watch, check, encoded, error, ffi, keep_exception, lib, text
from ._lab import FAMILIES, PROGRESS, TASKS, find
from ._order import check_bags
from ._signature import parameters, signed
from .families import Family
from .tasks import Task

CORPUS = Table(ffi.addressof(lib, "fin_corpus_table"), "fin_corpus_settings")
SHAPE = Table(ffi.addressof(lib, "fin_encoder_table"), "fin_encoder_settings")
LEARN = Table(ffi.addressof(lib, "fin_learn_table"), "fin_learn_settings")
PROBE = Table(ffi.addressof(lib, "fin_probe_table"), "fin_probe_settings")
_FRESH = 1 << 52  # FIN_TEST_FIRST
_KINDS = {lib.FIN_HEAD_VALUE: "value", lib.FIN_HEAD_GAUSSIAN: "gaussian", lib.FIN_HEAD_CLASSES: "classes"}


class _Sequences:
    """Bags as an encoder takes them: (raw - center) * scale as float32, with labels or without."""

    def __init__(self, X, center=None, scale=None, keys=0):
        bags = X if isinstance(X, Bags) else Bags(X)
        raw = bags.tokens.astype(np.float64)
        if len(raw) == 0:
            raise ValueError("X has no tokens")
        if not np.isfinite(raw).all():
            i, j = np.argwhere(~np.isfinite(raw))[0]
            raise ValueError(f"token {i} of X has {raw[i, j]} in column {j}; numbers that are finite are needed")
        if center is None:
            center, scale, err = np.empty(raw.shape[1]), np.empty(raw.shape[1]), error()
            found = ffi.new("fin_token_scale *", (0, _arrays.doubles(center), _arrays.doubles(scale)))
            check(lib.fin_token_scale_find(_fit.view(raw, np.array([0, len(raw)])), found, err), err)
        if raw.shape[1] != len(center):
            raise ValueError(f"a token of X has {raw.shape[1]} columns; the encoder was trained with {len(center)}")
        self.center, self.scale = np.ascontiguousarray(center), np.ascontiguousarray(scale)
        self.tokens = np.ascontiguousarray((raw - center) * scale, dtype=np.float32)
        self.offsets = np.ascontiguousarray(bags.offsets, dtype=np.int64)
        self.bags, self.keys = bags, keys

    def __len__(self):
        return len(self.offsets) - 1

    def memory(self, where, labels=None, classes=0):
        """(fin_memory of the bags with these numbers, what it points to)."""
        lengths = np.diff(self.offsets)[where]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in where]) if len(where) else []
        tokens = np.ascontiguousarray(self.tokens[np.asarray(rows, dtype=np.int64)])
        own = None if labels is None else np.ascontiguousarray(labels[where], dtype=np.float64)
        width = tokens.shape[1]
        struct = ffi.new("fin_memory *", (len(where), width, width - self.keys, ffi.from_buffer("int64_t[]", offsets),
                                          ffi.from_buffer("float[]", tokens),
                                          ffi.NULL if own is None else ffi.from_buffer("double[]", own), classes))
        return struct, (offsets, tokens, own)


class _Corpus:
    """A fin_corpus and what it borrows."""

    def __init__(self, settings, source, seed, where=None, labels=None, classes=0):
        self.settings, self.source = settings, source
        out, err = ffi.new("fin_corpus **"), error()
        if isinstance(source, Family):
            status = lib.fin_corpus_latent(out, settings, source._latent, seed, err)
        elif isinstance(source, Task):
            status = lib.fin_corpus_task(out, settings, source._in_space(), err)
        else:
            self.held = source.memory(np.arange(len(source)) if where is None else where, labels, classes)
            status = lib.fin_corpus_memory(out, settings, self.held[0], seed, err)
        check(status, err)
        self.pointer = ffi.gc(out[0], lib.fin_corpus_destroy)

    def sequences(self, fresh):
        return lib.fin_corpus_sequences(self.pointer) or fresh


@ffi.def_extern(error=1, onerror=keep_exception)
def finpy_learn(user, report):
    watch = ffi.from_handle(user)
    try:
        return watch.report("learning", float(report.step), float(report.steps))
    except BaseException as problem:
        watch.problem = problem
        return 1


def _settings(given, *tables):
    """The struct of each table, from the keywords that are its own."""
    return [table.make({name: given[name] for name in table.fields if given.get(name) is not None}) for table in tables]


def _learn(encoder, settings, corpus, judge, progress):
    """Trains in place; the log as a dict of arrays."""
    out, err = ffi.new("fin_learn **"), error()
    check(lib.fin_learn_create(out, settings, encoder, corpus.pointer, judge.pointer if judge else ffi.NULL, ffi.NULL, 0,
                               1, err), err)
    learn = ffi.gc(out[0], lib.fin_learn_destroy)
    with Watch(progress) as watch:
        watch.check(lib.fin_learn_run(learn, -1, lib.finpy_learn, watch.handle, watch.err))
    rows = ffi.new("const fin_learn_row **")
    count = lib.fin_learn_log(learn, rows)
    log = [{"step": row.step, "rate": row.rate, "loss": row.loss, "norm": row.norm, **_evaluation(row.test)}
           for row in (rows[0][i] for i in range(count))]
    return {name: np.array([row[name] for row in log]) for name in log[0]} if log else {}


def _evaluation(struct):
    return {name: getattr(struct, name) for name, _ in ffi.typeof("fin_evaluation").fields}


def _evaluate(encoder, corpus, fresh, L=-1, progress=None):
    found = ffi.new("fin_evaluation *")
    with Watch(progress) as watch:
        watch.check(lib.fin_encoder_evaluate(encoder, corpus.pointer, _FRESH, corpus.sequences(fresh), L, found,
                                             watch.pointer, watch.err))
    return _evaluation(found)


def _folds(n, folds, fold):
    """(numbers to learn from, numbers to judge on), as the tool cuts them."""
    folds, fold = operator.index(folds), operator.index(fold)
    if folds < 0 or (folds > 1 and not 0 <= fold < folds):
        raise ArgumentError(f"test_folds = {folds}, test_fold = {fold}; a fold is one of 0 to test_folds - 1")
    every = np.arange(n)
    if folds < 2:
        return every, every[:0]
    if n < folds:
        raise ValueError(f"{n} bags cannot be cut into {folds} folds; test_folds=0 holds none back")
    return every[every % folds != fold], every[every % folds == fold]


def _labels(y, bags, known=None):
    """(numbers, classes or None): floats are numbers, everything else names classes."""
    y = np.asarray(y)
    check_bags(bags, y, "y")
    if y.ndim != 1 or len(y) != len(bags):
        raise ValueError(f"y has shape {y.shape}; there are {len(bags)} bags")
    if y.dtype.kind == "f":
        return y.astype(np.float64), None
    classes, numbers = np.unique(y, return_inverse=True)
    if known is not None and not np.isin(classes, known).all():
        raise ValueError(f"y has the class {classes[~np.isin(classes, known)][0]!r}, which is new")
    if len(classes) < 2:
        raise ValueError("y has one class only; at least two are needed")
    return numbers.astype(np.float64), classes


class Encoder:
    """A transformer encoder of sets of tokens that learns to infer; made by pretrain, load and finetune.

    Encoder.from_folder opens an encoder of text instead, a TextEncoder.

    Attributes
    ----------
    settings : dict
        Of the encoder: width, layers, heads, attention ('softmax' or 'cme'), ...
    inputs, values : int
        Columns of a token, and how many of them (the last ones) a hidden token does not show.
    answers : str
        'tokens': one for each token; 'pooled': one for a sequence.
    kind : str
        Of an answer: 'value', 'gaussian' (a mean and a variance) or 'classes'.
    classes_ : array or None
    log_ : dict of arrays
        Evaluations while it learnt: step, loss, risk, bayes, excess, ... Empty after load.
    test_ : dict or None
        On fresh sequences, or those held out: risk, excess over Bayes with excess_se, accuracy, ...
    center_, scale_ : arrays or None
        Tokens are seen as (X - center_) * scale_; None: as they are.
    source : Family, Task or None
        What it was pretrained on; None: data.

    Examples
    --------
    >>> import finetti
    >>> family = finetti.families.concept(d=2, noise=0.1)
    >>> encoder = finetti.Encoder.pretrain(family, L=8, M=4, width=8, heads=1, layers=1, steps=20, evaluate_on=32)
    >>> encoder
    Encoder(softmax attention, 1 layer, width 8, one answer for each token)
    >>> sample = family.draw(2, L=8, Q=3)
    >>> encoder.answer(sample.keys, sample.values, sample.queries).shape
    (2, 3, 1)
    >>> encoder.attention(encoder.tokens(sample.keys, sample.values))[0].shape
    (8, 8)
    """

    def __init__(self, pointer, center=None, scale=None, source=None, classes=None, entries=None):
        self._pointer = pointer
        self.settings = SHAPE.read(lib.fin_encoder_get_settings(pointer))
        self._shape = lib.fin_encoder_get_shape(pointer)
        head = self._shape.head[0]
        self.inputs, self.values = self._shape.inputs, self._shape.values
        self.answers = "tokens" if head.where == lib.FIN_HEAD_TOKENS else "pooled"
        self.kind = _KINDS[head.kind]
        self._size, self._width = head.size, lib.fin_head_answers(ffi.addressof(head))
        self.center_, self.scale_, self.source, self.classes_ = center, scale, source, classes
        self._entries = entries or {}
        self.log_, self.test_ = {}, None

    def __repr__(self):
        one, layers = self.settings, self.settings["layers"]
        each = "one answer for each token" if self.answers == "tokens" else "one answer for a sequence"
        return (f"Encoder({one['attention']} attention, {layers} layer{'s' * (layers != 1)}, width {one['width']}, "
                f"{each})")

    # ---- making one ---------------------------------------------------------------------------

    @classmethod
    def from_folder(cls, path):
        """Opens an encoder of text: a folder with config.json, model.safetensors, and vocab.txt or tokenizer.json.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        TextEncoder

        Examples
        --------
        >>> import finetti
        >>> try:
        ...     finetti.Encoder.from_folder("no-such-folder")
        ... except OSError as error:
        ...     print("not there")
        not there
        """
        from ._text_encoder import TextEncoder
        return TextEncoder.from_folder(path)

    @classmethod
    @signed([*parameters([CORPUS, SHAPE, LEARN], without=["train"]), PROGRESS])
    def pretrain(cls, source, y=None, *, keys=0, test_folds=5, test_fold=0, progress=None, **given):
        """Trains an encoder to predict hidden tokens (objective='masked') or labels ('supervised').

        Parameters
        ----------
        source : Family, Task, or bags as finetti.Bags takes them
            Sequences to learn from. A family or a task makes fresh ones, and has the exact Bayes prediction beside the
            encoder; `seed` is that of the family or task. Columns of bags are brought to mean 0 and deviation 1.
        y : array (n), default=None
            supervised, bags: labels; floats are numbers, everything else names classes.
        keys : int, default=0
            bags, masked: the first so many columns of a token are shown even if it is hidden.
        test_folds, test_fold : int, default=5 and 0
            bags: number i is held out if i % test_folds == test_fold. 0: none.
        {parameters}

        Returns
        -------
        Encoder

        Examples
        --------
        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).standard_normal((40, 6, 3))
        >>> y = X[:, :, 0].mean(axis=1)
        >>> encoder = finetti.Encoder.pretrain(X, y, objective="supervised", width=8, heads=1, layers=1, steps=30)
        >>> encoder.predict(X).shape, sorted(encoder.log_)[:3]
        ((40,), ['accuracy', 'bayes', 'bayes_se'])
        """
        lab = isinstance(source, (Family, Task))
        if lab:
            if y is not None or keys:
                raise TypeError("y and keys belong to bags; a family or a task makes both")
            if given.get("seed") not in (None, source.seed):
                raise ArgumentError(f"seed = {given['seed']}, and the {'family' if isinstance(source, Family) else 'task'}"
                                    f" has {source.seed}; there is one for both, that of the source")
            given["seed"] = source.seed
            if isinstance(source, Task) and (source._lengths or source._directions):
                raise ArgumentError("a task with lengths or directions of its own cannot be named in an encoder's file")
        corpus, shape, learn = _settings(given, CORPUS, SHAPE, LEARN)
        seed, judge, classes, sequences = int(learn.seed), None, None, None
        if lab:
            made = _Corpus(corpus, source, seed)
        else:
            sequences = _Sequences(source, keys=_keys(keys))
            labels = None
            if y is not None:
                labels, classes = _labels(y, sequences.bags)
            elif corpus.objective == lib.FIN_OBJECTIVE_SUPERVISED:
                raise ValueError("objective='supervised' learns labels: y is missing")
            train, test = _folds(len(sequences), test_folds, test_fold)
            count = 0 if classes is None else len(classes)
            made = _Corpus(corpus, sequences, seed, train, labels, count)
            if len(test):
                whole = CORPUS.make({name: value for name, value in CORPUS.read(corpus).items() if name != "samples"})
                judge = _Corpus(whole, sequences, seed, test, labels, count)
        if lib.fin_is_auto(float(shape.longest)):
            longest = max(lib.fin_corpus_longest(one.pointer) for one in (made, judge) if one)
            learned = shape.positions == lib.FIN_POSITIONS_LEARNED
            shape.longest = longest if learned else min(longest, 1 << 20)
        of = ffi.new("fin_encoder_shape *")
        lib.fin_corpus_get_shape(made.pointer, of)
        pointer = _create(shape, of, seed)
        log = _learn(pointer, learn, made, judge, progress)
        entries = _entries(source if lab else None, corpus, seed, test_folds, test_fold)
        encoder = cls(pointer, *((sequences.center, sequences.scale) if sequences else ()), source=source if lab else None,
                      classes=classes, entries=entries)
        encoder.log_ = log
        encoder.test_ = _evaluate(pointer, judge or made, int(learn.evaluate_on), progress=progress)
        return encoder

    @classmethod
    def load(cls, path):
        """An encoder from a file that save, `finetti pretrain --out` or `finetti finetune --out` wrote.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> import os, tempfile, finetti
        >>> family = finetti.families.mean()
        >>> encoder = finetti.Encoder.pretrain(family, L=4, M=2, width=4, heads=1, layers=1, steps=5, evaluate_on=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     encoder.save(os.path.join(folder, "enc.fin"))
        ...     again = finetti.Encoder.load(os.path.join(folder, "enc.fin"))
        >>> again.source
        families.mean(seed=1)
        """
        out, err = ffi.new("fin_checkpoint **"), error()
        check(lib.fin_checkpoint_read(encoded(path), out, err), err)
        file = ffi.gc(out[0], lib.fin_checkpoint_close)
        made = ffi.new("fin_encoder **")
        check(lib.fin_checkpoint_encoder(file, made, err), err)
        pointer = ffi.gc(made[0], lib.fin_encoder_destroy)
        scale = lib.fin_checkpoint_scale(file)
        scaled = () if scale == ffi.NULL else (_arrays.copy(scale.center, scale.columns),
                                               _arrays.copy(scale.scale, scale.columns))
        entries = _read_entries(file)
        classes = [entries[name] for name in (f"class.{c}" for c in range(256)) if name in entries]
        return cls(pointer, *scaled, source=_source(entries), classes=np.array(classes) if classes else None,
                   entries=entries)

    def save(self, path):
        """Writes a file (safetensors) that load, `finetti finetune` and `finetti probe` read.

        Parameters
        ----------
        path : str or path
        """
        rows = [(ffi.new("char[]", name.encode()), ffi.new("char[]", str(value).encode()))
                for name, value in self._entries.items()]
        entries = ffi.new("fin_entry[]", rows)
        scale = ffi.NULL
        if self.center_ is not None:
            scale = ffi.new("fin_token_scale *", (len(self.center_), _arrays.doubles(self.center_),
                                                  _arrays.doubles(self.scale_)))
        err = error()
        check(lib.fin_checkpoint_write(encoded(path), self._pointer, ffi.NULL, scale, entries, len(rows), err), err)

    @signed([*parameters(LEARN, without=["train"], defaults={"steps": 500, "batch": 64}), PROGRESS])
    def finetune(self, X, y, *, train="all", start=None, keep=1.0, test_folds=5, test_fold=0, progress=None, **given):
        """A new encoder with a map from its mean representation to labels, trained on bags.

        Parameters
        ----------
        X : bags with the columns that it was pretrained on
        y : array (n)
            Labels; floats are numbers, everything else names classes.
        train : str, default='all'
            'all', 'heads' (the map to labels alone) or 'scratch' (everything, from new weights).
        start : str, default=None
            Where the map begins: 'probe' (a linear probe) or 'random'; None: 'probe', and 'random' with 'scratch'.
        keep : float, default=1
            A random share of the tokens, from keep to 1, is shown in each step.
        test_folds, test_fold : int, default=5 and 0
            Bag i is held out if i % test_folds == test_fold. 0: none.
        {parameters}

        Returns
        -------
        Encoder

        Examples
        --------
        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).standard_normal((60, 5, 3))
        >>> y = np.where(X[:, :, 0].mean(axis=1) > 0, "up", "down")
        >>> encoder = finetti.Encoder.pretrain(X, width=8, heads=1, layers=1, steps=20)
        >>> tuned = encoder.finetune(X, y, steps=20)
        >>> tuned.classes_.tolist(), tuned.predict_proba(X).shape
        (['down', 'up'], (60, 2))
        """
        if train not in ("all", "heads", "scratch"):
            raise ArgumentError(f"train is {train!r}; it can be 'all', 'heads' or 'scratch'")
        start = start or ("random" if train == "scratch" else "probe")
        if start not in ("probe", "random"):
            raise ArgumentError(f"start is {start!r}; it can be 'probe' or 'random'")
        defaults = {"steps": 500, "batch": 64, "rate": 1e-2 if train == "heads" else 1e-3}
        given = {**defaults, **{name: value for name, value in given.items() if value is not None}}
        given["train"] = "heads" if train == "heads" else "all"
        (learn,) = _settings(given, LEARN)
        corpus = CORPUS.make({"objective": "supervised", "keep": keep})
        sequences = self._sequences(X)
        labels, classes = _labels(y, sequences.bags)
        learnt, test = _folds(len(sequences), test_folds, test_fold)
        count, seed = 0 if classes is None else len(classes), int(learn.seed)
        made = _Corpus(corpus, sequences, seed, learnt, labels, count)
        judge = _Corpus(corpus, sequences, seed, test, labels, count) if len(test) else None
        apart, watch = made, judge
        if learn.patience > 0:
            fifth = np.arange(len(learnt)) % 5 == 0
            apart = _Corpus(corpus, sequences, 0, learnt[~fifth], labels, count)
            watch = _Corpus(corpus, sequences, 0, learnt[fifth], labels, count)
        of = ffi.new("fin_encoder_shape *")
        lib.fin_corpus_get_shape(made.pointer, of)
        pointer = _create(lib.fin_encoder_get_settings(self._pointer), of, seed)
        err = error()
        if train != "scratch":
            room = lib.fin_encoder_tensors(self._pointer, ffi.NULL, 0)
            tensors = ffi.new("fin_tensor[]", room)
            lib.fin_encoder_tensors(self._pointer, tensors, room)
            kept = [tensors[i] for i in range(room) if not text(tensors[i].name).startswith("head.")]
            check(lib.fin_encoder_load(pointer, ffi.new("fin_tensor[]", kept), len(kept), 1, ffi.NULL, err), err)
        with Watch(progress) as watch_:
            if start == "probe":
                watch_.check(lib.fin_encoder_start_head(pointer, apart.pointer, PROBE.make({}).penalty, watch_.pointer, watch_.err))
        log = _learn(pointer, learn, apart, watch, progress)
        entries = _entries(None, corpus, seed, test_folds, test_fold)
        entries.update({"train": train}, **{f"class.{c}": name for c, name in enumerate(classes[:256] if count else ())})
        tuned = type(self)(pointer, sequences.center, sequences.scale, classes=classes, entries=entries)
        tuned.log_, tuned.test_ = log, _evaluate(pointer, judge or made, 0, progress=progress)
        return tuned

    # ---- asking it ----------------------------------------------------------------------------

    def tokens(self, keys, values):
        """Tokens of keys (..., L, dk) and values (..., L, dv) side by side, as an encoder of a family takes them.

        Examples
        --------
        >>> import numpy as np, finetti
        >>> encoder = finetti.Encoder.pretrain(finetti.families.concept(d=2), width=4, heads=1, steps=1, evaluate_on=8)
        >>> encoder.tokens(np.zeros((5, 2)), np.ones((5, 1))).shape
        (1, 5, 3)
        """
        values = np.asarray(values, dtype=np.float64)
        keys = np.empty(values.shape[:-1] + (0,)) if keys is None else np.asarray(keys, dtype=np.float64)
        made = np.concatenate([keys, values], axis=-1)
        if made.shape[-1] != self.inputs:
            raise ValueError(f"keys and values have {made.shape[-1]} columns together; a token of this encoder has "
                             f"{self.inputs}")
        return made if made.ndim == 3 else made[None]

    def answer(self, keys, values, queries):
        """Predictions of values at queries, given contexts of (keys, values): (n, m, answers).

        Each query is answered as if it were alone. On a family compare with family.predict(keys, values, queries).

        Parameters
        ----------
        keys, values : arrays (n, L, dk), (n, L, dv), or of one context without n
        queries : array (n, m, dk), or (m, dk) for all contexts
        """
        if self.answers != "tokens":
            raise ArgumentError("this encoder has one answer for a sequence; answer needs one of objective='masked'")
        context = self.tokens(keys, values)
        queries = np.asarray(queries, dtype=np.float64)
        queries = np.broadcast_to(queries, (len(context), *queries.shape[-2:]))
        asked = np.concatenate([queries, np.zeros((*queries.shape[:2], self.values))], axis=-1)
        if asked.shape[-1] != self.inputs:
            raise ValueError(f"queries have {queries.shape[-1]} columns; keys have {self.inputs - self.values}")
        L = context.shape[1]
        hidden = np.arange(L + asked.shape[1]) >= L
        X = np.concatenate([context, asked], axis=1)
        return self.predict(X, hidden=np.broadcast_to(hidden, X.shape[:2]))[:, L:]

    def predict(self, X, hidden=None):
        """Answers: of tokens, or of sequences.

        Parameters
        ----------
        X : bags
        hidden : array (n, L), or a list of one for each bag, of bool, default=None
            Tokens whose value is not shown. None: all are shown (an encoder of sequences), or each is hidden in turn
            (one of tokens): every token is then predicted from all others.

        Returns
        -------
        one answer for a sequence: array (n) of numbers or class names
        one answer for a token: array (n, L, answers), or a list of arrays (L, answers) where lengths differ: values in
        the units of X; 'gaussian': (mean, variance) of each; classes: probabilities
        """
        if self.answers == "pooled":
            found = self._raw(X, hidden)
            if self.kind == "classes":
                best = found.argmax(axis=1)
                return best if self.classes_ is None else self.classes_[best]
            return found[:, 0] if self._size == 1 else found[:, :self._size]
        return self._per_token(X, hidden)

    def predict_proba(self, X):
        """Probabilities of the classes, (n, classes), of an encoder that was trained on classes."""
        if self.kind != "classes" or self.answers != "pooled":
            raise ArgumentError("predict_proba is for an encoder of sequences with classes")
        return self._units(self._raw(X, None))

    def states(self, X, layer=None, pooled=False):
        """Representations after a layer: (tokens, width), those of all bags one after another; pooled: (n, width).

        Parameters
        ----------
        X : bags
        layer : int, default=None
            0 to layers; None: the last one, normed.
        pooled : bool, default=False
            The mean over the tokens of a bag.
        """
        sequences = self._sequences(X)
        count = len(sequences) if pooled else len(sequences.tokens)
        out = np.empty((count, self.settings["width"]))
        self._pass(sequences, None, layer=self._layer(layer), **{"pooled" if pooled else "states": out})
        return out

    def attention(self, X, layer=0, head=0, hidden=None):
        """Attention maps: a list of arrays (L, L), row = the token that asks, column = the one that answers.

        Rows of softmax attention sum to one; weights of cme may be negative. A hidden token answers nobody.

        Parameters
        ----------
        X : bags
        layer : int, default=0
            0 to layers - 1.
        head : int, default=0
        hidden : as in predict, default=None (all are shown)
        """
        layers, heads = self.settings["layers"], self.settings["heads"]
        for name, value, most in (("layer", layer, layers), ("head", head, heads)):
            if not 0 <= operator.index(value) < most:
                raise ArgumentError(f"{name} = {value}; it must be from 0 to {most - 1}")
        sequences = self._sequences(X)
        lengths = np.diff(sequences.offsets)
        out = np.empty(int((lengths**2).sum()))
        self._pass(sequences, hidden, layer=layer, map_head=head, maps=out)
        ends = np.cumsum(lengths**2)
        return [out[end - L * L:end].reshape(L, L) for L, end in zip(lengths, ends)]

    @signed([*parameters(PROBE, without=["layer"]), PROGRESS])
    def probe(self, X=None, y=None, *, layer=None, test_folds=5, test_fold=0, progress=None, **given):
        """What a linear map reads from the representation: fitted to some sequences, judged on others.

        Parameters
        ----------
        X, y : bags and labels; None: fresh sequences of the family or task that it was pretrained on
        layer : int or 'joint', default=None
            Representation after so many layers; None: the last one; 'joint': all side by side.
        test_folds, test_fold : int
            Of bags: which are held out.
        {parameters}

        Returns
        -------
        dict
            r2 (mean over columns), r2_least, r2_most, rmse; of classes accuracy, accuracy_se, log_loss; penalty, train,
            test, columns.

        Examples
        --------
        >>> import finetti
        >>> family = finetti.families.mean(noise=0.5)
        >>> encoder = finetti.Encoder.pretrain(family, L=6, M=2, width=8, heads=1, layers=1, steps=10, evaluate_on=8)
        >>> found = encoder.probe(target="posterior", train=200, test=200)
        >>> 0 < found["r2"] <= 1
        True
        """
        if X is None and given.get("target") is None:
            given["target"] = "posterior" if isinstance(self.source, Family) else "label"
        (probe,) = _settings(given, PROBE)
        probe.layer = -2 if layer == "joint" else self._layer(layer)
        supervised = probe.target == lib.FIN_PROBE_LABEL
        words = {name.partition(".")[2]: value for name, value in self._entries.items() if name.startswith("corpus.")}
        corpus = CORPUS.make({**words, "samples": 0, **({"objective": "supervised"} if supervised else {})})
        seed, judge = int(self._entries.get("seed", 1)), None
        if X is None:
            if self.source is None:
                raise ArgumentError("this encoder was pretrained on data: probe needs X and y")
            made = _Corpus(corpus, self.source, seed)
        else:
            sequences = self._sequences(X)
            labels, classes = (None, None) if y is None else _labels(y, sequences.bags)
            train, test = _folds(len(sequences), test_folds, test_fold)
            count = 0 if classes is None else len(classes)
            made = _Corpus(corpus, sequences, seed, train, labels, count)
            judge = _Corpus(corpus, sequences, seed, test, labels, count) if len(test) else None
        score = ffi.new("fin_probe_score *")
        with Watch(progress) as watch:
            watch.check(lib.fin_encoder_probe_on(self._pointer, made.pointer, judge.pointer if judge else ffi.NULL, probe,
                                                 score, ffi.NULL, 0, watch.pointer, watch.err))
        return {name: getattr(score, name) for name, _ in ffi.typeof("fin_probe_score").fields}

    def evaluate(self, L=None, sequences=2000, progress=None):
        """Risk, Bayes risk and excess with standard errors on fresh sequences of the source, as a dict.

        Parameters
        ----------
        L : int, default=None
            families: tokens in sight; None: as it was trained.
        sequences : int, default=2000
        """
        if self.source is None:
            raise ArgumentError("this encoder was pretrained on data, of which there is no more; test_ has what was held out")
        words = {name.partition(".")[2]: value for name, value in self._entries.items() if name.startswith("corpus.")}
        corpus = _Corpus(CORPUS.make({**words, "samples": 0}), self.source, int(self._entries["seed"]))
        return _evaluate(self._pointer, corpus, operator.index(sequences), -1 if L is None else operator.index(L), progress)

    # ---- inside -------------------------------------------------------------------------------

    def _layer(self, layer):
        most = self.settings["layers"]
        layer = most if layer is None else operator.index(layer)
        if not 0 <= layer <= most:
            raise ArgumentError(f"layer = {layer}; it must be from 0 to {most}")
        return layer

    def _sequences(self, X):
        none = np.zeros(self.inputs), np.ones(self.inputs)
        return _Sequences(X, *((self.center_, self.scale_) if self.center_ is not None else none),
                          keys=self.inputs - self.values)

    def _pass(self, sequences, hidden, **asked):
        hidden = _hidden(hidden, sequences.offsets)
        struct = ffi.new("fin_sequences *", (len(sequences), ffi.from_buffer("int64_t[]", sequences.offsets),
                                             ffi.from_buffer("float[]", sequences.tokens),
                                             ffi.NULL if hidden is None else ffi.from_buffer("uint8_t[]", hidden)))
        request = ffi.new("fin_pass *")
        for name, value in asked.items():
            if name == "answers":
                request.answers[0] = _arrays.doubles(value)
            else:
                setattr(request, name, value if isinstance(value, (int, np.integer)) else _arrays.doubles(value))
        err = error()
        check(lib.fin_encoder_pass(self._pointer, struct, request, err), err)

    def _raw(self, X, hidden):
        sequences = self._sequences(X)
        rows = len(sequences.tokens) if self.answers == "tokens" else len(sequences)
        out = np.empty((rows, self._width))
        self._pass(sequences, hidden, answers=out)
        return out

    def _per_token(self, X, hidden):
        sequences = self._sequences(X)
        out = np.empty((len(sequences.tokens), self._width))
        if hidden is not None:
            self._pass(sequences, hidden, answers=out)
        else:
            self._each_in_turn(sequences, out)
        out = self._units(out)
        lengths = np.diff(sequences.offsets)
        if (lengths == lengths[0]).all():
            return out.reshape(len(lengths), lengths[0], -1)
        return np.split(out, sequences.offsets[1:-1])

    def _each_in_turn(self, sequences, out):
        """Token t of every bag is hidden, for t = 0, 1, ..."""
        place = np.concatenate([np.arange(L) for L in np.diff(sequences.offsets)])
        room = np.empty_like(out)
        for t in range(int(place.max()) + 1):
            flat = np.ascontiguousarray(place == t, dtype=np.uint8)
            self._pass(sequences, flat, answers=room)
            out[place == t] = room[place == t]

    def _units(self, out):
        scaled, err = self.center_ is not None and self._size == self.values, error()
        units = [_arrays.doubles(array[-self.values:]) if scaled else ffi.NULL for array in (self.center_, self.scale_)]
        head = ffi.addressof(lib.fin_encoder_get_shape(self._pointer).head[0])
        check(lib.fin_head_say(head, len(out), *units, _arrays.doubles(out), err), err)
        return out


def _keys(keys):
    keys = operator.index(keys)
    if keys < 0:
        raise ArgumentError(f"keys = {keys}; it is a number of columns, from 0 on")
    return keys


def _hidden(hidden, offsets):
    if hidden is None:
        return None
    lengths = np.diff(offsets)
    flat = np.concatenate([np.ravel(one) for one in hidden]) if not (isinstance(hidden, np.ndarray) and hidden.ndim == 1) \
        else hidden
    if flat.shape != (offsets[-1],) or (isinstance(hidden, list) and [len(one) for one in hidden] != lengths.tolist()):
        raise ValueError(f"hidden has {flat.size} entries; one for each of the {offsets[-1]} tokens is needed")
    return np.ascontiguousarray(flat != 0, dtype=np.uint8)


def _create(settings, shape, seed):
    out, err = ffi.new("fin_encoder **"), error()
    check(lib.fin_encoder_create(out, settings, shape, seed, err), err)
    return ffi.gc(out[0], lib.fin_encoder_destroy)


# ---- what a file says of where it comes from -----------------------------------------------------

def _table_entries(before, table, struct):
    room = ffi.new("char[64]")
    return {f"{before}.{name}": text(lib.fin_settings_text(field.pointer, struct, room, 64))
            for name, field in table.fields.items()}


def _entries(source, corpus, seed, test_folds, test_fold):
    """As `finetti pretrain` writes them."""
    what = "family" if isinstance(source, Family) else "task" if source else "data"
    found = {"from": what, "seed": str(seed), **_table_entries("corpus", CORPUS, corpus)}
    if source is None:
        found.update({"data.patch": "0", "data.rows": "0", "data.test_folds": str(operator.index(test_folds)),
                      "data.test_fold": str(operator.index(test_fold)), "data.per_class": "0"})
        return found
    found[what] = source.name
    struct = lib.fin_latent_get_settings(source._latent) if what == "family" else lib.fin_task_get_settings(source._plain)
    found.update(_table_entries(what, source._kind.table, struct))
    return found


def _read_entries(file):
    """What `finetti pretrain` or `finetune` wrote of where an encoder comes from, in that order."""
    found = {}

    def take(*names):
        for name in names:
            value = text(lib.fin_checkpoint_entry(file, name.encode()))
            if value is not None:
                found[name] = value

    take("from", "seed", *(f"corpus.{name}" for name in CORPUS.fields))
    what = found.get("from", "data")
    kinds = {"family": FAMILIES, "task": TASKS}.get(what)
    if kinds:
        take(what)
        take(*(f"{what}.{name}" for name in find(kinds, found.get(what), what).table.fields))
    take(*(f"data.{name}" for name in ("path", "bag", "label", "kind", "columns", "keys", "patch", "rows", "test_folds",
                                       "test_fold", "per_class", "mark")))
    take("pretrained", "train", *(f"class.{c}" for c in range(256)))
    return found


def _source(entries):
    """The Family or Task of a file; None: data."""
    what = entries.get("from")
    if what not in ("family", "task"):
        return None
    kind = Family if what == "family" else Task
    table = (FAMILIES if what == "family" else TASKS)[entries[what]].table
    given = {name: entries[f"{what}.{name}"] for name in table.fields if f"{what}.{name}" in entries}
    usual = table.read(table.make({}))
    read = table.read(table.make(given))
    return kind(entries[what], {name: value for name, value in read.items() if value != usual[name]},
                seed=int(entries.get("seed", 1)))
