"""Questions to a store, answered with arrays: runs, scalars, series, claims, figures, reports.

Rows come out of the library one by one, through a callback for each kind of row; the callbacks below only hand them to
the function that asked. What goes wrong there, Ctrl-C included, ends the question and comes out of it.
"""

import os
import tempfile
import warnings

from ._columns import Columns, column, near
from ._command import DTYPES, array_of, settings_of
from ._core import ArgumentError, Watch, ffi, keep_exception, lib, text
from ._signature import Keyword, signed
from ._texts import Held, conditions, encoded, several

_STATES = {None: 0, "done": lib.FIN_STATE_DONE, "failed": lib.FIN_STATE_FAILED, "planned": -1}


# ---- what C calls ---------------------------------------------------------------------------------

def _hand_over(user, *row):
    watch = ffi.from_handle(user)
    try:
        watch.take(*row)
        return lib.FIN_OK
    except BaseException as problem:
        watch.problem = problem
        return lib.FIN_ERR_CANCELLED


for _name in ("study", "run", "scalar", "series", "claim", "figure", "session", "difference"):
    ffi.def_extern(f"finpy_{_name}_row", error=lib.FIN_ERR_CANCELLED,
                   onerror=keep_exception)(lambda *row: _hand_over(*row[:-1]))  # without the fin_error


@ffi.def_extern(onerror=keep_exception)
def finpy_note(user, note):
    _hand_over(user, note)


# ---- a store, or a study in it --------------------------------------------------------------------

_RUN = ("position", "block", "command", "hash", "state", "reason", "seconds", "version", "kernel", "settings")
_CLAIM = ("study", "id", "verdict", "kind", "statement", "value", "low", "high", "expected", "quantity", "how", "source",
          "figure", "fails_if", "known", "needed")
_CLAIM_NAMES = {"verdict": lib.fin_verdict_name, "kind": lib.fin_kind_name}
_QUERY = [
    Keyword("study", None, "str | None", "its runs only; None: those of all studies, or of the one that this is about"),
    Keyword("block", None, "str | None", "runs of this block of the study"),
    Keyword("command", None, "str | None", "runs of this command, such as 'risk'"),
    Keyword("hash", None, "str | None", "the run of this hash; a beginning is enough"),
    Keyword("where", None, "Mapping[str, Any] | Sequence[str] | str | None", "conditions on settings, such as "
            "{'lam': 0.1, 'L': ('>=', 10), 'form': ['erf', 'softmax']}, or ['lam=0.1', 'L>=10']"),
    Keyword("state", None, "Literal['done', 'failed', 'planned'] | None", "runs that are in this state"),
    Keyword("has", None, "str | None", "runs that have this scalar"),
]


class View:
    """Questions to a store, about one study or all of them. Those about runs take the same keywords."""

    _study = None

    @signed(_QUERY)
    def runs(self, **query):
        """The runs: position, block, command, hash, state, reason (of a failure), seconds, ..., settings (dicts).

        Parameters
        ----------
        {parameters}
        """
        rows = []
        self._ask(lib.fin_store_runs, self._query(query), lib.finpy_run_row,
                  take=lambda run: rows.append(_run(run)))
        return Columns.from_rows(_RUN, rows)

    @signed(_QUERY)
    def scalars(self, *, long=False, **query):
        """The numbers of the runs, beside their settings.

        A row is a run and has position, block, command, hash, state, then all settings, then all scalars, with
        NAME_error where there is one; what a run does not have is NaN or "". A setting that has the name of a scalar
        is NAME_setting.

        Parameters
        ----------
        {parameters}
        long : bool, default=False
            True: a row is a number instead, with hash, name, value, error, how, samples.
        """
        numbers = []
        self._ask(lib.fin_store_scalars, self._query(query), lib.finpy_scalar_row, take=lambda run, s: numbers.append((
            text(run.hash), text(s.name), s.value, s.error, text(lib.fin_how_name(s.how)), s.samples)))
        if long:
            return Columns.from_rows(("hash", "name", "value", "error", "how", "samples"), numbers)
        return _wide(self.runs(**query), numbers)

    @signed(_QUERY)
    def series(self, name=None, **query):
        """The arrays of the runs: {hash of the run: array}.

        Parameters
        ----------
        name : str, default=None
            Which array (series_names). None: all, as {hash: {name: array}}.
        {parameters}
        """
        found = {}

        def take(run, series):
            found.setdefault(text(run.hash), {}).update([array_of(series)])

        self._ask(lib.fin_store_series, self._query(query), 1, lib.finpy_series_row, take=take)
        if name is None:
            return found
        chosen = {hash_: arrays[name] for hash_, arrays in found.items() if name in arrays}
        if not chosen:
            names = {one for arrays in found.values() for one in arrays}
            raise KeyError(f"none of these runs has a series {name!r}{near(name, sorted(names))}")
        return chosen

    @signed(_QUERY)
    def series_names(self, **query):
        """Which arrays there are, without reading them: hash, name, dtype, shape, stored (bytes in the file).

        Parameters
        ----------
        {parameters}
        """
        rows = []
        self._ask(lib.fin_store_series, self._query(query), 0, lib.finpy_series_row,
                  take=lambda run, s: rows.append((text(run.hash), text(s.name), DTYPES[s.dtype],
                                                   tuple(s.shape[i] for i in range(s.ndim)), s.stored)))
        return Columns.from_rows(("hash", "name", "dtype", "shape", "stored"), rows)

    def claims(self, study=None):
        """The claims as last judged: id, verdict (holds, fails, undecided, untested), kind (paper, derived,
        check), statement, value, low, high, ...

        study : those of one study of a whole store.
        """
        rows = []
        one = study or self._study
        for name in [one] if one else self._store.studies()["name"]:
            self._ask(lib.fin_store_verdicts, encoded(name, "study"), lib.finpy_claim_row,
                      take=lambda claim: rows.append(tuple(
                          text(_CLAIM_NAMES[field](getattr(claim, field))) if field in _CLAIM_NAMES else
                          _value(getattr(claim, field)) for field in _CLAIM)))
        return Columns.from_rows(_CLAIM, rows)

    def figures(self, study=None):
        """The figures that the study files describe: study, id, title, kind.

        study : those of one study of a whole store.
        """
        rows = []
        name = study or self._study
        self._ask(lib.fin_report_figures, encoded(name, "study") if name else ffi.NULL, lib.finpy_figure_row,
                  take=lambda row: rows.append(tuple(text(getattr(row, f)) for f in ("study", "id", "title", "kind"))))
        return Columns.from_rows(("study", "id", "title", "kind"), rows)

    def figure(self, id=None, path=None, *, study=None, block=None, x=None, y=None, split=None, where=None, title=None,
               log_x=False, log_y=False, fit=False, width=0, height=0):
        """Draws a figure that the study file describes, or another one of settings and scalars.

        What a reader must know, such as runs that are missing, is a warning.

        Parameters
        ----------
        id : str, default=None
            Of a figure that the study file describes (figures).
        path : path, default=None
            FILE.svg, or FILE.csv for the numbers in it. None: the figure is returned, as a Figure, which notebooks
            show.
        study : str, default=None
            Which one, if the store has several.
        block : str, default=None
            Draw its runs only.
        x : str, default=None
            What goes to the right: a setting, a scalar or a formula of these.
        y : str or list of str, default=None
            What goes up: the same.
        split : str, default=None
            A line for every value of this setting.
        where : dict or list, default=None
            As for runs.
        title : str, default=None
        log_x, log_y, fit : bool, default=False
            Logarithmic axes; a power law through the points.
        width, height : number, default=0
            In pixels; 0 is the usual size.
        """
        held = Held("fin_figure *")
        for name, value in (("study", self._one(study)), ("id", id), ("block", block), ("x", x), ("split", split),
                            ("title", title)):
            held.text(name, value)
        held.texts("y", "y_count", several(y, "y", "a text, or a list of texts"))
        held.texts("where", "where_count", conditions(where))
        draw = held.pointer
        draw.log_x, draw.log_y, draw.fit = bool(log_x), bool(log_y), bool(fit)
        draw.width, draw.height = width, height
        if path is not None:
            return self._draw(held, path)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "figure.svg")
            self._draw(held, file)
            with open(file, encoding="utf-8") as drawn:
                return Figure(drawn.read())

    def _draw(self, held, path):
        notes = []
        with self._store._lock, Watch() as watch:
            watch.take = lambda note: notes.append(text(note))
            held.pointer.note, held.pointer.note_user = lib.finpy_note, watch.handle
            watch.check(lib.fin_report_figure(self._store._get(), held.pointer, encoded(path, "path"), watch.err))
        for note in notes:
            warnings.warn(note, stacklevel=3)

    def report(self, path, *, studies=None, title=None):
        """Writes the report: one HTML file with claims, figures, settings and the data behind each figure.

        Parameters
        ----------
        path : path
            The file.
        studies : list of str, default=None
            Those of a whole store that it is about; None: all.
        title : str, default=None
        """
        names = [self._study] if self._study else several(studies, "studies", "a list of names")
        keep = [ffi.new("char[]", encoded(name, "studies")) for name in names]
        with self._store._lock, Watch() as watch:
            watch.check(lib.fin_report_write(
                self._store._get(), ffi.new("char *[]", keep) if keep else ffi.NULL, len(keep),
                ffi.NULL if title is None else encoded(title, "title"), encoded(path, "path"), watch.err))

    @signed(_QUERY)
    def export(self, path, *, times=False, **query):
        """Writes the runs into a file.

        Parameters
        ----------
        path : path
            FILE.csv has a row for each run, FILE.npz the series too.
        {parameters}
        times : bool, default=False
            Also when they were run and how long they took.
        """
        held = self._query(query)
        with self._store._lock, Watch() as watch:
            watch.check(lib.fin_store_export(self._store._get(), held.pointer, encoded(path, "path"), bool(times),
                                             watch.err))

    # -- inside

    def _one(self, study):
        """The study that is meant: the only one, if nothing is said."""
        names = [study or self._study] if study or self._study else self._store.studies()["name"].tolist()
        if len(names) != 1:
            raise ArgumentError(f"study=... has to say which study; the store has {', '.join(names) or 'none'}")
        return names[0]

    def _query(self, given):
        held = Held("fin_query *")
        for name in ("block", "command", "hash", "has"):
            held.text(name, given.get(name))
        held.text("study", given.get("study") or self._study)
        held.texts("where", "where_count", conditions(given.get("where")))
        state = given.get("state")
        if state is not None and not isinstance(state, str) or state not in _STATES:
            raise ValueError(f"state is {state!r}; it can be 'done', 'failed', 'planned' or None (any)")
        held.pointer.state = _STATES[state]
        return held

    def _ask(self, function, *arguments, take):
        plain = [one.pointer if isinstance(one, Held) else one for one in arguments]
        with self._store._lock, Watch() as watch:
            watch.take = take
            watch.check(function(self._store._get(), *plain, watch.handle, watch.err))


class Figure:
    """A figure as SVG text: `svg`; notebooks show it; save(path) writes it."""

    def __init__(self, svg):
        self.svg = svg

    def __repr__(self):
        return f"<Figure of {len(self.svg)} characters of SVG; save(path) writes it, svg has it>"

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """Writes it to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def _value(field):
    return field if isinstance(field, float) else text(field)


def _run(run):
    return (run.position, text(run.block), text(run.command), text(run.hash), text(lib.fin_state_name(run.state)),
            text(run.reason), run.seconds, text(run.version), text(run.kernel), settings_of(text(run.settings)))


def _wide(runs, numbers):
    scalars, errors = {}, {}
    for hash_, name, value, error, _, _ in numbers:
        scalars.setdefault(name, {})[hash_] = value
        errors.setdefault(name, {})[hash_] = error
    arrays = {name: runs[name] for name in ("position", "block", "command", "hash", "state")}
    for name in sorted({name for settings in runs["settings"] for name in settings}):
        arrays[name + "_setting" * (name in scalars)] = column([settings.get(name) for settings in runs["settings"]])
    for name in sorted(scalars):
        arrays[name] = column([scalars[name].get(one) for one in runs["hash"]])
        if any(errors[name].values()):  # NaN, an error that is not known, counts
            arrays[name + "_error"] = column([errors[name].get(one) for one in runs["hash"]])
    return Columns(arrays)
