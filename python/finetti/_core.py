"""The bridge to the C library: loading it, its errors, its settings tables, its progress.

Everything else in the package goes through the few names here:

    ffi, lib          cffi's two objects
    check(status, err)  an exception if a call failed, with the library's own sentence
    error()           a fin_error to hand to a call
    Table             a settings table: fields, defaults, a filled-in struct
    Watch             progress, cancelling and Ctrl-C of a long call
    encoded(path)     the name of a file as C takes it
    missing(package)  the sentence for a package that is not installed
"""

import operator
import os
import sys
import threading
import warnings


# Packages that the library needs here and there: what pip and Debian call them.
_PACKAGES = {"_cffi_backend": ("cffi", "python3-cffi-backend"), "numpy": ("numpy", "python3-numpy"),
             "scipy": ("scipy", "python3-scipy"), "sklearn": ("scikit-learn", "python3-sklearn"),
             "pandas": ("pandas", "python3-pandas"), "tqdm": ("tqdm", "python3-tqdm")}


def missing(module, what):
    """The sentence for a module that is not installed, or None for one of no package that is known here."""
    pip, debian = _PACKAGES.get((module or "").partition(".")[0], (None, None))
    return pip and (f"{what} needs {pip}, which is not installed: 'pip install {pip}', or on Debian "
                    f"'apt install {debian}'")


try:
    from ._finetti import ffi, lib
except ImportError as problem:  # the module, or a library below it, is not there
    raise ImportError(missing(problem.name, "finetti") or
        f"finetti cannot load its C library ({problem}). Build and install the wheel with 'make wheel' and "
        "'pip install'; on Debian the libraries that it needs are installed by tools/setup.sh") from problem

__version__ = f"{lib.FIN_VERSION_MAJOR}.{lib.FIN_VERSION_MINOR}.{lib.FIN_VERSION_PATCH}"


def text(pointer):
    """A C string as str; None for NULL."""
    return None if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


if text(lib.fin_version()) != __version__:
    raise ImportError(
        f"finetti {__version__} found the shared library of version {text(lib.fin_version())}: another libfinetti "
        f"comes before the one beside this package (LD_LIBRARY_PATH is {os.environ.get('LD_LIBRARY_PATH', '')!r}, "
        f"LD_PRELOAD is {os.environ.get('LD_PRELOAD', '')!r}). Unset these, or install the package that belongs to "
        "that library")

_forked = False


def _after_fork():
    """The OpenMP run-time does not survive a fork: a child that asked for its threads would wait for ever."""
    global _forked
    _forked = True
    lib.fin_threads_set(1)


os.register_at_fork(after_in_child=_after_fork)


# ---- errors -----------------------------------------------------------------------------------

class FinettiError(Exception):
    """A call of the C library failed. The message is the library's own; `status` is its name for the kind.

    >>> import finetti
    >>> try:
    ...     finetti.risk(L=0)
    ... except finetti.FinettiError as problem:
    ...     print(problem.status)
    invalid argument
    """

    status = ""


class ArgumentError(FinettiError, ValueError):
    """A setting or an array is not what it has to be.

    >>> import finetti
    >>> finetti.risk(L=0)
    Traceback (most recent call last):
    finetti._core.ArgumentError: ...
    """


class OutOfMemoryError(FinettiError, MemoryError):
    """Not enough memory.

    >>> import finetti
    >>> issubclass(finetti.OutOfMemoryError, MemoryError)
    True
    """


class FileError(FinettiError, OSError):
    """A file cannot be read or written.

    >>> import finetti
    >>> finetti.datasets.read_bags("no such file.csv")
    Traceback (most recent call last):
    finetti._core.FileError: ...
    """


class FormatError(FinettiError, ValueError):
    """A file, or what it holds, is malformed.

    >>> import finetti, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.fin")
    ...     open(path, "w").close()
    ...     finetti.load_model(path)
    Traceback (most recent call last):
    finetti._core.FormatError: ...
    """


class UnsupportedError(FinettiError, ValueError):
    """Not available for this combination of settings.

    >>> import finetti, numpy as np
    >>> finetti.Context(np.eye(2), np.ones(2), form="softmax").evidence()
    Traceback (most recent call last):
    finetti._core.UnsupportedError: ...
    """


class NumericalError(FinettiError, ArithmeticError):
    """Numbers left their range, or a matrix has no inverse.

    >>> import finetti, numpy as np
    >>> finetti.Context(np.ones((2, 1)), np.arange(2.0), noise=0)  # one key, two values, and no noise
    Traceback (most recent call last):
    finetti._core.NumericalError: ...
    """


class CancelledError(FinettiError):
    """A progress callback asked for the end.

    >>> import finetti
    >>> finetti.risk(form="softmax", method="simulation", progress=lambda what, done, all: True)
    Traceback (most recent call last):
    finetti._core.CancelledError: ...
    """


_ERRORS = {
    lib.FIN_ERR_ARGUMENT: ArgumentError,
    lib.FIN_ERR_MEMORY: OutOfMemoryError,
    lib.FIN_ERR_IO: FileError,
    lib.FIN_ERR_FORMAT: FormatError,
    lib.FIN_ERR_UNSUPPORTED: UnsupportedError,
    lib.FIN_ERR_NUMERIC: NumericalError,
    lib.FIN_ERR_CANCELLED: CancelledError,
}
for _code, _kind in _ERRORS.items():
    _kind.status = text(lib.fin_status_name(_code))


def error():
    """A fin_error for a call to write into."""
    return ffi.new("fin_error *")


def check(status, err):
    """Raises what `status` stands for, with the library's sentence; does nothing for FIN_OK."""
    if status:
        raise _ERRORS.get(status, FinettiError)(text(err.message) or text(lib.fin_status_name(status)))


# ---- settings tables --------------------------------------------------------------------------

class Field:
    """One row of a settings table."""

    __slots__ = ("name", "kind", "default", "lowest", "highest", "choices", "meaning", "pointer")

    def __init__(self, row):
        self.pointer = row
        self.name = text(row.name)
        self.meaning = text(row.meaning)
        self.choices = None
        self.lowest, self.highest = row.lowest, row.highest
        if row.type == lib.FIN_TYPE_choice:
            self.kind = str
            self.choices = tuple(text(row.names).split("|"))
            self.default = self.choices[int(row.fallback)]
            return
        self.kind = int if row.type == lib.FIN_TYPE_int64_t else float
        self.default = "auto" if lib.fin_is_auto(row.fallback) else self.kind(row.fallback)

    def number(self, value):
        """`value` as the double that the library takes, or an error that says what is allowed."""
        plain = value.item() if getattr(value, "ndim", None) == 0 else value  # a scalar of NumPy, an array of no axes
        try:
            if self.kind is int and not isinstance(plain, float):
                number = operator.index(plain)  # refuses what is not a whole number, and arrays
                if abs(number) > 1 << 53:
                    raise OverflowError
                return number
            if self.kind is not str and not hasattr(plain, "__len__"):  # text and arrays of one number have a length
                return float(plain)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            raise ArgumentError(f"{self.name} is too {'large' if plain > 0 else 'small'}; it must be {self.range()}") \
                from None
        raise TypeError(f"{self.name} must be {self.range()}, not {value!r} ({type(value).__name__})")

    def range(self):
        """The allowed values, for people."""
        if self.choices:
            return "one of " + ", ".join(repr(name) for name in self.choices)
        kind = "a whole number" if self.kind is int else "a number"
        automatic = ", or 'auto'" if self.default == "auto" else ""
        return f"{kind} from {self.lowest:.16g} to {self.highest:.16g}{automatic}"


class Table:
    """A settings table of the library (a fin_settings) and the struct that it describes."""

    def __init__(self, pointer, ctype):
        self.pointer = pointer
        self.ctype = ctype + " *"
        self.name = text(pointer.name)
        self.fields = {}
        for i in range(pointer.count):
            field = Field(pointer.fields + i)
            self.fields[field.name] = field

    def make(self, values):
        """A struct with the defaults and `values` (name: number, name of a choice, or 'auto'; None: the default)."""
        struct = ffi.new(self.ctype)
        lib.fin_settings_defaults(self.pointer, struct, ffi.sizeof(struct[0]))
        for name, value in values.items():
            if value is not None:
                self.set(struct, name, value)
        err = error()
        check(lib.fin_settings_validate(self.pointer, struct, err), err)
        return struct

    def set(self, struct, name, value):
        field = self.fields.get(name)
        err = error()
        if isinstance(value, str) and "\0" in value:  # C would see its beginning only
            raise ArgumentError(f"{name} = {value!r} has a NUL character")
        if isinstance(value, str) or field is None:  # the library knows how to complain about a wrong name
            words = str(value).encode("utf-8", "backslashreplace")
            check(lib.fin_settings_parse(self.pointer, struct, name.encode(), words, err), err)
            return
        check(lib.fin_settings_set(self.pointer, struct, field.pointer, field.number(value), err), err)

    def read(self, struct):
        """The struct as a dict, with 'auto' and the names of choices."""
        values = {}
        for name, field in self.fields.items():
            number = getattr(struct, name)
            if field.choices:
                values[name] = field.choices[number]
            elif field.default == "auto" and lib.fin_is_auto(float(number)):
                values[name] = "auto"
            else:
                values[name] = number
        return values


# ---- progress, cancelling, Ctrl-C -------------------------------------------------------------

_failed = threading.local()  # an exception that came outside of what a callback guards, of the innermost Watch


def keep_exception(kind, value, traceback):
    """onerror of the callbacks: remembers the exception; the callback answers `cancel`."""
    _failed.value = value


class Watch:
    """Progress of one long call: a callback or a bar, an answer to Ctrl-C, and the check at the end.

        with Watch(progress) as watch:
            watch.check(lib.fin_something(..., watch.pointer, watch.err))

    progress: None (quiet), True (tqdm's bar on a terminal, if tqdm is there), or a function
    progress(what, done, total) that may return True to cancel. Whatever it raises, KeyboardInterrupt included,
    ends the call and comes out of it.
    """

    def __init__(self, progress=None):
        self.err = error()
        self.problem = None
        self.bar = None
        self.function = progress if callable(progress) else None
        if progress and self.function is None:
            self.bar = _bar()
        self.outer = None
        self.handle = ffi.new_handle(self)
        self.pointer = ffi.new("fin_progress *", (lib.finpy_progress, self.handle))

    def __enter__(self):
        self.outer = getattr(_failed, "value", None)  # of the call whose callback makes this one
        _failed.value = None
        return self

    def __exit__(self, *what):
        _failed.value, self.outer = self.outer, None
        self.handle = None
        if self.bar is not None:
            self.bar.close()

    def report(self, what, done, total):
        """1 to cancel. Running Python at all is what lets Ctrl-C through."""
        if self.function is not None:
            return 1 if self.function(what, done, total) else 0
        if self.bar is not None:
            self.bar.total = total if total > 0 else None
            self.bar.set_description(what, refresh=False)
            self.bar.update(done - self.bar.n)
        return 0

    def check(self, status):
        problem = self.problem or getattr(_failed, "value", None)
        if problem is not None:
            _failed.value = self.problem = None
            try:
                raise problem
            finally:
                del problem  # which has this frame in its traceback
        check(status, self.err)


def _bar():
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if sys.stderr is not None and sys.stderr.isatty():
            warnings.warn(missing("tqdm", "a progress bar"), stacklevel=4)
        return None
    return tqdm(disable=None, leave=False, bar_format="{l_bar}{bar}| {elapsed}<{remaining}", file=sys.stderr)


@ffi.def_extern(error=1, onerror=keep_exception)
def finpy_progress(user, what, done, total):
    watch = ffi.from_handle(user)
    try:
        return watch.report(ffi.string(what).decode("utf-8", "replace") if what else "", done, total)
    except BaseException as problem:
        watch.problem = problem
        return 1


# ---- files ------------------------------------------------------------------------------------

def encoded(path):
    """The name of a file (str, bytes or os.PathLike) as C takes it."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"the name of a file has a NUL character: {path!r}")
    return name


# ---- threads ----------------------------------------------------------------------------------

def set_threads(count):
    """Number of threads that calls use; 0: the default (FINETTI_THREADS, else OMP_NUM_THREADS, else all processors).

    No result depends on it.

    >>> import finetti
    >>> finetti.set_threads(1)
    >>> finetti.get_threads()
    1
    >>> finetti.set_threads(0)
    """
    count = operator.index(count)
    if not 0 <= count <= 4096:
        raise ArgumentError(f"threads = {count}; it can be 0 (the default) to 4096")
    if _forked and count != 1:
        raise RuntimeError("this process was forked, and OpenMP's threads do not survive that: it stays at one thread; "
                           "processes that are started anew (multiprocessing's spawn, joblib) may have more")
    lib.fin_threads_set(count)


def get_threads():
    """Number of threads that calls use (set_threads).

    >>> import finetti
    >>> finetti.get_threads() >= 1
    True
    """
    return lib.fin_threads_get()
