"""What a Context is made of on this side: rows that come and go, the gate between asking and changing, pointers."""

import os
import queue
import threading
import weakref

import numpy as np

from ._core import UnsupportedError, check, error, ffi, lib

_DOUBLES = ffi.typeof("double[]")
_METHODS = ("none", "dual", "primal", "nystrom")


class Rows:
    """Rows of some matrices, such as keys and values, that come at the end and go at the front.

    What get() gave stays as it was.
    """

    def __init__(self, *arrays):
        self.buffers = [array.copy() for array in arrays]
        self.span = 0, len(arrays[0])  # first and end, changed in one step: len() is asked at any time

    def __len__(self):
        first, end = self.span
        return end - first

    def get(self, which):
        rows = self.buffers[which][slice(*self.span)]
        rows.flags.writeable = False
        return rows

    def reserve(self, count):
        """Room for `count` more, so that add() cannot fail."""
        here = len(self)
        if self.span[1] + count > len(self.buffers[0]):
            wider = [np.empty((max(2 * here, here + count), buffer.shape[1])) for buffer in self.buffers]
            for i, buffer in enumerate(wider):
                buffer[:here] = self.get(i)
            self.buffers, self.span = wider, (0, here)

    def add(self, *arrays):
        first, end = self.span
        for buffer, array in zip(self.buffers, arrays):
            buffer[end:end + len(array)] = array
        self.span = first, end + len(arrays[0])

    def keep(self, count):
        """Without those behind the first `count`."""
        self.span = self.span[0], self.span[0] + count

    def without(self, count):
        """The span without the first `count`."""
        return self.span[0] + count, self.span[1]


class Gate:
    """Many may ask at once, or one may change; whoever wants to change comes before later questions.

        me = object()                       gate.check()
        try:                                with gate.turn:
            gate.enter(me)                      gate.wait()
            ... asks ...                        ... changes ...
        finally:
            gate.asking.pop(me, None)
            gate.tell()

    Ctrl-C may come anywhere and leaves nobody waiting for ever: locks are held by `with` alone, which it cannot split
    (a Condition, or a context manager in Python, it can), the pop is one step, and wait() looks again by itself.
    A progress function may ask again, since the question that it belongs to keeps changes out; it cannot change
    anything, since that would wait for its own end.
    """

    def __init__(self):
        self.turn = threading.Lock()
        self.asking = {}  # questions that are being answered: the threads that ask them
        self.gone = None  # where those who leave tell it to the one who waits
        self.changes = False  # with `turn` locked: somebody changes
        _gates.add(self)

    def enter(self, me):
        if not self.asking or not self._asks():
            with self.turn:
                self.changes = False
                self.asking[me] = threading.get_ident()

    def _asks(self):
        """Whether this thread is inside already, that is, in a progress function."""
        return threading.get_ident() in list(self.asking.values())

    def tell(self):
        gone = self.gone
        if gone is not None:
            gone.put(None)

    def check(self):
        if self._asks():
            raise RuntimeError("a progress function cannot change the context that it is called for; change it after "
                               "the call")

    def wait(self):
        """Until nobody asks; holding `turn` keeps others from beginning."""
        self.changes = False
        self.gone = gone = queue.SimpleQueue()
        try:
            while self.asking:
                try:
                    gone.get(timeout=0.1)
                except queue.Empty:
                    pass
        finally:
            self.gone = None
        self.changes = True


class _Broken:
    """In place of a lock."""

    def __enter__(self):
        raise RuntimeError("another thread was changing this context when the process was forked, so that it is half "
                           "done here; make it anew")

    def __exit__(self, *what):
        pass


_gates = weakref.WeakSet()


def _forked():
    """Of the threads only the one that forked is in the child: what others were asking is over."""
    for gate in list(_gates):
        broken = gate.changes and gate.turn.locked()
        if not isinstance(gate.turn, _Broken):
            gate.__init__()
        if broken:
            gate.turn = _Broken()


os.register_at_fork(after_in_child=_forked)


def at(array):
    """Pointer to an array of doubles that has been checked; NULL for None."""
    return ffi.NULL if array is None else ffi.from_buffer(_DOUBLES, array)


def get_info(cross):
    """The fin_cross_info of a fin_cross."""
    info = ffi.new("fin_cross_info *")
    lib.fin_cross_get_info(cross, info)
    return info


def describe(info):
    """The same as a dict."""
    return {"method": _METHODS[info.method], **{name: getattr(info, name) for name in (
        "tokens", "features", "jitter", "residual", "moved", "bytes")}}


def check_memory(struct, dk, dv, capacity, times=1):
    """UnsupportedError if the context would not fit into this machine."""
    err = error()
    needed = ffi.new("double *")
    check(lib.fin_cross_bytes(struct, dk, dv, capacity, needed, err), err)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 0 < machine < needed[0] * times:
        raise UnsupportedError(f"{capacity} tokens take {needed[0] * times / 1e9:.3g} GB and this machine has "
                               f"{machine / 1e9:.3g} GB; method='nystrom' takes less")
