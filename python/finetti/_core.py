"""The bridge to the C library: loading it, its errors, its settings tables, its progress.

Everything else in the package goes through the few names here:

    ffi, lib          cffi's two objects
    check(status, err)  an exception if a call failed, with the library's own sentence
    error()           a fin_error to hand to a call
    Table             a settings table: fields, defaults, a filled-in struct
    Watch             progress, cancelling and Ctrl-C of a long call
    floats(...)       a NumPy array as C sees it, without a copy, or an error that says what to do
"""

import operator
import os
import sys
import threading

try:
    from ._finetti import ffi, lib
except ImportError as problem:  # the module, or a library below it, is not there
    raise ImportError(
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

# The OpenMP run-time does not survive a fork: a child that asked for its threads would wait for ever.
os.register_at_fork(after_in_child=lambda: lib.fin_threads_set(1))


# ---- errors -----------------------------------------------------------------------------------

class FinettiError(Exception):
    """A call of the C library failed. The message is the library's own; `status` is its name."""

    status = ""


class ArgumentError(FinettiError, ValueError):
    """A setting or an array is not what it has to be."""


class OutOfMemoryError(FinettiError, MemoryError):
    """Not enough memory."""


class FileError(FinettiError, OSError):
    """A file cannot be read or written."""


class FormatError(FinettiError, ValueError):
    """A file, or what it holds, is malformed."""


class UnsupportedError(FinettiError, ValueError):
    """Not available for this combination of settings."""


class NumericalError(FinettiError, ArithmeticError):
    """Numbers left their range, or a matrix has no inverse."""


class CancelledError(FinettiError):
    """A progress callback asked for the end."""


_ERRORS = {
    lib.FIN_ERR_ARGUMENT: ArgumentError,
    lib.FIN_ERR_MEMORY: OutOfMemoryError,
    lib.FIN_ERR_IO: FileError,
    lib.FIN_ERR_FORMAT: FormatError,
    lib.FIN_ERR_UNSUPPORTED: UnsupportedError,
    lib.FIN_ERR_NUMERIC: NumericalError,
    lib.FIN_ERR_CANCELLED: CancelledError,
}


def error():
    """A fin_error for a call to write into."""
    return ffi.new("fin_error *")


def check(status, err):
    """Raises what `status` stands for, with the library's sentence; does nothing for FIN_OK."""
    if status:
        kind = _ERRORS.get(status, FinettiError)
        problem = kind(text(err.message) or text(lib.fin_status_name(status)))
        problem.status = text(lib.fin_status_name(status))
        raise problem


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
        try:
            if self.kind is int and not isinstance(value, float):
                number = value.__index__()  # refuses what is not a whole number, and arrays
                if abs(number) > 1 << 53:
                    raise OverflowError
                return number
            if self.kind is not str:
                return float(value)
        except (TypeError, ValueError, AttributeError):
            pass
        except OverflowError:
            raise ArgumentError(f"{self.name} = {value!r} is too large; it can be {self.range()}") from None
        raise TypeError(f"{self.name} must be {self.range()}, not {value!r} ({type(value).__name__})")

    def range(self):
        """The allowed values, for people."""
        if self.choices:
            return "one of " + ", ".join(repr(name) for name in self.choices)
        automatic = ", or 'auto'" if self.default == "auto" else ""
        return f"{self.lowest:.16g} to {self.highest:.16g}{automatic}"


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
        lib.fin_settings_defaults(self.pointer, struct)
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
            words = str(value).encode("utf-8", "replace")
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

_failed = threading.local()  # an exception that a callback could not hand over otherwise


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
        self.handle = ffi.new_handle(self)
        self.pointer = ffi.new("fin_progress *", (lib.finpy_progress, self.handle))

    def __enter__(self):
        _failed.value = None
        return self

    def __exit__(self, *what):
        if self.bar is not None:
            self.bar.close()
        self.handle = None

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
            raise problem
        check(status, self.err)


def _bar():
    try:
        from tqdm.auto import tqdm
    except ImportError:
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
    lib.fin_threads_set(count)


def get_threads():
    """Number of threads that calls use (set_threads).

    >>> import finetti
    >>> finetti.get_threads() >= 1
    True
    """
    return lib.fin_threads_get()
