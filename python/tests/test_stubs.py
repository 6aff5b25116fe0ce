"""The type stubs: everything public is in them, as it runs."""

import ast
import inspect
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import finetti

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(os.environ.get("SRC", os.path.join(HERE, "..", "..")), "python", "stubs.py")
PARENT = os.path.dirname(os.path.dirname(os.path.abspath(finetti.__file__)))


def write(folder, *options):
    return subprocess.run([sys.executable, *options, SCRIPT, PARENT, str(folder)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("stubs") / "finetti"
    done = write(path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # says what has no type; python/stubs_types.py is the place for it
    return path


@pytest.fixture(scope="module")
def stubs(folder):
    """{module: {name: node}}"""
    found = {}
    for path in folder.glob("*.pyi"):
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
        found[path.stem] = {node.name: node for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return found


def home(value):
    return value.__module__.rpartition(".")[2]


def arguments(node):
    """(names that may be positional, names that are keywords only)."""
    return [arg.arg for arg in node.args.posonlyargs + node.args.args], [arg.arg for arg in node.args.kwonlyargs]


def runtime_arguments(function):
    parameters = inspect.signature(function).parameters.values()
    return ([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)],
            [p.name for p in parameters if p.kind is p.KEYWORD_ONLY])


def test_the_package_names_everything(folder):
    tree = ast.parse((folder / "__init__.pyi").read_text())
    there = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    there |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert set(finetti.__all__) <= there
    listed = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed) == finetti.__all__


FUNCTIONS = [(home(getattr(finetti, name)), name, getattr(finetti, name)) for name in finetti.__all__
             if inspect.isfunction(getattr(finetti, name))]
MODULES = [getattr(finetti, name) for name in finetti.__all__ if inspect.ismodule(getattr(finetti, name))]
FUNCTIONS += [(module.__name__.rpartition(".")[2], name, getattr(module, name)) for module in MODULES
              for name in module.__all__ if inspect.isfunction(getattr(module, name))]
CLASSES = [getattr(finetti, name) for name in finetti.__all__ if inspect.isclass(getattr(finetti, name))]


@pytest.mark.parametrize("module, name, function", FUNCTIONS, ids=[f"{m}.{n}" for m, n, _ in FUNCTIONS])
def test_functions(stubs, module, name, function):
    node = stubs[module][name]
    overloaded = any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
    if hasattr(function, "overloads"):  # the last of them
        function.__signature__ = list(function.overloads())[-1]
    expected = runtime_arguments(function)
    assert arguments(node) == expected or overloaded and sum(arguments(node), []) == sum(expected, [])
    for arg in node.args.args + node.args.kwonlyargs:
        assert arg.annotation is not None, arg.arg
    signature = inspect.signature(function)
    for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults):
        given = signature.parameters[arg.arg].default
        if not overloaded and not (isinstance(given, float) and not np.isfinite(given)):
            assert ast.literal_eval(default) == given, arg.arg


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_classes(stubs, cls):
    node = stubs[home(cls)][cls.__name__]
    functions = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    fields = {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
    if issubclass(cls, BaseException):
        assert [base.id for base in node.bases][0] in ("FinettiError", "Exception")
        return
    for name, value in inspect.getmembers(cls):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(inspect.getattr_static(cls, name), property):
            assert name in functions or name in fields, name
        elif inspect.isfunction(value):
            first, rest = arguments(functions[name])
            runtime_first, runtime_rest = runtime_arguments(value)
            assert first + rest == runtime_first + runtime_rest, name  # an overload may make more keywords only
    for name in documented_attributes(cls):
        assert name in functions or name in fields, name


def documented_attributes(cls):
    """Names in the section Attributes of the docstring."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    match = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n\w+\n-+|\Z)", doc, re.M | re.S)
    lines = match.group(1).splitlines() if match else []
    return [name.strip() for line in lines if re.match(r"\w.* :|\w+$", line) for name in line.split(" :")[0].split(",")]


def test_results_have_their_attributes(stubs):
    results = [(finetti.risk(), "_risk"), (finetti.lam_star(), "_risk"), (finetti.bayes_risk("max"), "_risk"),
               (finetti.stationary_points(), "_landscape"), (finetti.train(runs=1, steps=1), "_training")]
    for result, module in results:
        found = set()
        for cls in type(result).__mro__:
            node = stubs[module].get(cls.__name__)
            for item in node.body if node else ():
                found.add(item.target.id if isinstance(item, ast.AnnAssign) else getattr(item, "name", None))
        assert {name for name in vars(result) if not name.startswith("_")} <= found
        assert set(documented_attributes(type(result))) <= found


def test_settings_have_precise_types(folder):
    text = (folder / "_risk.pyi").read_text()
    assert "method: Literal['auto', 'closed', 'quadrature', 'simulation'] = 'auto'" in text
    assert "mu: float | ArrayLike | Literal['auto'] = 'auto'" in text
    assert "d: int | ArrayLike = 400" in text
    assert "d: int = 400" in (folder / "tasks.pyi").read_text()


def test_installed_stubs_are_these(folder):
    installed = [name for name in os.listdir(os.path.dirname(finetti.__file__)) if name.endswith(".pyi")]
    assert sorted(installed) == sorted(path.name for path in folder.iterdir())
    for name in installed:
        with open(os.path.join(os.path.dirname(finetti.__file__), name), encoding="utf-8") as file:
            assert file.read() == (folder / name).read_text(encoding="utf-8")


def test_without_scikit_learn(tmp_path):
    """The wheel can be built where it is not installed; estimators are Any then, and that is said."""
    code = "import os, sys, runpy; sys.modules['sklearn'] = None; sys.argv[:] = sys.argv[1:]; " \
           "sys.path.insert(0, os.path.dirname(sys.argv[0])); runpy.run_path(sys.argv[0], None, '__main__')"
    done = subprocess.run([sys.executable, "-c", code, SCRIPT, PARENT, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0 and "SingleLocationRegressor" in done.stderr
    text = (tmp_path / "__init__.pyi").read_text()
    assert "SingleLocationRegressor: Any" in text and "from ._risk import risk as risk" in text


def test_wrong_use():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert done.returncode != 0 and "OUTPUT_FOLDER" in done.stderr
