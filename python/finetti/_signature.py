"""Keyword arguments from settings tables: signatures, docstrings, and the refusal of unknown names.

A settings table of the library says everything that a Python signature wants: name, type, default, range, meaning.
So that help(), inspect.signature, scikit-learn's get_params and the type stubs know every setting, functions here take
**keywords and carry a signature that is made from the tables:

    KEYWORDS = parameters(TABLE, rename={"seed": "random_state"}, extra=[Keyword("verbose", False, "bool", "...")])

    class Thing:
        '''Summary.

        Parameters
        ----------
        {parameters}
        '''
        __init__ = initializer(KEYWORDS)
    document(Thing, KEYWORDS)

    @signed(KEYWORDS)                       # a function: f(first, second="x", **keywords)
    def f(first, second="x", **keywords): ...
"""

import difflib
import functools
import inspect
import re
import textwrap

# Types of a stub in the words of a docstring.
_WORDS = [(r"Literal\[('[^']*')\]", r"\1"), (r"Literal\[([^]]*)\]", r"{\1}"), (r"NDArray\[[^]]*\]|ArrayLike", "array"),
          (r"Mapping\[[^]]*\]", "dict"), (r"Sequence\[[^]]*\]+", "list"), (r"Callable\[\[[^]]*\], [^]]*\]", "function"),
          (r" \| ", " or ")]


class Keyword(inspect.Parameter):
    """A keyword-only parameter that knows its type (as a type stub says it), its meaning and its range.

    type: text such as "int", "float | Literal['auto']"; names that a stub knows are ArrayLike, NDArray, Any, Literal.
    """

    __slots__ = ("type", "meaning", "range", "field")

    def __init__(self, name, default, type, meaning, range="", field=None, kind=inspect.Parameter.KEYWORD_ONLY):
        super().__init__(name, kind, default=default)
        self.type = type
        self.meaning = meaning
        self.range = range
        self.field = field

    def replace(self, *, name=None, kind=None, annotation=None, **default):
        """As inspect.Parameter has it; functools.partial's signature asks for it."""
        return Keyword(name or self.name, default.get("default", self.default), self.type, self.meaning, self.range,
                       self.field, self.kind if kind is None else kind)

    __replace__ = replace

    def __reduce__(self):
        return Keyword, (self.name, self.default, self.type, self.meaning, self.range, None, self.kind)

    def lines(self):
        """The entry of a docstring: name : type, default; meaning and range."""
        words = self.type
        for pattern, plain in _WORDS:
            words = re.sub(pattern, plain, words)
        default = "" if self.default is inspect.Parameter.empty else f", default={self.default!r}"
        sentence = self.meaning.rstrip(".") + "." + (f" Range: {self.range}." if self.range else "")
        return [f"{self.name} : {words}{default}",
                *textwrap.wrap(sentence, 100, initial_indent="    ", subsequent_indent="    ")]


def parameters(table, rename=None, without=(), extra=(), defaults=None, arrays=False):
    """Keyword parameters for the rows of a _core.Table (or of several), in their order.

    rename: {name in the table: name in Python}. without: names in the table that are no parameters. extra: Keywords
    that come after. defaults: {name in the table: another default}; 'auto' is then allowed where it was not.
    arrays: numbers may be arrays too (the type says so).
    """
    rename, defaults = rename or {}, defaults or {}
    tables = table if isinstance(table, (list, tuple)) else [table]
    made = {}
    for one in tables:
        for name, field in one.fields.items():
            if name not in without:
                keyword = of_field(field, rename.get(name, name), defaults.get(name, field.default), arrays)
                made.setdefault(keyword.name, keyword)
    return [*made.values(), *extra]


def of_field(field, name=None, default=None, arrays=False):
    """The Keyword of one row."""
    default = field.default if default is None else default
    if field.choices:
        return Keyword(name or field.name, default, f"Literal[{', '.join(map(repr, field.choices))}]", field.meaning,
                       field=field)
    kind = field.kind.__name__ + (" | ArrayLike" if arrays else "")
    if "auto" in (default, field.default):
        kind += " | Literal['auto']"
    return Keyword(name or field.name, default, kind, field.meaning,
                   f"{field.lowest:.16g} to {field.highest:.16g}", field)


# ---- functions and constructors that take them --------------------------------------------------

def unknown(function, name, names):
    """The TypeError for a keyword that there is not, with the nearest one that there is."""
    near = [other for other in names if other.lower() == name.lower()] \
        or difflib.get_close_matches(name, names, 1, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(names))}"
    return TypeError(f"{function}() has no keyword {name!r}{hint}")


def initializer(keywords, renamed=None):
    """An __init__ that keeps its keywords as attributes, unchanged and unchecked, as scikit-learn asks for.

    renamed: {former name: name}, which are refused with the new name.
    """
    defaults = {keyword.name: keyword.default for keyword in keywords}

    def __init__(self, *args, **given):
        if args:
            raise TypeError(f"{type(self).__name__}() takes keywords only, such as {keywords[0].name}=...; "
                            f"{args[0]!r} has no name")
        for name in given:
            if name in (renamed or {}):
                raise TypeError(f"{type(self).__name__}(): {name} is called {renamed[name]} now")
            if name not in defaults:
                raise unknown(type(self).__name__, name, defaults)
        for name, default in defaults.items():
            setattr(self, name, given.get(name, default))

    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([me, *keywords])
    __init__.__doc__ = "Keeps the settings; they are looked at by fit."
    return __init__


def by_name(words):
    """Decorator of a method f(self, X, y, *, ...): says so if more than X and y come by place. words: what there is."""
    def decorate(function):
        @functools.wraps(function)
        def checked(self, *args, **given):
            if len(args) > 2:
                raise TypeError(f"{function.__name__}(X, y) takes the rest by name: {words}")
            return function(self, *args, **given)
        return checked
    return decorate


def signed(keywords):
    """Decorator of f(a, b=1, *, c=None, **keywords): refuses unknown keywords, shows and documents the known ones."""
    def decorate(function):
        named = {keyword.name for keyword in keywords}
        own = [p for p in inspect.signature(function).parameters.values()
               if p.kind is not p.VAR_KEYWORD and p.name not in named]
        known = named | {p.name for p in own}

        @functools.wraps(function)
        def checked(*args, **given):
            if not given.keys() <= known:
                name = next(name for name in given if name not in known)
                raise unknown(function.__qualname__.replace(".__init__", ""), name, known)
            return function(*args, **given)

        head = [p for p in own if p.kind is not p.KEYWORD_ONLY]
        checked.__signature__ = inspect.Signature([*head, *keywords, *(p for p in own if p.kind is p.KEYWORD_ONLY)])
        return document(checked, keywords)
    return decorate


def document(thing, keywords):
    """Puts the entries of `keywords` where the docstring of `thing` says {parameters}, at that indentation."""
    doc = thing.__doc__ or ""
    for line in doc.splitlines():
        if line.strip() == "{parameters}":
            indent = line[:len(line) - len(line.lstrip())]
            entries = [entry for keyword in keywords for entry in keyword.lines()]
            doc = doc.replace(line, "\n".join(indent + entry for entry in entries))
    thing.__doc__ = doc
    return thing
