"""Stores: the SQLite files that studies leave."""

import os
import shutil
import tempfile
import threading
import weakref
from contextlib import nullcontext

from ._columns import Columns
from ._core import ArgumentError, Watch, check, error, ffi, lib, text
from ._texts import encoded
from ._view import View

_MODES = {"read": lib.FIN_STORE_READ, "write": lib.FIN_STORE_WRITE, "create": lib.FIN_STORE_CREATE}
_STUDY = ("name", "title", "source", "planned", "done", "failed", "claims", "held", "seconds", "full")
_SESSION = ("study", "total", "done", "failed", "ranks", "threads", "seconds", "left", "silent", "ended", "alive")
_DIFFERENCE = ("study", "hash", "what", "left", "right", "in_left", "in_right")


class Store(View):
    """A file with the runs of studies, as `finetti study run` and finetti.study leave it.

    Besides what is here it answers the questions of a study's result (runs, scalars, series, claims, figures, figure,
    report, export), about all of its studies or, with study="...", about one.

    Parameters
    ----------
    path : str or path, default=None
        The file. None: a temporary one, which goes when the object goes.
    mode : {'read', 'write', 'create'}, default='read'
        'write': the file must exist; 'create': it is made if it does not.

    Examples
    --------
    >>> import finetti
    >>> result = finetti.study({"study": "tour", "runs": [{"command": "risk", "axes": {"lam": [0.1, 0.2]}}]})
    >>> with result.store as store:
    ...     store.studies()["done"].tolist(), store.scalars(study="tour", where={"lam": 0.1})["risk"].round(4).tolist()
    ([2], [0.1135])
    """

    def __init__(self, path=None, mode="read"):
        if mode not in _MODES:
            raise ArgumentError(f"mode is {mode!r}; it can be 'read', 'write' or 'create'")
        folder = None
        if path is None:
            folder = tempfile.mkdtemp(prefix="finetti-")
            path, mode = os.path.join(folder, "store.db"), "create"
        elif mode != "create" and not os.path.exists(path):
            raise FileNotFoundError(f"there is no store {os.fspath(path)!r}; finetti.study(..., store=path) makes one")
        self.path = path if isinstance(path, bytes) else os.fspath(path)
        self.mode = mode
        # One question at a time: a store is one connection to a file. The lock is held by `with` alone, which Ctrl-C
        # cannot split, and a progress function may ask again.
        self._lock = threading.RLock()
        out = ffi.new("fin_store **")
        err = error()
        status = lib.fin_store_open(encoded(path, "path"), _MODES[mode], out, err)
        if status and folder:
            shutil.rmtree(folder, ignore_errors=True)
        check(status, err)
        self._pointer, self._gone = out[0], "is closed"
        self._finish = weakref.finalize(self, _close, out[0], folder, os.getpid())
        _open.add(self)

    @property
    def _store(self):
        return self

    def _get(self):
        """The pointer, for somebody who holds the lock."""
        if self._pointer is None:
            raise ValueError(f"the store {self.path!r} {self._gone}")
        return self._pointer

    def close(self):
        """Closes the file, and removes it if it is a temporary one. Everything else is then an error."""
        if self._lock._is_owned():
            raise RuntimeError("a progress function cannot close the store that it is called for; close it after the "
                               "call")
        with self._lock:
            self._pointer = None
            self._finish()

    def __reduce__(self):
        raise TypeError(f"a store is an open file and cannot be pickled; hand over its path, {self.path!r}, and open "
                        "it there: Store(path)")

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

    def __repr__(self):
        return f"Store({self.path!r}, mode={self.mode!r})" + (" (closed)" if self._pointer is None else "")

    def studies(self):
        """The studies: name, title, source, planned, done, failed, claims, held (claims that hold), seconds, full."""
        rows = []
        self._ask(lib.fin_store_studies, lib.finpy_study_row, take=lambda row: rows.append(_fields(row, _STUDY)))
        return Columns.from_rows(_STUDY, rows)

    def sessions(self):
        """What is running on the store, or ran last, in this process or in others."""
        rows = []
        self._ask(lib.fin_store_sessions, lib.finpy_session_row, take=lambda row: rows.append(_fields(row, _SESSION)))
        return Columns.from_rows(_SESSION, rows)

    def judge(self, study=None):
        """Judges the claims of a study, or of all, anew by what the store holds."""
        with self._lock, Watch() as watch:
            name = ffi.NULL if study is None else encoded(study, "study")
            watch.check(lib.fin_store_judge(self._get(), name, watch.err))

    def check(self):
        """Raises FormatError if the file is damaged."""
        with self._lock, Watch() as watch:
            watch.check(lib.fin_store_check(self._get(), watch.err))

    def merge(self, other, *, force=False):
        """Takes over what another store has; returns how many runs were added, the same and replaced.

        Parameters
        ----------
        other : path or Store
        force : bool, default=False
            Runs that both have must be equal; True: the newer version wins.
        """
        count = ffi.new("fin_merge_count *")
        other = other.path if isinstance(other, Store) else other
        with self._lock, Watch() as watch:
            watch.check(lib.fin_store_merge(self._get(), encoded(other, "other"), bool(force), count, watch.err))
        return {"added": count.added, "same": count.same, "replaced": count.replaced, "studies": count.studies}

    def diff(self, other, *, tolerance=0.0):
        """What differs from another store: runs that one of them lacks, and numbers that are not equal.

        Parameters
        ----------
        other : path or Store
        tolerance : float, default=0.0
            Numbers are equal if they differ by at most this much of the larger of them and 1.
        """
        rows = []
        with Store(other) if not isinstance(other, Store) else nullcontext(other) as right:
            first, second = sorted((self, right), key=id)  # two threads that compare both ways do not block each other
            with first._lock, second._lock, Watch() as watch:
                watch.take = lambda row: rows.append(_fields(row, _DIFFERENCE))
                watch.check(lib.fin_store_diff(self._get(), right._get(), tolerance, lib.finpy_difference_row,
                                               watch.handle, ffi.new("int64_t *"), watch.err))
        return Columns.from_rows(_DIFFERENCE, rows)

    def gc(self, drop=None, *, dry=False):
        """Removes runs that no study plans; returns what went: runs, studies, bytes.

        Parameters
        ----------
        drop : str, default=None
            A study that goes too, with its runs.
        dry : bool, default=False
            Only say what would go.
        """
        count = ffi.new("fin_gc_count *")
        with self._lock, Watch() as watch:
            name = ffi.NULL if drop is None else encoded(drop, "drop")
            watch.check(lib.fin_store_gc(self._get(), name, bool(dry), count, watch.err))
        return {"runs": count.runs, "studies": count.studies, "bytes": count.bytes}


def _close(pointer, folder, process):
    if os.getpid() != process:  # a child that was forked must not take the file away from its parent
        return
    lib.fin_store_close(pointer)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


_open = weakref.WeakSet()


def _forked():
    """SQLite's own rule: a connection does not go through a fork."""
    for store in list(_open):
        store._lock, store._pointer = threading.RLock(), None
        store._gone = "was opened before this process was forked; open it again: Store(path)"


os.register_at_fork(after_in_child=_forked)


def _fields(row, names):
    values = (getattr(row, name) for name in names)
    return tuple(value if isinstance(value, (int, float)) else text(value) for value in values)
