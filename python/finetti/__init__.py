"""finetti: an attention layer as a statistical estimator.

Estimators (scikit-learn's conventions): SingleLocationRegressor, SingleLocationClassifier, BagEmbeddingRegressor,
BagEmbeddingClassifier, AttentionRegressor; Bags holds their input, datasets makes or reads some.
Encoders: Encoder (pretrain, finetune, probe, attention) and TextEncoder.
Laboratory: risk, lam_star, bayes_risk, stationary_points, train, tasks, families, study; run, which takes any command
of the library's table. Lower down: Context (queries to a context of tokens), attend (many short contexts at once),
judge (how good predictions were), Store (what studies leave).

Nothing but the C library is loaded until a name is used, so that `import finetti` takes milliseconds.
"""

from . import _core
from ._core import (ArgumentError, CancelledError, FileError, FinettiError, FormatError, NumericalError,
                    OutOfMemoryError, UnsupportedError, __version__, get_threads, set_threads)

# Where the other names live.
_HOMES = {
    "Bags": "_bags",
    "PerToken": "_per_token",
    "SingleLocationRegressor": "_estimators",
    "SingleLocationClassifier": "_estimators",
    "BagEmbeddingRegressor": "_estimators",
    "BagEmbeddingClassifier": "_estimators",
    "load_model": "_estimators",
    "AttentionRegressor": "_attention",
    "Encoder": "_encoder",
    "TextEncoder": "_text_encoder",
    "datasets": "datasets",
    "Context": "_context",
    "attend": "_attend",
    "judge": "_attend",
    "tasks": "tasks",
    "families": "families",
    "plot": "plot",
    "run": "_command",
    "commands": "_command",
    "learning_curve": "_command",
    "risk": "_risk",
    "risk_erf": "_erf",
    "lam_star": "_risk",
    "linear_risk": "_risk",
    "bayes_risk": "_risk",
    "stationary_points": "_landscape",
    "train": "_train",
    "study": "_study",
    "study_commands": "_study",
    "study_names": "_study",
    "study_plan": "_study",
    "Store": "_store",
}

__all__ = sorted([name for name in globals() if not name.startswith("_")] + list(_HOMES)) + ["__version__"]


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        import difflib
        near = difflib.get_close_matches(name, __all__, 1)
        raise AttributeError(f"finetti has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    import importlib
    try:
        module = importlib.import_module(f".{home}", __name__)
    except ModuleNotFoundError as problem:
        sentence = _core.missing(problem.name, f"finetti.{name}")
        if sentence is None:
            raise
        raise ImportError(sentence, name=problem.name) from None
    value = module if home == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
