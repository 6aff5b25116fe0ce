"""The few calls of libfinetti that are timed, through ctypes, on NumPy arrays.

A call through ctypes costs about a microsecond; the smallest thing timed here takes thirty.
"""

import ctypes
import os
import shutil
import tempfile
from ctypes import POINTER, byref, c_double, c_int, c_int64, c_uint32, c_uint64, c_void_p

import numpy as np

F32, F64 = 0, 1  # fin_dtype
AMBIENT = 1  # FIN_TASK_AMBIENT


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", ctypes.c_char * 512)]


class Batch(ctypes.Structure):
    _fields_ = [("n", c_int64), ("d", c_int64), ("dtype", c_int), ("tokens", c_void_p), ("offsets", c_void_p)]


class Gradient(ctypes.Structure):
    _fields_ = [("k", c_void_p), ("v", c_void_p), ("lam", c_double), ("c", c_double)]


class FormSettings(ctypes.Structure):
    _fields_ = [("lam", c_double), ("c", c_double)]


class Settings(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("fields", c_void_p), ("count", c_int), ("size", ctypes.c_size_t)]


class Schedule(ctypes.Structure):
    _fields_ = [("count", c_int64), ("step", c_void_p), ("value", c_void_p)]


class Start(ctypes.Structure):
    _fields_ = [("count", c_int64), ("overlaps", c_void_p), ("k", c_void_p), ("v", c_void_p), ("lam", Schedule),
                ("alpha", Schedule)]


class Run(ctypes.Structure):
    _fields_ = [("status", c_int), ("step", c_int64), ("now", c_double * 11), ("converged_at", c_double),
                ("stuck_at", c_double), ("left_at", c_double)]


class CrossBatchStruct(ctypes.Structure):
    _fields_ = [("n", c_int64), ("dk", c_int64), ("dv", c_int64), ("dtype", c_int), ("offsets", c_void_p),
                ("query_offsets", c_void_p), ("keys", c_void_p), ("values", c_void_p), ("queries", c_void_p)]


SIGNATURES = {
    "fin_kernel_name": (ctypes.c_char_p, []),
    "fin_threads_set": (None, [c_int]),
    "fin_random_normals_f32": (None, [c_uint64, c_uint32, c_uint64, c_int64, c_int64, c_void_p]),
    "fin_random_normals_f64": (None, [c_uint64, c_uint32, c_uint64, c_int64, c_int64, c_void_p]),
    "fin_task_find": (c_void_p, [ctypes.c_char_p]),
    "fin_task_create": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_uint64, c_int, POINTER(Error)]),
    "fin_task_destroy": (None, [c_void_p]),
    "fin_task_k_star": (POINTER(c_double), [c_void_p]),
    "fin_task_v_star": (POINTER(c_double), [c_void_p]),
    "fin_task_offsets": (c_int, [c_void_p, c_uint64, c_int64, c_void_p, POINTER(Error)]),
    "fin_task_draw": (c_int, [c_void_p, c_uint64, c_int64, c_int, c_void_p, c_void_p, c_void_p, c_void_p,
                              POINTER(Error)]),
    "fin_form_find": (c_void_p, [ctypes.c_char_p]),
    "fin_attention_create": (c_int, [POINTER(c_void_p), c_void_p, POINTER(FormSettings), c_int64, c_int, c_int64,
                                     POINTER(Error)]),
    "fin_attention_destroy": (None, [c_void_p]),
    "fin_attention_set": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(Error)]),
    "fin_attention_loss": (c_int, [c_void_p, POINTER(Batch), c_void_p, c_void_p, POINTER(c_double),
                                   POINTER(Gradient), POINTER(Error)]),
    "fin_risk_erf": (c_int, [c_int64, c_void_p, c_void_p, POINTER(Error)]),
    "fin_settings_defaults": (None, [POINTER(Settings), c_void_p, ctypes.c_size_t]),
    "fin_settings_parse": (c_int, [POINTER(Settings), c_void_p, ctypes.c_char_p, ctypes.c_char_p, POINTER(Error)]),
    "fin_task_kind_table": (POINTER(Settings), [c_void_p]),
    "fin_form_table": (POINTER(Settings), [c_void_p]),
    "fin_train_create": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(Start),
                                 POINTER(Error)]),
    "fin_train_destroy": (None, [c_void_p]),
    "fin_train_run": (c_int, [c_void_p, c_int64, c_void_p, POINTER(Error)]),
    "fin_train_get_run": (c_int, [c_void_p, c_int64, POINTER(Run), POINTER(Error)]),
    "fin_cross_create": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, c_int64, c_int64, c_int64, POINTER(Error)]),
    "fin_cross_destroy": (None, [c_void_p]),
    "fin_cross_bytes": (c_int, [c_void_p, c_int64, c_int64, c_int64, POINTER(c_double), POINTER(Error)]),
    "fin_cross_load": (c_int, [c_void_p, c_int64, c_void_p, c_void_p, c_void_p, POINTER(Error)]),
    "fin_cross_prefix": (c_int, [c_void_p, c_int64, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(Error)]),
    "fin_cross_forward": (c_int, [c_void_p, POINTER(CrossBatchStruct), c_void_p, c_void_p, POINTER(Error)]),
}


def aligned(shape, dtype):
    """An array that begins at a cache line, as those of PyTorch do."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    block = np.zeros(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start:start + size].view(dtype).reshape(shape)


class Library:
    """libfinetti with the kernels of `kernel` (None: the best ones).

    The kernels are chosen at a library's first call, for good. A second choice in the same process
    is a second copy of the file, which the loader takes for another library.
    """

    def __init__(self, path, kernel=None):
        self.error = Error()
        before = os.environ.pop("FINETTI_KERNEL", None)
        if kernel:
            os.environ["FINETTI_KERNEL"] = kernel
            with tempfile.TemporaryDirectory() as folder:
                copy = os.path.join(folder, f"libfinetti-{kernel}.so")
                shutil.copyfile(path, copy)
                self.calls = ctypes.CDLL(copy)
        else:
            self.calls = ctypes.CDLL(path)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.calls, name)
            function.restype, function.argtypes = result, arguments
        self.kernel = self.calls.fin_kernel_name().decode()
        os.environ.pop("FINETTI_KERNEL", None)
        if before is not None:
            os.environ["FINETTI_KERNEL"] = before
        self.threads(1)

    def check(self, status):
        if status:
            raise RuntimeError(self.error.message.decode())

    def threads(self, count):
        self.calls.fin_threads_set(count)

    def settings(self, table, values):
        """A settings struct: the defaults, and what `values` says."""
        block = ctypes.create_string_buffer(table.contents.size)
        self.calls.fin_settings_defaults(table, block, table.contents.size)
        for name, value in values.items():
            self.check(self.calls.fin_settings_parse(table, block, name.encode(), str(value).encode(),
                                                     byref(self.error)))
        return block

    # Calls ready to be made: Python's share of the work is done before the clock runs.

    def normals(self, out):
        draw = self.calls.fin_random_normals_f32 if out.dtype == np.float32 else self.calls.fin_random_normals_f64
        arguments = (1, 1024, 0, 0, out.size, out.ctypes.data)
        return lambda: draw(*arguments)

    def risk(self, points, values):
        arguments = (len(points), points.ctypes.data, values.ctypes.data, byref(self.error))
        return lambda: self.check(self.calls.fin_risk_erf(*arguments))


class Tokens:
    """n samples of single-location regression at the paper's setting: d = 400, L = 10, float."""

    d, L = 400, 10

    def __init__(self, library, n):
        self.library, self.n, self.task = library, n, c_void_p()
        calls = library.calls
        library.check(calls.fin_task_create(byref(self.task), calls.fin_task_find(b"slr"), None, None, 1, AMBIENT,
                                            byref(library.error)))
        self.offsets = np.empty(n + 1, np.int64)
        k, v = (calls.fin_task_k_star(self.task), calls.fin_task_v_star(self.task))
        self.k_star, self.v_star = np.array(k[:self.d]), np.array(v[:self.d])
        self.x = aligned((n * self.L, self.d), np.float32)
        self.y = np.empty(n)
        library.check(calls.fin_task_offsets(self.task, 0, n, self.offsets.ctypes.data, byref(library.error)))
        self.draw()

    def draw(self):
        self.library.check(self.library.calls.fin_task_draw(
            self.task, 0, self.n, F32, self.offsets.ctypes.data, self.x.ctypes.data, self.y.ctypes.data, None,
            byref(self.library.error)))

    def __del__(self):
        self.library.calls.fin_task_destroy(self.task)


class Attention:
    """loss(): the squared error over the tokens and its gradients in k, v and lam."""

    def __init__(self, library, form, tokens, k, v, lam):
        self.library, self.tokens = library, tokens  # tokens: kept alive, borrowed by the batch
        self.object = c_void_p()
        calls, error = library.calls, byref(library.error)
        library.check(calls.fin_attention_create(byref(self.object), calls.fin_form_find(form.encode()),
                                                 byref(FormSettings(lam, 0)), tokens.d, F32, tokens.L, error))
        library.check(calls.fin_attention_set(self.object, None, k.ctypes.data, v.ctypes.data, error))
        self.batch = Batch(tokens.n, tokens.d, F32, tokens.x.ctypes.data, tokens.offsets.ctypes.data)
        self.gradient_k, self.gradient_v = np.zeros(tokens.d), np.zeros(tokens.d)
        self.gradient = Gradient(self.gradient_k.ctypes.data, self.gradient_v.ctypes.data, 0, 0)
        self.total = c_double()
        self.arguments = (self.object, byref(self.batch), tokens.y.ctypes.data, None, byref(self.total),
                          byref(self.gradient), error)

    def loss(self):
        self.gradient_k.fill(0)
        self.gradient_v.fill(0)
        self.gradient.lam = self.total.value = 0
        self.library.check(self.library.calls.fin_attention_loss(*self.arguments))
        return self.total.value, self.gradient_k, self.gradient_v, self.gradient.lam

    def __del__(self):
        self.library.calls.fin_attention_destroy(self.object)


class Training:
    """Called: makes the runs, takes them to their last step, forgets them."""

    def __init__(self, library, settings, task, form="erf", overlaps=None, vectors=None, **form_settings):
        """Settings are dicts of what is not the default. overlaps: (count, 5), or vectors: (count, 2, d)."""
        calls, error = library.calls, byref(library.error)
        settings, kind = dict(settings), calls.fin_task_find(b"slr")
        ambient = settings.get("engine") == "ambient"
        self.library, self.task = library, c_void_p()
        library.check(calls.fin_task_create(
            byref(self.task), kind, library.settings(calls.fin_task_kind_table(kind), task), None, 1,
            AMBIENT if ambient else 0, error))
        self.form = calls.fin_form_find(form.encode())
        self.form_settings = library.settings(calls.fin_form_table(self.form), form_settings)
        self.start = None
        if overlaps is not None:
            self.arrays = [np.ascontiguousarray(overlaps, float)]
            self.start = Start(len(overlaps), self.arrays[0].ctypes.data)
            settings["init"] = "overlaps"
        if vectors is not None:
            self.arrays = [np.ascontiguousarray(vectors[:, i], float) for i in (0, 1)]
            self.start = Start(len(vectors), None, *(array.ctypes.data for array in self.arrays))
            settings["init"] = "vectors"
        settings.setdefault("log_every", max(1, settings["steps"]))  # the first and the last
        self.steps, self.runs, self.L, self.d = settings["steps"], settings["runs"], task["L"], task["d"]
        table = ctypes.pointer(Settings.in_dll(calls, "fin_train_table"))
        self.settings = library.settings(table, settings)

    def make(self):
        train, library = c_void_p(), self.library
        library.check(library.calls.fin_train_create(
            byref(train), self.task, self.form, self.form_settings, self.settings, self.start and byref(self.start),
            byref(library.error)))
        return train

    def __call__(self):
        train, library = self.make(), self.library
        try:
            library.check(library.calls.fin_train_run(train, self.steps, None, byref(library.error)))
        finally:
            library.calls.fin_train_destroy(train)

    def final(self):
        """(runs, 5): the overlaps at the end. A run that stopped before is an error: it would cost less."""
        train, library, run, overlaps = self.make(), self.library, Run(), []
        try:
            library.check(library.calls.fin_train_run(train, self.steps, None, byref(library.error)))
            for i in range(self.runs):
                library.check(library.calls.fin_train_get_run(train, i, byref(run), byref(library.error)))
                if run.step != self.steps:
                    raise RuntimeError(f"run {i} stopped at step {run.step} of {self.steps}")
                overlaps.append(run.now[:5])
        finally:
            library.calls.fin_train_destroy(train)
        return np.array(overlaps)

    def directions(self):
        calls = self.library.calls
        return (np.array(star(self.task)[:self.d]) for star in (calls.fin_task_k_star, calls.fin_task_v_star))

    def tokens(self, first, n, dtype):
        """Samples as the ambient engine draws them: tokens (n, L, d) and outputs (n)."""
        x, y, offsets = np.empty((n, self.L, self.d), dtype), np.empty(n), np.arange(n + 1) * self.L
        self.library.check(self.library.calls.fin_task_draw(
            self.task, first, n, F64 if dtype == np.float64 else F32, offsets.ctypes.data, x.ctypes.data, y.ctypes.data,
            None, byref(self.library.error)))
        return x, y

    def __del__(self):
        self.library.calls.fin_task_destroy(self.task)


def cross_settings(library, settings):
    return library.settings(ctypes.pointer(Settings.in_dll(library.calls, "fin_cross_table")), settings)


class Cross:
    """One context of at most `capacity` tokens."""

    def __init__(self, library, settings, dk, dv, capacity):
        self.library, self.object, stated = library, c_void_p(), c_double()
        calls, error, block = library.calls, byref(library.error), cross_settings(library, settings)
        library.check(calls.fin_cross_bytes(block, dk, dv, capacity, byref(stated), error))
        library.check(calls.fin_cross_create(byref(self.object), block, None, dk, dv, capacity, error))
        self.bytes = stated.value

    def load(self, keys, values):
        self.library.check(self.library.calls.fin_cross_load(
            self.object, len(keys), keys.ctypes.data, values.ctypes.data, None, byref(self.library.error)))

    def prefix(self, queries, answers, errors, scores):
        self.library.check(self.library.calls.fin_cross_prefix(
            self.object, len(queries), queries.ctypes.data, answers.ctypes.data, errors.ctypes.data,
            scores.ctypes.data, None, byref(self.library.error)))

    def __del__(self):
        self.library.calls.fin_cross_destroy(self.object)


class CrossBatch:
    """forward(): queries (n, m, dk) attend to keys (n, L, dk) and values (n, L, dv), all of one type."""

    def __init__(self, library, settings, keys, values, queries):
        self.library, self.arrays = library, (keys, values, queries)  # borrowed
        n, L, dk = keys.shape
        m, dv = queries.shape[1], values.shape[2]
        self.settings = cross_settings(library, settings)
        self.offsets, self.query_offsets = (np.arange(n + 1, dtype=np.int64) * width for width in (L, m))
        self.out = aligned((n, m, dv), keys.dtype)
        self.batch = CrossBatchStruct(n, dk, dv, F32 if keys.dtype == np.float32 else F64, self.offsets.ctypes.data,
                                      self.query_offsets.ctypes.data, keys.ctypes.data, values.ctypes.data,
                                      queries.ctypes.data)
        self.arguments = (self.settings, byref(self.batch), self.out.ctypes.data, None, byref(library.error))

    def forward(self):
        self.library.check(self.library.calls.fin_cross_forward(*self.arguments))
