"""The keywords of a call of the laboratory as settings of a command, and a task of such settings."""

from ._command import COMMANDS, applied, canonical, split
from ._core import ArgumentError, check, error, ffi, lib
from ._lab import law
from .tasks import Task


def model_of(task, form, given, lengths):
    """({name: text}, {name: array}) of a command that has a task and (unless None) a form."""
    own = {}
    if isinstance(task, Task):
        wrong = [name for name, value in given.items() if value is not None and name in task._kind.table.fields]
        if wrong or lengths is not None:
            name = (wrong or ["lengths"])[0]
            raise TypeError(f"{name!r} is a setting of the task, and the task is given as an object: make another with "
                            f"finetti.tasks.{task.name}({name}=...)")
        own, lengths, task = task._given, task._lengths and zip(*task._lengths), task.name
    words, arrays = split({"task": task, "form": form, **given, **own})
    pairs = law(lengths, {**words, **arrays})
    if pairs == ((), ()):
        raise ArgumentError("lengths: at least one length with its weight is needed, such as {5: 0.2, 10: 0.8}")
    if pairs:
        words["lengths"] = ",".join(f"{L}:{p!r}" for L, p in zip(*pairs))
    return words, arrays


def settings_of(words, told, settled=True):
    """The settings of a model, as many of them as there are keywords in `told`; refuses what is wrong."""
    found = canonical(COMMANDS["risk"], words, settled)
    return {one.name: found[one.name] for one in told if found.get(one.name, "") != ""}


def task_of(words):
    """The fin_task of such settings."""
    out, err, values = ffi.new("fin_task **"), error(), applied(COMMANDS["risk"], words)
    check(lib.fin_command_task(COMMANDS["risk"].pointer, values, 1, 0, out, err), err)
    return ffi.gc(out[0], lib.fin_task_destroy)
