"""The extension module finetti._finetti: cffi's API mode against the public headers.

What cffi has to parse is the public headers as the C preprocessor leaves them, so that a new call, a new field or a
new row of a settings table is known here without a line of Python. The compiler then checks every declaration against
the very same headers, and works out sizes and offsets.

Where the headers and the library are: FINETTI_INCLUDE and FINETTI_LIBRARY (folders), by default those of the source
tree around this file.
"""

import os
import re
import subprocess
import tempfile

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.abspath(os.environ.get("FINETTI_INCLUDE", os.path.join(HERE, "..", "include")))
LIBRARY = os.path.abspath(os.environ.get("FINETTI_LIBRARY", os.path.join(HERE, "..", "build")))

# What stands in for the system's headers while declarations are collected: cffi knows these types itself.
SYSTEM_HEADERS = {
    "stddef.h": "",
    "stdint.h": "#define INT64_C(x) x\n#define UINT64_C(x) x\n",
    "math.h": "",
}

# Python functions that C calls; finetti/_core.py, _view.py, _study.py, _risk.py and _encoder.py define them.
CALLBACKS = """
extern "Python" {
    int finpy_progress(void *user, const char *what, double done, double total);
    int finpy_news(void *user, const fin_study_news *news);
    fin_status finpy_study_row(void *user, const fin_study_row *row, fin_error *err);
    fin_status finpy_run_row(void *user, const fin_run_row *row, fin_error *err);
    fin_status finpy_scalar_row(void *user, const fin_run_row *row, const fin_scalar *scalar, fin_error *err);
    fin_status finpy_series_row(void *user, const fin_run_row *row, const fin_series *series, fin_error *err);
    fin_status finpy_claim_row(void *user, const fin_claim *row, fin_error *err);
    fin_status finpy_figure_row(void *user, const fin_figure_row *row, fin_error *err);
    fin_status finpy_session_row(void *user, const fin_session_row *row, fin_error *err);
    fin_status finpy_difference_row(void *user, const fin_difference *row, fin_error *err);
    void finpy_note(void *user, const char *text);
    double finpy_activation(double chi, void *user);
    int finpy_learn(void *user, const fin_learn_report *report);
}
#define FIN_VERSION_MAJOR ...
#define FIN_VERSION_MINOR ...
#define FIN_VERSION_PATCH ...
"""


def declarations():
    """The public headers without macros, as cffi wants them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SYSTEM_HEADERS.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        compiler = os.environ.get("CC", "cc").split()
        text = subprocess.run(
            [*compiler, "-E", "-P", "-nostdinc", "-D__attribute__(x)=", "-I", folder, "-I", INCLUDE,
             os.path.join(INCLUDE, "finetti.h")], check=True, capture_output=True, text=True).stdout
    # The value of an enumerator that is an expression of sizes is left to the compiler.
    text = re.sub(r"=\s*sizeof[^,}]*", "= ... ", text)
    # cffi copies what is declared const, and a copy of a table has no address to hand back to the library.
    text = text.replace("extern const fin_settings", "extern fin_settings")
    return text + CALLBACKS


ffi = cffi.FFI()
ffi.cdef(declarations())
ffi.set_source(
    "finetti._finetti", '#include "finetti.h"\n',
    include_dirs=[INCLUDE], library_dirs=[LIBRARY], libraries=["finetti"],
    # The library stands beside the module, wherever the wheel is unpacked.
    extra_link_args=["-Wl,-rpath,$ORIGIN", "-Wl,-z,noexecstack"],
    extra_compile_args=["-O2", "-g0", "-Wno-discarded-qualifiers"], py_limited_api=True)

if __name__ == "__main__":
    print(declarations())
