"""The examples of the documentation strings run, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil

import finetti
import pytest

MODULES = sorted(module.name for module in pkgutil.iter_modules(finetti.__path__) if module.name not in ("_finetti", "plot"))  # plot: tests/all/test_plot.py
PUBLIC = sorted(name for name in finetti.__all__ if name != "__version__")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module("finetti." + name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented_with_an_example(name):
    text = inspect.getdoc(getattr(finetti, name)) or ""
    assert ">>> " in text
    assert len(text.splitlines()[0]) <= 120


def members(thing):
    """The public functions, classes and methods that a module or class has of its own, with their names."""
    for name in getattr(thing, "__all__", None) or dir(thing):
        value = inspect.getattr_static(thing, name, None)
        value = getattr(value, "__func__", value)
        if not name.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)) \
                and (value.__module__ or "").startswith("finetti"):
            yield name, value


@pytest.mark.parametrize("home", ["tasks", "families", "datasets", "plot"])
def test_functions_and_classes_of_public_modules_have_an_example(home):
    module = importlib.import_module("finetti." + home)
    without = [name for name, value in members(module) if ">>> " not in (inspect.getdoc(value) or "")]
    assert without == []


def test_the_example_of_every_public_name_is_found():
    """doctest looks at what a module calls its own: an example elsewhere would never run."""
    finder = doctest.DocTestFinder()
    found = {test.name for name in MODULES + ["plot"] for test in finder.find(importlib.import_module("finetti." + name)) if test.examples}
    values = [getattr(finetti, name) for name in PUBLIC]
    names = [value.__name__ if inspect.ismodule(value) else f"{value.__module__}.{value.__qualname__}" for value in values]
    assert [name for name in names if name not in found] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_methods_are_documented(name):
    value = getattr(finetti, name)
    if inspect.isclass(value):
        assert [method for method, function in members(value) if not inspect.getdoc(function)] == []
