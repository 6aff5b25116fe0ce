"""What a Context is made of on this side: rows that come and go, the gate between asking and changing, memory."""

import os
import threading

import numpy as np

from ._core import UnsupportedError, check, error, ffi, lib


class Rows:
    """Rows that come at the end and go at the front. What get() gave stays as it was."""

    def __init__(self, rows):
        self.buffer = rows.copy()
        self.first, self.end = 0, len(rows)

    def get(self):
        rows = self.buffer[self.first:self.end]
        rows.flags.writeable = False
        return rows

    def reserve(self, count):
        """Room for `count` more, so that add() cannot fail."""
        if self.end + count > len(self.buffer):
            rows = self.get()
            self.buffer = np.empty((max(2 * len(rows), len(rows) + count), rows.shape[1]))
            self.buffer[:len(rows)] = rows
            self.first, self.end = 0, len(rows)

    def add(self, rows):
        self.buffer[self.end:self.end + len(rows)] = rows
        self.end += len(rows)

    def clear(self):
        self.first = self.end


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


def check_memory(struct, dk, dv, capacity, times=1):
    """UnsupportedError if the context would not fit into this machine."""
    err = error()
    needed = ffi.new("double *")
    check(lib.fin_cross_bytes(struct, dk, dv, capacity, needed, err), err)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 0 < machine < needed[0] * times:
        raise UnsupportedError(f"{capacity} tokens take {needed[0] * times / 1e9:.3g} GB and this machine has "
                               f"{machine / 1e9:.3g} GB; method='nystrom' takes less")
