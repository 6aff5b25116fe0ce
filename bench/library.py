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
