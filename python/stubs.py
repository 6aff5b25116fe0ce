"""Writes the type stubs of the package, from the package as it runs.

    python3 stubs.py FOLDER_OF_THE_PACKAGE'S_FOLDER OUTPUT_FOLDER

Settings are keywords that come from the library's tables, so a stub that is written by hand would be wrong with the
next row. Names, parameters and defaults are what inspect sees; types of settings are in their Keyword
(finetti/_signature.py), those of everything else in stubs_types.py. What is in neither is Any, and is printed.
"""

import importlib
import inspect
import os
import re
import sys

import stubs_types as types

HEAD = '''"""Type stub, written by python/stubs.py."""

'''
PLAIN = (bool, int, float, str, type(None))
SPECIAL = ("__len__", "__getitem__", "__iter__", "__float__", "__enter__", "__exit__", "__init__", "__contains__",
           "__add__", "__getattr__")
unknown = []  # what has no type


# ---- one type -----------------------------------------------------------------------------------

def lineage(owner):
    """Names of a class and of what it inherits from."""
    return [base.__name__ for base in owner.__mro__] if owner else []


def type_of(parameter, name, owner):
    """The type of a parameter, as text."""
    text = getattr(parameter, "type", None) or by_table(parameter, name, owner)
    text = re.sub(r"\bdict\b(?!\[)", "dict[Any, Any]", text)
    return f"{text} | None" if parameter.default is None and text != "Any" and "None" not in text \
        and "_Progress" not in text else text


def by_table(parameter, name, owner):
    for key in [*[f"{base}.{name}({parameter.name})" for base in lineage(owner)], f"{name}({parameter.name})",
                *[f"{base}({parameter.name})" for base in lineage(owner)], parameter.name]:
        if key in types.PARAMETERS:
            return types.PARAMETERS[key]
    if parameter.default not in (inspect.Parameter.empty, None) and isinstance(parameter.default, PLAIN):
        return type(parameter.default).__name__
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return "Any"
    unknown.append(f"{owner.__name__ + '.' if owner else ''}{name}({parameter.name})")
    return "Any"


def result_of(name, owner):
    """The type that a function returns, or a list of overloads: ({flag: value}, type)."""
    for key in [*[f"{base}.{name}" for base in lineage(owner)], name] if owner else [name]:
        if key in types.RESULTS:
            return types.RESULTS[key]
    unknown.append(f"{owner.__name__ + '.' if owner else ''}{name} ->")
    return "Any"


# ---- functions ----------------------------------------------------------------------------------

def wrapped(head, inside, tail, indent):
    """One line, or one for each parameter."""
    line = f"{indent}{head}({', '.join(inside)}){tail}\n"
    if len(line) <= 121:
        return line
    return f"{indent}{head}(\n" + "".join(f"{indent}    {one},\n" for one in inside) + f"{indent}){tail}\n"


def default_of(parameter):
    if parameter.default is parameter.empty:
        return ""
    plain = isinstance(parameter.default, PLAIN) and parameter.default == parameter.default \
        and parameter.default not in (float("inf"), -float("inf"))
    return f" = {parameter.default!r}" if plain else " = ..."


def parameters(signature, name, owner, flags):
    """What is between the parentheses. flags: parameters that have one value here."""
    out, seen_default, starred = [], False, False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            out.append("self")
            continue
        fixed = flags.get(parameter.name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
        elif not starred and (parameter.kind is parameter.KEYWORD_ONLY or fixed is True and seen_default):
            out.append("*")
            starred = True
        text = f"Literal[{fixed}]" if fixed is not None else type_of(parameter, name, owner)
        default = "" if fixed is True else " = False" if fixed is False else default_of(parameter)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        out.append(f"{stars}{parameter.name}: {text}{default}")
        out += ["/"] if parameter.kind is parameter.POSITIONAL_ONLY else []  # nothing has two of them
        seen_default = seen_default or bool(default)
    return out


def function_stub(function, name, owner=None, indent=""):
    kind = type(inspect.getattr_static(owner, name)) if owner else None
    lines, first = {staticmethod: (["@staticmethod"], []), classmethod: (["@classmethod"], ["cls"])}.get(kind, ([], []))
    result = "None" if name == "__init__" else result_of(name, owner)
    own = [inspect.signature(function)] if not hasattr(function, "overloads") else function.overloads()
    variants = [(signature, *one) for signature in own for one in
                (result if isinstance(result, list) else [({}, result)])]
    text = ""
    for signature, flags, answer in variants:
        for line in [*(["@overload"] if len(variants) > 1 else []), *lines]:
            text += f"{indent}{line}\n"
        text += wrapped(f"def {name}", first + parameters(signature, name, owner, flags), f" -> {answer}: ...", indent)
    return text


# ---- classes ------------------------------------------------------------------------------------

def bases_of(cls, public):
    """Bases that a reader may know: exceptions, and public classes of the package."""
    bases = [base for base in cls.__bases__ if base in public or issubclass(base, BaseException)]
    return [base for base in bases if not (base is Exception and len(bases) > 1)]


def members(cls, inherited):
    """(name, value) of what a class has itself, with what comes from bases that are not in the stubs."""
    skip = {name for base in inherited for name in dir(base)} | set(dir(object)) - set(SPECIAL)
    for name in sorted(set(dir(cls)) - skip):
        if not name.startswith("_") or name in SPECIAL:
            value = inspect.getattr_static(cls, name)
            home = next((base for base in cls.__mro__ if name in vars(base)), cls)
            if home is not object and value is not None:
                yield name, getattr(cls, name) if callable(getattr(cls, name, None)) else value
    if "__init__" in vars(cls) and any("__init__" in dir(base) for base in inherited):
        yield "__init__", cls.__init__


def attributes(cls):
    """{name: type} of what instances have: by the table, and the settings of an estimator."""
    found = {}
    for base in reversed(lineage(cls)):
        found.update(types.ATTRIBUTES.get(base, {}))
    if hasattr(cls, "get_params"):
        for parameter in inspect.signature(cls).parameters.values():
            found.setdefault(parameter.name, type_of(parameter, "__init__", cls))
    return found


def class_stub(cls, public, exported_names):
    bases = bases_of(cls, public)
    if hasattr(cls, "_fields") and issubclass(cls, tuple):
        fields = "".join(f"    {name}: {text}\n" for name, text in types.ATTRIBUTES[cls.__name__].items())
        return f"class {cls.__name__}(NamedTuple):\n{fields}"
    known = [base for base in bases if base in public] if bases else []
    lines, fields = [], attributes(cls)
    for base in known:
        fields = {name: text for name, text in fields.items() if name not in attributes(base)}
    functions = {}
    for name, value in members(cls, bases):
        if isinstance(value, property):
            if not any(name in attributes(base) for base in known):
                fields.setdefault(name, property_type(cls, name))
        elif inspect.isroutine(value) and (name != "__init__" or cls.__name__ in exported_names):
            functions[name] = function_stub(value, name, cls, "    ")
        elif name != "__init__" and name not in fields and not any(name in attributes(base) for base in known):
            fields[name] = type(value).__name__ if isinstance(value, PLAIN) else "Any"
    for name, text in fields.items():
        value = inspect.getattr_static(cls, name, None)
        lines.append(f"    @property\n    def {name}(self) -> {text}: ...\n" if isinstance(value, property)
                     else f"    {name}: {text}\n")
    body = "".join(lines + list(functions.values())) or "    ...\n"
    inside = f"({', '.join(base.__name__ for base in bases)})" if bases else ""
    return f"class {cls.__name__}{inside}:\n{body}"


def property_type(cls, name):
    result = attributes(cls).get(name)
    if result is None:
        unknown.append(f"{cls.__name__}.{name} (property)")
    return result or "Any"


# ---- modules ------------------------------------------------------------------------------------

def exported(package, name):
    """What finetti exports under a name; None if a package that it needs (scikit-learn) is not installed here."""
    try:
        return getattr(package, name)
    except ImportError as problem:
        unknown.append(f"{name} ({problem})")
        return None


def homes(package):
    """{module: names} of everything public: what finetti exports, and the public classes beside it."""
    found = {}
    for name in package.__all__:
        value = exported(package, name)
        if inspect.ismodule(value):
            wanted = getattr(value, "__all__", None) or [n for n in vars(value) if not n.startswith("_")]
            own = [n for n in wanted if getattr(vars(value)[n], "__module__", value.__name__) == value.__name__]
            found.setdefault(value.__name__, []).extend(own)
        elif hasattr(value, "__module__"):
            found.setdefault(value.__module__, []).append(name)
    for name in mentioned():
        for module in [module for key, module in sys.modules.items() if key.startswith("finetti.")]:
            value = vars(module).get(name)
            if inspect.isclass(value) and value.__module__ == module.__name__:
                names = found.setdefault(module.__name__, [])
                names += [name] if name not in names else []
    return found


def mentioned():
    """Words of the types: those that are classes of the package belong to the stubs."""
    results = [result if isinstance(result, list) else [({}, result)] for result in types.RESULTS.values()]
    texts = [text for one in results for _, text in one] + list(types.PARAMETERS.values())
    texts += [text for fields in types.ATTRIBUTES.values() for text in fields.values()]
    return sorted(set(re.findall(r"[A-Za-z]\w*", " ".join(texts))))


def module_stub(home, names, found):
    module = importlib.import_module(home)
    everything = {name: where for where, list_ in found.items() for name in list_
                  if inspect.isclass(getattr(importlib.import_module(where), name))}
    public = {getattr(importlib.import_module(where), name) for name, where in everything.items()}
    values = [getattr(module, name) for name in names]
    classes = sorted((value for value in values if inspect.isclass(value)), key=lambda cls: len(cls.__mro__))
    shown = importlib.import_module("finetti").__all__
    text = "".join(f"\n{class_stub(cls, public, shown)}" for cls in classes)
    for name, value in zip(names, values):
        if not inspect.isclass(value):
            text += "\n" + (function_stub(value, name) if callable(value) else f"{name}: {type(value).__name__}\n")
    return HEAD + imports(text, home, names, everything) + text


def imports(text, home, names, everything):
    """What `text` mentions and does not define."""
    words = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", re.sub(r"'[^']*'", "", text)))
    aliases, todo = {}, [name for name in types.ALIASES if name in words]
    while todo:
        name = todo.pop()
        if name not in aliases:
            aliases[name] = types.ALIASES[name]
            inside = set(re.findall(r"\w+", types.ALIASES[name]))
            words |= inside
            todo += [other for other in types.ALIASES if other in inside]
    lines = [line for word, line in types.IMPORTS.items() if word in words]
    lines += [f"from .{where.rpartition('.')[2]} import {name} as {name}" for name, where in sorted(everything.items())
              if name in words and where != home]
    return "\n".join(dict.fromkeys(lines)) + "\n\n" + "".join(
        f"{name} = {types.ALIASES[name]}\n" for name in types.ALIASES if name in aliases)


def package_stub(package):
    lines = [HEAD, "from typing import Any\n"]
    for name in package.__all__:
        value = exported(package, name)
        if inspect.ismodule(value):
            lines.append(f"from . import {name} as {name}\n")
        elif hasattr(value, "__module__"):
            lines.append(f"from .{value.__module__.rpartition('.')[2]} import {name} as {name}\n")
        else:
            lines.append(f"{name}: {'Any' if value is None else type(value).__name__}\n")
    listed = "".join(f"    {name!r},\n" for name in package.__all__)
    return "".join(lines) + f"\n__all__ = [\n{listed}]\n"


def main(parent, output):
    sys.path.insert(0, parent)
    package = importlib.import_module("finetti")
    types.RESULTS.update(dict.fromkeys(package.tasks.names(), "Task"))
    types.RESULTS.update(dict.fromkeys(package.families.names(), "Family"))
    found = homes(package)
    stubs = {home.rpartition(".")[2]: module_stub(home, names, found) for home, names in found.items()}
    stubs["__init__"] = package_stub(package)
    os.makedirs(output, exist_ok=True)
    for name, text in stubs.items():
        with open(os.path.join(output, name + ".pyi"), "w", encoding="utf-8") as file:
            file.write(text)
    for what in dict.fromkeys(unknown):
        print(f"stubs.py: no type for {what}: add it to stubs_types.py", file=sys.stderr)
    return len(unknown)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
