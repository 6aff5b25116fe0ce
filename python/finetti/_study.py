"""Studies: experiments as data, run into a store, with their claims judged."""

import json
import os

from ._columns import Columns, near
from ._command import COMMANDS, settings_of
from ._core import FileError, Table, Watch, check, error, ffi, keep_exception, lib, text
from ._html import table
from ._signature import parameters, signed
from ._store import Store
from ._texts import Held, encoded, several
from ._view import View

_TABLE = Table(ffi.addressof(lib, "fin_study_table"), "fin_study_settings")
_KEYWORDS = parameters(_TABLE)


@ffi.def_extern(error=1, onerror=keep_exception)
def finpy_news(user, news):
    watch = ffi.from_handle(user)
    try:
        return watch.report(text(news.study) or "", news.done, news.total)
    except BaseException as problem:
        watch.problem = problem
        return 1


# ---- the file ---------------------------------------------------------------------------------------

def study_names():
    """Names of the studies that come with the library: those of the papers.

    Examples
    --------
    >>> import finetti
    >>> "slr_training" in finetti.study_names()
    True
    """
    return [text(lib.fin_shipped_name(i)) for i in range(lib.fin_shipped_count())]


def study_commands():
    """What a study can run, and what a run leaves: command, name of a scalar or series, meaning.

    Examples
    --------
    >>> import finetti
    >>> outputs = finetti.study_commands()
    >>> outputs["name"][outputs["command"] == "urn"].tolist()
    ['distance', 'bound']
    """
    return Columns.from_rows(("command", "name", "meaning"), [
        (command.name, output.name, output.meaning) for command in COMMANDS.values()
        for output in command.outputs.values()])


def _words(value):
    """A value of `set` as one writes it on the command line."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(int(value))
    if value is None:
        raise TypeError("a change to None says nothing; leave it out, or give a number, a text, a list or a dict")
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a study is made of numbers, texts, lists and dicts; {value!r} is none of these")


def _changes(set, full):
    if hasattr(set, "items"):
        set = [f"{path}={_words(value)}" for path, value in set.items()]
    held = Held("fin_study_changes *")
    held.texts("set", "count", several(
        set, "set", 'a dict such as {"grid.lam": 0.2}, or a list such as ["grid.lam=0.2"]'))
    held.pointer.full = bool(full)
    return held


def _read(study, set, full):
    """The study of that name, of that file, or the one that is given itself: a dict, or a text with line ends."""
    changes, out, err = _changes(set, full), ffi.new("fin_study **"), error()
    if isinstance(study, dict):
        data, label = json.dumps(study, default=_plain, ensure_ascii=False, indent=1).encode(), "the study"
    elif isinstance(study, str) and "\n" in study:
        data, label = study.encode("utf-8", "surrogateescape"), "the study"
    elif os.path.isfile(encoded(study, "study")):
        check(lib.fin_study_read(encoded(study, "study"), changes.pointer, out, err), err)
        return ffi.gc(out[0], lib.fin_study_destroy)
    else:
        data, label = _shipped(os.fsdecode(study)), os.fsdecode(study)
    check(lib.fin_study_parse(data, len(data), label.encode(), changes.pointer, out, err), err)
    return ffi.gc(out[0], lib.fin_study_destroy)


def _shipped(name):
    names = study_names()
    if name in names:
        return ffi.string(lib.fin_shipped_text(names.index(name)))
    raise FileError(f"there is no file {name!r}, nor a study of that name{near(name, names)}")


def study_plan(study, *, set=None, full=False):
    """The runs that a study wants, without running any: block, command, hash, settings (dicts).

    Parameters
    ----------
    study, set, full
        As for finetti.study.

    Examples
    --------
    >>> import finetti
    >>> plan = finetti.study_plan({"study": "tour", "runs": [{"command": "risk", "axes": {"lam": [0.1, 0.2]}}]})
    >>> len(plan), plan[1]["settings"]["lam"]
    (2, 0.2)
    """
    pointer = _read(study, set, full)
    plan, err, rows = ffi.new("fin_plan *"), error(), []
    for i in range(lib.fin_study_run_count(pointer)):
        check(lib.fin_study_get_run(pointer, i, plan, err), err)
        rows.append((text(plan.block), text(plan.command), ffi.string(plan.hash).decode(),
                     settings_of(ffi.string(plan.settings).decode())))
    return Columns.from_rows(("block", "command", "hash", "settings"), rows)


# ---- running ----------------------------------------------------------------------------------------

class StudyResult(View):
    """What a study left: numbers, claims and figures, read from its store.

    Attributes
    ----------
    name, title : str
    store : Store
    planned, present, done : int
        Runs that the study wants, those that the store had before, and those that were computed.
    failed : int
        Runs of the study that failed; runs(state="failed")["reason"] says why.
    seconds : float
    holds : bool
        Whether no run failed and every claim holds, but those of which the study says that they are known not to.

    Examples
    --------
    >>> import finetti
    >>> result = finetti.study({"study": "tour", "runs": [
    ...     {"id": "grid", "command": "risk", "axes": {"L": [2, 10], "lam": [0.1, 0.2]}},
    ...     {"id": "walk", "command": "train", "set": {"steps": 100, "runs": 4, "d": 20, "log_every": 50}}]})
    >>> table = result.scalars(block="grid", where={"L": 10})
    >>> table["lam"].tolist(), table["risk"].round(4).tolist()
    ([0.1, 0.2], [0.1135, 0.4248])
    >>> [array.shape for array in result.series("path_kappa").values()]
    [(4, 3)]
    >>> result.figure(x="lam", y="risk", split="L").svg[:4]
    '<svg'
    """

    def __init__(self, store, pointer, count):
        self.store = self._store = store
        self.name = self._study = text(lib.fin_study_name(pointer))
        self.title = text(lib.fin_study_title(pointer))
        self.planned, self.present, self.done = count.planned, count.present, count.done
        self.seconds = count.seconds
        self.failed = count.failed_in_store
        claims = self.claims()
        self.holds = self.failed == 0 and all(v != "untested" and (v == "holds") == (not known)
                                              for v, known in zip(claims["verdict"], claims["known"]))

    def summary(self):
        """A text: how many claims hold, and every claim that does not, with what was measured and what was expected."""
        claims = self.claims()
        lines = [repr(self)]
        for i, verdict in enumerate(claims["verdict"].tolist()):
            if verdict != "holds":
                known = f" (known: {claims['known'][i]})" if claims["known"][i] else ""
                lines.append(f"{verdict}: {claims['statement'][i]} Measured {claims['value'][i]:.4g}, expected "
                             f"{claims['expected'][i]}{known}")
        return "\n".join(lines)

    def _repr_html_(self):
        if self.store._pointer is None:
            return table(f"study {self.name}, in a store that is closed", ("runs",), [[self.planned]])
        c = self.claims()
        rows = [[c["verdict"][i], c["kind"][i], c["statement"][i], float(c["value"][i]), c["expected"][i]]
                for i in range(len(c["verdict"]))]
        return table(f"{self.title or self.name}: {self.planned} runs, {self.failed} failed",
                     ("verdict", "kind", "claim", "measured", "expected"), rows)

    def __repr__(self):
        if self.store._pointer is None:
            return f"<study {self.name!r}: {self.planned} runs, in a store that is closed>"
        verdicts = self.claims()["verdict"].tolist()
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("holds", "fails", "undecided", "untested")
                           if v in verdicts)
        return (f"<study {self.name!r}: {self.planned} runs ({self.present} cached, {self.done} computed, "
                f"{self.failed} failed), {len(verdicts)} claims{': ' + counts if counts else ''}>")


@signed(_KEYWORDS)
def study(study, store=None, *, set=None, full=False, progress=None, **settings):
    """Runs what is missing of a study, and judges its claims.

    Parameters
    ----------
    study : str, path or dict
        Name of a study that comes with the library (finetti.study_names()), a study file (YAML), its text, or a dict
        of the same form (docs/studies.md).
    store : path or Store, default=None
        The file that the runs go into; what it has already is not run again. None: a temporary file, which lives as
        long as the result.
    {parameters}
    set : dict, default=None
        Changes to the study: {"grid.lam": 0.2, "runs.grid.axes.L": [2, 10], "title": "..."}.
    full : bool, default=False
        The sizes under `full:` instead of the quick ones.
    progress : callable or bool, default=None
        progress(what, done, total), which may return True to cancel; True: a bar, if tqdm is there. After a
        cancellation, or Ctrl-C, the store has all runs that were finished, and the same call goes on.

    Returns
    -------
    StudyResult
        runs(), scalars(), series(name), claims() as arrays; figure(id, path), report(path), export(path); holds.

    Examples
    --------
    >>> import finetti
    >>> result = finetti.study({
    ...     "study": "tour",
    ...     "runs": [{"command": "risk", "set": {"show": "risk,linear"}, "axes": {"lam": [0.01, 0.1, 1]}}],
    ...     "claims": [{"id": "best", "statement": "Attention beats the best linear predictor.",
    ...                 "take": "risk - linear", "reduce": "min", "expect": {"at_most": 0}}]})
    >>> result.holds, result.scalars()["risk"].round(4).tolist()
    (True, [0.3552, 0.1135, 4.181])
    """
    pointer = _read(study, set, full)
    err = error()
    check(lib.fin_report_check(pointer, err), err)
    values = _TABLE.make(settings)
    own = not isinstance(store, Store)
    store = Store(store, "create") if own else store
    try:
        return StudyResult(store, pointer, _run(pointer, store, values, progress))
    except BaseException:
        if own:
            store.close()
        raise


def _run(pointer, store, values, progress):
    count = ffi.new("fin_study_count *")
    with store._lock, Watch(progress) as watch:
        calls = ffi.new("fin_study_calls *", {"news": lib.finpy_news, "user": watch.handle})
        watch.check(lib.fin_study_conduct(pointer, store._get(), values, calls, count, watch.err))
    return count
