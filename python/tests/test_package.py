"""The wheel and what surrounds a call: what is inside, what is loaded, forks, threads, Ctrl-C, wrong libraries."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile

import finetti
import pytest
from finetti._core import CancelledError, Watch
from long_call import ENDLESS, simulate
from tool import BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(finetti.__file__)
LIBRARY = os.path.join(PACKAGE, f"libfinetti.so.{finetti.__version__.rpartition('.')[0]}")
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")

pytestmark = pytest.mark.usefixtures("two_threads")


def python(script, path=HERE, timeout=300, **environment):
    """Runs a script in a process of its own: (return code, standard output, standard error)."""
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path, **environment},
                          capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def last_line(text):
    return text.strip().splitlines()[-1]


# ---- the wheel --------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def wheel():
    files = glob.glob(os.path.join(os.environ.get("WHEEL", os.path.join(BUILD, "python")), "finetti-*.whl"))
    assert len(files) == 1
    return files[0]


def test_wheel_is_one_for_all_pythons(wheel):
    assert re.fullmatch(rf"finetti-{re.escape(finetti.__version__)}-cp39-abi3-\w+\.whl", os.path.basename(wheel))
    with zipfile.ZipFile(wheel) as archive:
        tags = archive.read(f"finetti-{finetti.__version__}.dist-info/WHEEL").decode()
    assert re.search(r"^Tag: cp39-abi3-\w+$", tags, re.M)
    # Names of the interpreter that are not part of the stable interface start with _Py, but for what its macros use.
    symbols = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(PACKAGE, "_finetti.abi3.so")],
                             check=True, capture_output=True, text=True).stdout
    wanted = set(re.findall(r"\b_?Py\w+", symbols))
    private = {name for name in wanted if name.startswith("_")}
    assert wanted and private <= {"_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct"}


def test_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
    source = os.path.join(os.environ.get("SRC", os.path.join(HERE, "..", "..")), "python", "finetti")
    modules = {"finetti/" + name for name in os.listdir(source) if name.endswith(".py")}
    core = {"finetti/_finetti.abi3.so", "finetti/" + os.path.basename(LIBRARY), "finetti/py.typed"}
    stubs = {name for name in names if name.endswith(".pyi")}
    info = {name for name in names if name.startswith(f"finetti-{finetti.__version__}.dist-info/")}
    assert names == modules | core | stubs | info
    assert "finetti/__init__.pyi" in stubs or SANITIZED
    assert any(name.endswith("/LICENSE") for name in info)


def test_wheel_is_below_5_megabytes(wheel):
    assert os.path.getsize(wheel) < 5_000_000


def test_wheel_names_no_place_of_the_machine_that_built_it(wheel):
    places = [os.path.join(os.environ[name], "") for name in ("SRC", "BUILD") if name in os.environ]
    places += [place for place in (os.path.expanduser("~/"), "/tmp/") if len(place) > 2]
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            found = [place for place in places if place.encode() in content]
            # The library itself writes temporary files.
            assert not [place for place in found if place != "/tmp/"], name
            assert "/tmp/" not in found or name.endswith(("METADATA", os.path.basename(LIBRARY))), name


if SANITIZED:  # a library with sanitizers is larger, and names the places of what it watches
    del test_wheel_is_below_5_megabytes, test_wheel_names_no_place_of_the_machine_that_built_it


# ---- what an import loads ---------------------------------------------------------------------

def test_import_loads_neither_numpy_nor_mpi():
    code, out, err = python("""
import sys, finetti
finetti.get_threads()
print(sorted(name for name in ("numpy", "sklearn", "scipy", "pandas", "tqdm") if name in sys.modules))
loaded = {line.split("/")[-1].strip() for line in open("/proc/self/maps")}
print(sorted(name for name in loaded if "libmpi" in name or "open-pal" in name))
""")
    assert (code, out) == (0, "[]\n[]\n"), err


def test_names_are_found_and_wrong_ones_are_corrected():
    with pytest.raises(AttributeError, match="did you mean 'Context'"):
        finetti.Contxt
    assert set(finetti.__all__) == set(dir(finetti))


# ---- wrong libraries --------------------------------------------------------------------------

def patched(folder, old, new):
    """A copy of the library in `folder` with some bytes of it exchanged."""
    with open(LIBRARY, "rb") as file:
        content = file.read()
    assert len(old) == len(new) and old in content
    with open(os.path.join(folder, os.path.basename(LIBRARY)), "wb") as file:
        file.write(content.replace(old, new))
    return str(folder)


def test_library_of_another_version_is_refused(tmp_path):
    version = finetti.__version__.encode()
    other = re.sub(rb"\d$", lambda last: b"%d" % ((int(last[0]) + 1) % 10), version)
    folder = patched(tmp_path, version + b"\0", other + b"\0")
    code, _, err = python("import finetti", LD_LIBRARY_PATH=folder)
    assert code == 1
    assert f"ImportError: finetti {finetti.__version__} found the shared library of version {other.decode()}" in err
    assert folder in last_line(err) and "Unset these" in last_line(err)


def test_library_without_what_the_package_needs_is_refused(tmp_path):
    folder = patched(tmp_path, b"fin_risk_table\0", b"fin_rusk_table\0")
    code, _, err = python("import finetti", LD_LIBRARY_PATH=folder)
    assert code == 1
    assert "ImportError: finetti cannot load its C library" in err and "undefined symbol" in last_line(err)


@pytest.mark.parametrize("what", ["missing", "cut short"])
def test_library_that_is_not_there_is_an_import_error(tmp_path, what):
    copy = tmp_path / "finetti"
    shutil.copytree(PACKAGE, copy)
    library = copy / os.path.basename(LIBRARY)
    library.unlink()
    if what == "cut short":
        library.write_bytes(b"")
    code, out, err = python("import finetti\nfor line in open('/proc/self/maps'):\n    print(line, end='')",
                            path=str(tmp_path))
    if what == "missing" and code == 0:  # then a libfinetti of the same version is installed on this system
        assert re.search(rf" /.*/{re.escape(library.name)}", out) and str(library) not in out
        return
    assert code == 1
    assert "ImportError: finetti cannot load its C library" in err and "make wheel" in last_line(err)


# ---- processes --------------------------------------------------------------------------------

def test_fork_after_threads_were_used():
    code, out, err = python("""
import multiprocessing, finetti
from long_call import simulate
finetti.set_threads(4)
here = simulate(20000)
with multiprocessing.get_context("fork").Pool(2) as pool:
    there = pool.map(simulate, [20000, 20000])
    threads = pool.apply(finetti.get_threads)
    try:
        pool.apply(finetti.set_threads, (2,))
    except RuntimeError as problem:
        print("one thread" in str(problem))
print(there == [here, here], threads, finetti.get_threads())
""")
    assert (code, out) == (0, "True\nTrue 1 4\n"), err


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_other_ways_to_start_processes(start):
    code, out, err = python(f"""
import multiprocessing
from long_call import simulate
if __name__ == "__main__":
    with multiprocessing.get_context("{start}").Pool(1) as pool:
        print(pool.apply(simulate, (3000,)) == simulate(3000))
""")
    assert (code, out) == (0, "True\n"), err


def test_threads_come_from_the_environment():
    script = "import finetti; print(finetti.get_threads()); finetti.set_threads(2); print(finetti.get_threads())"
    assert python(script, FINETTI_THREADS="3")[1] == "3\n2\n"
    assert python(script, FINETTI_THREADS="3", OMP_NUM_THREADS="5")[1] == "3\n2\n"
    # joblib's workers get their share of the processors in this way.
    assert python(script, FINETTI_THREADS="", OMP_NUM_THREADS="5")[1] == "5\n2\n"


@pytest.mark.parametrize("wrong, kind", [(-1, ValueError), (4097, ValueError), (2.0, TypeError), ("2", TypeError),
                                         (1 << 70, ValueError)])
def test_wrong_numbers_of_threads(wrong, kind):
    before = finetti.get_threads()
    with pytest.raises(kind):
        finetti.set_threads(wrong)
    assert finetti.get_threads() == before


# ---- Ctrl-C and progress ----------------------------------------------------------------------

@pytest.mark.parametrize("progress", ["None", "told"])
def test_ctrl_c_ends_a_long_call(progress):
    script = f"""
import sys, threading
from finetti._core import Watch
from long_call import ENDLESS, simulate
said = []
def told(what, done, total):
    if not said:
        said.append(what)
        print("running", flush=True)
if {progress} is None:
    plain = Watch.report
    Watch.report = lambda self, *what: (told(*what), plain(self, *what))[1]
try:
    simulate(ENDLESS, progress={progress})
except KeyboardInterrupt:
    print("interrupted", simulate(1000) > 0)
"""
    with subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": HERE},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "running\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (0, "interrupted True\n"), err


def test_progress_is_told_and_ends():
    seen = []
    value = simulate(50000, lambda what, done, total: seen.append((what, done, total)))
    assert value == simulate(50000)
    assert seen and all(isinstance(what, str) and 0 <= done <= total for what, done, total in seen)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_progress_that_answers_true_cancels():
    seen = []
    with pytest.raises(CancelledError) as caught:
        simulate(ENDLESS, lambda what, done, total: seen.append(what) or len(seen) == 3)
    assert len(seen) == 3 and caught.value.status == "cancelled"


class Odd(BaseException):
    """No Exception, as KeyboardInterrupt is none."""


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, Odd])
def test_what_progress_raises_comes_out_of_the_call(kind):
    problem = kind("stop here")

    def fail(what, done, total):
        raise problem

    with pytest.raises(kind) as caught:
        simulate(ENDLESS, fail)
    assert caught.value is problem
    assert simulate(1000) > 0  # nothing of it is left


def test_progress_that_answers_nonsense_is_an_error_or_a_truth():
    with pytest.raises(CancelledError):
        simulate(ENDLESS, lambda *what: "yes")

    class Undecided:
        def __bool__(self):
            raise RuntimeError("neither")

    with pytest.raises(RuntimeError, match="neither"):
        simulate(ENDLESS, lambda *what: Undecided())


def test_progress_bar_on_no_terminal_is_quiet(capfd):
    simulate(3000, True)
    assert capfd.readouterr() == ("", "")


# ---- Python's threads -------------------------------------------------------------------------

def test_other_threads_run_during_a_call():
    # With an hour between switches no thread runs before the other one lets go of Python's lock, as a call does.
    inside, ran, told, seen = threading.Event(), [], [], []

    def call():
        inside.set()
        with pytest.raises(CancelledError):
            simulate(ENDLESS, lambda *news: told.append(news) or bool(ran) or len(told) == 1000)
        seen.append(bool(ran))

    thread, before = threading.Thread(target=call), sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        thread.start()
        inside.wait()
        ran.append(True)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert seen == [True]


def test_each_thread_gets_its_own_exception():
    caught = {}

    def call(name):
        def fail(what, done, total):
            if name != "well":
                raise ValueError(name)
        try:
            caught[name] = simulate(20000, fail)
        except ValueError as problem:
            caught[name] = str(problem)

    names = ["a", "b", "well", "c"]
    threads = [threading.Thread(target=call, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caught == {"a": "a", "b": "b", "c": "c", "well": simulate(20000)}


def test_watch_does_not_outlive_its_call():
    import gc
    import weakref
    gc.disable()
    try:
        with Watch(lambda *what: None) as watch:
            pass
        gone = weakref.ref(watch)
        del watch
        assert gone() is None  # without waiting for the collector
    finally:
        gc.enable()
