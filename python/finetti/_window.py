"""What a Context is made of on this side: rows that come and go, the gate between asking and changing, pointers."""

import os
import threading

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
        self.first, self.end = 0, len(arrays[0])

    def __len__(self):
        return self.end - self.first

    def get(self, which):
        rows = self.buffers[which][self.first:self.end]
        rows.flags.writeable = False
        return rows

    def reserve(self, count):
        """Room for `count` more, so that add() cannot fail."""
        if self.end + count > len(self.buffers[0]):
            here, room = len(self), max(2 * len(self), len(self) + count)
            wider = [np.empty((room, buffer.shape[1])) for buffer in self.buffers]
            for i, buffer in enumerate(wider):
                buffer[:here] = self.get(i)
            self.buffers, self.first, self.end = wider, 0, here

    def add(self, *arrays):
        for buffer, array in zip(self.buffers, arrays):
            buffer[self.end:self.end + len(array)] = array
        self.end += len(arrays[0])


class Gate:
    """Many may ask at once, or one may change; whoever wants to change comes before later questions.

        with gate.turn:                     with gate.turn:
            gate.entered += 1                   gate.wait()
        ... asks ...                            ... changes ...
        gate.leave()

    Counting by hand costs a question less than a context manager would.
    """

    def __init__(self):
        self.turn, self.lock = threading.Lock(), threading.Lock()
        self.gone = threading.Condition(self.lock)
        self.entered = self.left = 0  # those who ask: the former under `turn`, the latter under `lock`
        self.waits = False

    def leave(self):
        with self.lock:
            self.left += 1
            if self.waits:
                self.gone.notify()

    def wait(self):
        """Until nobody asks; holding `turn` keeps others from beginning."""
        with self.lock:
            self.waits = True
            try:
                while self.entered != self.left:
                    self.gone.wait()
            finally:
                self.waits = False


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
