"""Bags from files: megabytes of CSV a second on one core, and gigabytes of mapped tokens, side by side with NumPy and
pandas where they are there.  python3 bench/read.py LIBRARY [megabytes]

Numbers have 3 to 17 digits, in ten formats that take turns. Times are the processor's (user and system) on one thread, the
best of three; the file is in the page cache.
"""

import ctypes
import os
import sys
import tempfile
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_void_p

import numpy as np

FORMATS = ["%.5g", "%.6f", "%.9g", "%.17g", "%.8f", "%.12g", "%.3f", "%.17g", "%.7e", "%.15g"]


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", ctypes.c_char * 512)]


class Source(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("bag", c_char_p), ("label", c_char_p), ("group", c_char_p),
                ("features", c_char_p), ("kind", c_char_p), ("rank", c_int), ("ranks", c_int),
                ("feature_names", c_void_p), ("feature_count", c_int64), ("class_names", c_void_p),
                ("class_count", c_int64), ("each", c_int), ("unlabelled", c_int), ("model_bag", c_char_p)]


def open_library(path):
    library = ctypes.CDLL(path)
    library.fin_bag_set_read.argtypes = [POINTER(c_void_p), POINTER(Source), c_void_p, POINTER(Error)]
    library.fin_bag_set_destroy.argtypes = [c_void_p]
    library.fin_threads_set(1)
    return library


def read(library, path):
    handle, error = c_void_p(), Error()
    if library.fin_bag_set_read(byref(handle), byref(Source(path=path.encode(), class_count=-1)), None, byref(error)):
        raise RuntimeError(error.message.decode())
    library.fin_bag_set_destroy(handle)


def write_csv(path, size, d=100):
    random, written, bag = np.random.default_rng(3), 0, 0
    with open(path, "w") as file:
        written += file.write("bag_id,label," + ",".join("f%d" % j for j in range(d)) + "\n")
        while written < size:
            for row in random.normal(size=(random.integers(2, 30), d)):
                cells = ",".join(FORMATS[j % len(FORMATS)] % x for j, x in enumerate(row))
                written += file.write("%d,%d,%s\n" % (bag, bag % 2, cells))
            bag += 1


def write_npy(folder, size, d=100):
    os.mkdir(folder)
    n = int(size // (40 * d))
    tokens = np.lib.format.open_memmap(folder + "/tokens.npy", "w+", "f4", (10 * n, d))
    block = np.random.default_rng(4).normal(size=(1000, d)).astype("f4")
    for i in range(0, len(tokens), len(block)):
        tokens[i:i + len(block)] = block[:len(tokens) - i]
    np.save(folder + "/offsets.npy", np.arange(0, 10 * n + 1, 10))
    np.save(folder + "/y.npy", np.arange(n) % 2)


def best(call):
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main():
    library, size = open_library(sys.argv[1]), float(sys.argv[2] if len(sys.argv) > 2 else 200) * 1e6
    with tempfile.TemporaryDirectory() as folder:
        csv, npy = folder + "/bags.csv", folder + "/npy"
        write_csv(csv, size)
        write_npy(npy, 5 * size)
        size = os.path.getsize(csv) / 1e6
        rows = [("finetti, CSV", size, lambda: read(library, csv))]
        try:
            import pandas
            rows.append(("pandas, round_trip", size, lambda: pandas.read_csv(csv, float_precision="round_trip")))
            rows.append(("pandas, default", size, lambda: pandas.read_csv(csv)))
        except ImportError:
            rows.append(("numpy.loadtxt", size, lambda: np.loadtxt(csv, delimiter=",", skiprows=1)))
        rows.append(("finetti, NPY mapped and checked", os.path.getsize(npy + "/tokens.npy") / 1e6, lambda: read(library, npy)))
        for name, megabytes, call in rows:
            print("%-34s %9.0f MB/s" % (name, megabytes / best(call)))


if __name__ == "__main__":
    main()
