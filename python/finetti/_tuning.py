"""Settings of a context from data: guessed from its size, then tuned. What is given stays as it is.

The library does it (fin_tune_choose), as for `finetti attend`.
"""

import numpy as np

from ._arrays import int64s
from ._context import TABLE
from ._core import ArgumentError, Table, Watch, ffi, lib, text
from ._window import at, check_memory

TUNE = Table(ffi.addressof(lib, "fin_tune_table"), "fin_tune_settings")

# The settings that can come from data.
BITS = {"scale": lib.FIN_TUNE_SCALE, "prior": lib.FIN_TUNE_PRIOR, "noise": lib.FIN_TUNE_NOISE,
        "temperature": lib.FIN_TUNE_TEMPERATURE, "level": lib.FIN_TUNE_LEVEL}


def choose(settings, keys, values, names, scaled=False, ard=False, search=None, progress=None):
    """(struct, scales or None, report or None) for keys (n, dk), whose columns have these names, and values (n, dv).

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
    _check_rows(struct, which, search, len(keys))
    scales = np.zeros(keys.shape[1]) if ard else None
    offsets, texts = np.array([0, len(keys)], dtype=np.int64), [ffi.new("char[]", name.encode()) for name in names]
    pointers = ffi.new("char *[]", texts)
    data = ffi.new("fin_tune_data *", (1, keys.shape[1], values.shape[1], int64s(offsets), at(keys), at(values),
                                       ffi.cast("const char *const *", pointers)))
    report = ffi.new("fin_tune_report *")
    with Watch(progress) as watch:
        watch.check(lib.fin_tune_choose(struct, at(scales), open_bits, data, TUNE.make(search) if which else ffi.NULL,
                                        watch.pointer, report, watch.err))
    return struct, scales, _read(report) if which else None


def _is_auto(name, value):
    return name in BITS and (value is None or isinstance(value, str) and value == "auto")


def _check_rows(struct, which, search, n):
    if which and n < 2 and (search["by"] == "loo" or search["by"] == "auto" and struct.form != lib.FIN_CROSS_CME):
        raise ArgumentError(f"n_samples = {n}: leaving one out leaves nothing to tune by; give the settings that are "
                            "'auto', or tune=False")


def _read(report):
    """What is worth knowing about a search, as a dict."""
    return {"chosen": _names(report.which), "by": "loo" if report.by == lib.FIN_TUNE_BY_LOO else "evidence",
            "before": report.before, "after": report.after, "evaluations": report.evaluations,
            "converged": bool(report.converged), "at_limit": _names(report.at_limit), "tokens": report.tokens,
            "notes": [text(report.note[i]) for i in range(report.notes)]}


def _names(bits):
    return [name for name, bit in BITS.items() if bits & bit]
