"""Settings of a context from data: guessed from its size, then tuned. What is given stays as it is.

The order and the numbers are those of `finetti attend`.
"""

import numpy as np

from ._arrays import int64s
from ._context import TABLE
from ._core import ArgumentError, Table, Watch, check, error, ffi, lib
from ._window import at, check_memory

TUNE = Table(ffi.addressof(lib, "fin_tune_table"), "fin_tune_settings")

# The settings that can come from data.
BITS = {"scale": lib.FIN_TUNE_SCALE, "prior": lib.FIN_TUNE_PRIOR, "noise": lib.FIN_TUNE_NOISE,
        "temperature": lib.FIN_TUNE_TEMPERATURE, "level": lib.FIN_TUNE_LEVEL}
_STREAM = 1024  # FIN_STREAM_USER, a macro


def choose(settings, keys, values, scaled=False, ard=False, search=None, progress=None):
    """(struct, scales or None, report or None) for keys (n, dk) and values (n, dv).

    settings: of fin_cross_table, 'auto' where they come from the data. scaled: the keys have been divided by scales
    that were given. search: settings of fin_tune_table, or None: no tuning.
    """
    struct = TABLE.make({name: value for name, value in settings.items() if not _is_auto(name, value)})
    open_bits = sum(bit for name, bit in BITS.items() if _is_auto(name, settings[name]))
    if ard and struct.form != lib.FIN_CROSS_CME:
        raise ArgumentError(f"ard=True is for form='cme', not {settings['form']!r}; standardize=True or scales go with "
                            "every form")
    if ard and (scaled or not open_bits & lib.FIN_TUNE_SCALE):
        raise ArgumentError("ard=True chooses a scale for every column; scale and scales do not go with it")
    if scaled:
        open_bits &= ~lib.FIN_TUNE_SCALE
    which = lib.fin_tune_which(struct, ard) & open_bits if search is not None else 0
    check_memory(struct, keys.shape[1], values.shape[1], len(keys), 2 if which else 1)
    scales = np.zeros(keys.shape[1]) if ard else None
    data = _Data(keys, values)
    err = error()
    check(lib.fin_tune_guess(struct, at(scales), open_bits, data.struct, err), err)
    if not which:
        return struct, scales, None
    return struct, scales, _search(struct, scales, which, data, search, progress)


def _is_auto(name, value):
    return name in BITS and (value is None or isinstance(value, str) and value == "auto")


class _Data:
    """A fin_tune_data of one sequence, and what it borrows."""

    def __init__(self, keys, values):
        self.keys, self.values = keys, values
        self.offsets = np.array([0, len(keys)], dtype=np.int64)
        self.struct = ffi.new("fin_tune_data *", (1, keys.shape[1], values.shape[1], int64s(self.offsets),
                                                  at(keys), at(values)))


def _search(struct, scales, which, data, search, progress):
    """Tunes `struct` and `scales` in place; returns what is worth knowing about it."""
    guess = TABLE.read(struct)
    first_scales = None if scales is None else scales.copy()
    method = struct.method
    if struct.form == lib.FIN_CROSS_CME and method == lib.FIN_CROSS_NYSTROM:
        # The landmarks' method has no gradient: as many tokens as landmarks are tuned on exactly.
        rows = _portion(len(data.keys), struct.landmarks, struct.seed)
        data = _Data(data.keys[rows], data.values[rows])
        struct.method = lib.FIN_CROSS_AUTO
    report = ffi.new("fin_tune_report *")
    settings = TUNE.make(search)
    by = search["by"] if search["by"] != "auto" else "evidence" if struct.form == lib.FIN_CROSS_CME else "loo"
    if by == "loo" and len(data.keys) < 2:
        raise ArgumentError(f"n_samples = {len(data.keys)}: leaving one out leaves nothing to tune by; give the "
                            "settings that are 'auto', or tune=False")
    with Watch(progress) as watch:
        watch.check(lib.fin_tune(struct, at(scales), which, data.struct, settings, watch.pointer, report, watch.err))
    struct.method = method
    found = {"chosen": _names(which), "by": by, "before": report.before, "after": report.after,
             "evaluations": report.evaluations, "converged": bool(report.converged),
             "at_limit": _names(report.at_limit), "tokens": len(data.keys)}
    found["notes"] = list(_notes(found, TABLE.read(struct), guess, scales, first_scales))
    return found


def _names(bits):
    return [name for name, bit in BITS.items() if bits & bit]


def _portion(n, count, seed):
    """Rows of a random part, each set as likely, ascending (Knuth's algorithm S), with the tool's random numbers."""
    random = ffi.new("fin_random *")
    lib.fin_random_open(random, seed, _STREAM, 0)
    left, rows = min(n, count), []
    for i in range(n):
        if lib.fin_random_below(random, n - i) < left:
            rows.append(i)
            left -= 1
    return rows


def _notes(found, settings, guess, scales, first_scales):
    """Sentences about what the search came to and the user should know."""
    advice = ": the values look free of noise or the kernel is too rough; look at loo(), or give noise"
    for name in found["at_limit"]:
        value, start, label, end = settings[name], guess[name], name, ""
        if name == "scale" and scales is not None:
            worst = int(np.argmax(np.abs(np.log(scales / first_scales))))
            value, start = value * scales[worst], start * first_scales[worst]
            label = f"the scale of column {worst} of those in use"
            end = ": the column does not matter" if value > start else ""
        elif name == "noise" and value < start:
            end = advice
        yield (f"{label} ended at the {'lower' if value < start else 'upper'} end of the range that was searched, "
               f"{value:.3g}{end}")
    if not found["converged"]:
        yield "the search ran out of iterations; more iterations may do better"
