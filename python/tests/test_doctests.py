"""The examples of the documentation strings run, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil

import finetti
import pytest

MODULES = sorted(module.name for module in pkgutil.iter_modules(finetti.__path__) if module.name != "_finetti")
PUBLIC = sorted(name for name in finetti.__all__ if name != "__version__" and not name.endswith("Error"))


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
