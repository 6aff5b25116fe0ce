"""Context: its numbers against NumPy's, growing and shrinking, threads, pickles, and what it refuses."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest

import finetti
from finetti import Context, _context, _core, _window

KERNELS = ["linear", "polynomial", "exponential", "rbf", "matern32", "matern52"]


def tokens(n=30, dk=3, dv=None, seed=0):
    random = np.random.default_rng(seed)
    keys = random.normal(size=(n, dk))
    values = 1 + np.sin(keys[:, 0]) + 0.1 * random.normal(size=n)
    return keys, values if dv is None else np.stack([values * (j + 1) + j for j in range(dv)], axis=1)


def gram(kernel, a, b, degree=2, offset=1.0):
    """The covariance functions as the library's header states them."""
    product = a @ b.T
    r = np.sqrt(np.maximum(((a[:, None] - b[None])**2).sum(axis=-1), 0))
    return {"linear": lambda: product, "polynomial": lambda: (offset + product)**degree,
            "exponential": lambda: np.exp(product), "rbf": lambda: np.exp(-r**2 / 2),
            "matern32": lambda: (1 + 3**0.5 * r) * np.exp(-3**0.5 * r),
            "matern52": lambda: (1 + 5**0.5 * r + 5 * r**2 / 3) * np.exp(-5**0.5 * r)}[kernel]()


# ---- numbers ----------------------------------------------------------------------------------

@pytest.mark.parametrize("kernel", KERNELS)
def test_cme_is_the_posterior_of_a_gaussian_process(kernel):
    keys, values = tokens(dv=2)
    queries = tokens(7, seed=1)[0]
    columns = np.array([0.7, 1.5, 3.0])
    settings = dict(scale=1.3, prior=0.8, noise=0.05, level=2.0)
    context = Context(keys, values, kernel=kernel, scales=columns, **settings)
    a, q = keys / (1.3 * columns), queries / (1.3 * columns)
    K = 0.8 * gram(kernel, a, a) + 2.0 + 0.05 * np.eye(30)
    Kq = 0.8 * gram(kernel, q, a) + 2.0
    mean, variance, weights = context.predict(queries, return_variance=True, return_weights=True)
    np.testing.assert_allclose(mean, Kq @ np.linalg.solve(K, values), rtol=0, atol=1e-9)
    prior = 0.8 * np.diag(gram(kernel, q, q)) + 2.0
    expected = prior - (Kq * np.linalg.solve(K, Kq.T).T).sum(axis=1)
    np.testing.assert_allclose(variance, np.stack([expected, expected], axis=1), rtol=0, atol=1e-9)
    np.testing.assert_allclose(weights @ values, mean, rtol=0, atol=1e-10)
    evidence = sum(-0.5 * (v @ np.linalg.solve(K, v) + np.linalg.slogdet(K)[1] + 30 * np.log(2 * np.pi))
                   for v in values.T)
    assert context.evidence() == pytest.approx(evidence, rel=1e-10)


@pytest.mark.parametrize("form, kernel", [("softmax", "rbf"), ("nw", "rbf"), ("nw", "matern32")])
def test_averages(form, kernel):
    keys, values = tokens()
    queries = tokens(5, seed=1)[0]
    context = Context(keys, values, form=form, kernel=kernel, temperature=0.5, scale=0.7)
    w = np.exp(queries @ keys.T / 0.5) if form == "softmax" else gram(kernel, queries / 0.7, keys / 0.7)
    w /= w.sum(axis=1, keepdims=True)
    mean, variance, weights = context.predict(queries, True, True)
    np.testing.assert_allclose(weights, w, rtol=1e-12)
    np.testing.assert_allclose(mean, w @ values, rtol=1e-12)
    np.testing.assert_allclose(variance, w @ values**2 - (w @ values)**2, rtol=0, atol=1e-12)
    assert np.isnan(context.prefix()[1]).all()


def test_gradient_of_the_evidence_by_differences():
    keys, values = tokens()
    settings = dict(scale=1.1, prior=0.9, noise=0.2)
    _, gradient = Context(keys, values, **settings).evidence(return_gradient=True)
    for name in settings:
        up, down = (Context(keys, values, **{**settings, name: settings[name] * np.exp(step)}).evidence()
                    for step in (1e-5, -1e-5))
        assert gradient[name] == pytest.approx((up - down) / 2e-5, rel=1e-6)
    assert gradient["scales"].sum() == pytest.approx(gradient["scale"], rel=1e-9)


@pytest.mark.parametrize("form", ["cme", "softmax", "nw"])
def test_loo_and_prefix_are_contexts_without_tokens(form):
    keys, values = tokens(12)
    context = Context(keys, values, form=form)
    mean, variance = context.loo()
    rest = np.arange(12) != 4
    one, spread = Context(keys[rest], values[rest], form=form).predict(keys[4:5], return_variance=True)
    assert mean[4] == pytest.approx(one[0], rel=1e-10)
    assert variance[4] == pytest.approx(spread[0] + (0.1 if form == "cme" else 0), rel=1e-10)
    squared, score = context.prefix()
    before, spread = Context(keys[:4], values[:4], form=form).predict(keys[4:5], return_variance=True)
    assert len(squared) == 12 and squared[4] == pytest.approx((before[0] - values[4])**2, rel=1e-10)
    if form == "cme":
        assert score.sum() == pytest.approx(-context.evidence(), rel=1e-10)
    asked, answers = tokens(5, seed=3)
    squared, _ = context.prefix(asked, answers)
    assert len(squared) == 13
    assert squared[12] == pytest.approx(((context.predict(asked) - answers)**2).mean(), rel=1e-10)


def test_shapes():
    keys, flat = tokens()
    for values, end in ((flat, ()), (flat[:, None], (1,)), (tokens(dv=3)[1], (3,))):
        context = Context(keys, values)
        mean, variance, weights = context.predict(keys[:4], True, True)
        assert mean.shape == variance.shape == (4, *end) and weights.shape == (4, 30)
        assert context.predict(keys[:0]).shape == (0, *end)
        assert context.loo()[0].shape == (30, *end) and context.values.shape == (30, *end)
        assert type(context.predict(keys, return_weights=True)) is tuple


def test_no_tokens_is_the_prior():
    empty = Context(np.empty((0, 2)), np.empty(0), prior=2, level=3)
    mean, variance, weights = empty.predict(np.zeros((2, 2)), True, True)
    assert (mean == 0).all() and (variance == 5).all() and weights.shape == (2, 0) and len(empty) == 0
    empty.append(np.ones((1, 2)), np.array([4.0]))
    assert len(empty) == 1 and empty.predict(np.ones((1, 2)))[0] == pytest.approx(4 * 5 / 5.1)
    assert len(pickle.loads(pickle.dumps(Context(np.empty((0, 2)), np.empty(0))))) == 0
    with pytest.raises(finetti.ArgumentError):
        Context(np.empty((0, 2)), np.empty(0), form="softmax").predict(np.zeros((2, 2)))


def test_settings_and_info():
    context = Context(*tokens(), kernel="linear", noise=0.25)
    assert context.settings["kernel"] == "linear" and context.settings["noise"] == 0.25
    assert context.info["method"] == "primal" and context.info["tokens"] == 30 and context.info["features"] == 3
    assert Context(*tokens(), form="nw").info["method"] == "none"
    assert "30 tokens" in repr(context) and "linear" in repr(context)
    for array in (context.keys, context.values):
        with pytest.raises(ValueError):
            array[0] = 1


# ---- growing and shrinking --------------------------------------------------------------------

@pytest.mark.parametrize("settings", [dict(), dict(kernel="linear"), dict(form="softmax"), dict(form="nw"),
                                      dict(method="nystrom", landmarks=20)], ids=str)
@pytest.mark.parametrize("step", [1, 7, 50])
def test_append_and_drop_give_the_numbers_of_a_new_context(settings, step):
    keys, values = tokens(150, dv=2)
    queries = tokens(5, seed=2)[0]
    context = Context(keys[:100], values[:100], **settings)
    for i in range(100, 150, step):
        context.append(keys[i:i + step], values[i:i + step])
    assert len(context) == 150 and (context.keys == keys).all() and (context.values == values).all()
    assert 150 <= context.capacity <= 200 + step
    if settings.get("method") == "nystrom":  # landmarks are chosen at other times
        assert np.isfinite(context.predict(queries)).all()
        return
    whole = Context(keys, values, **settings)
    np.testing.assert_allclose(context.predict(queries, True)[1], whole.predict(queries, True)[1], rtol=0, atol=1e-10)
    for count in (1, 30, 0):
        context.drop(count)
    rest = Context(keys[31:], values[31:], **settings)
    assert len(context) == 119 and (context.keys == keys[31:]).all()
    np.testing.assert_allclose(context.predict(queries), rest.predict(queries), rtol=0, atol=1e-9)


def test_window_slides_for_long():
    keys, values = tokens(400)
    context = Context(keys[:50], values[:50], capacity=51)
    for i in range(50, 400):
        context.append(keys[i:i + 1], values[i:i + 1])
        context.drop()
    assert len(context) == 50 and context.capacity == 51 and len(context._rows.buffers[0]) <= 102
    fresh = Context(keys[350:], values[350:])
    np.testing.assert_allclose(context.predict(keys[:5]), fresh.predict(keys[:5]), rtol=0, atol=1e-9)


def test_arrays_that_were_given_can_change():
    keys, values = tokens()
    context = Context(keys, values)
    before, seen = context.predict(keys), context.keys
    asked = keys.copy()
    keys[:], values[:] = 0, 0
    assert (context.predict(asked) == before).all() and (seen == asked).all()
    context.append(asked[:1] + 1, np.ones(1))
    context.drop(3)
    assert (seen == asked).all()


def test_changes_are_all_or_nothing():
    keys, values = tokens()
    context = Context(keys, values, noise=0, capacity=40)
    before = context.predict(keys + 0.1)
    bad = np.array([[0.0, 0, 0], [np.nan, 0, 0]])
    with pytest.raises(finetti.ArgumentError, match="finite"):
        context.append(bad, np.zeros(2))
    for count in (1, 15):  # within the capacity and beyond it
        with pytest.raises(finetti.NumericalError):
            context.append(keys[:count], values[:count] + 1)
    with pytest.raises(finetti.ArgumentError, match="31.*30 tokens"):
        context.drop(31)
    with pytest.raises(finetti.ArgumentError, match="-1"):
        context.drop(-1)
    assert len(context) == 30 and (context.predict(keys + 0.1) == before).all()


class Library:
    """The library, but for the call that a test replaces."""

    def __init__(self, name, call):
        setattr(self, name, call)

    def __getattr__(self, name):
        return getattr(_core.lib, name)


def test_a_drop_that_fails_changes_nothing(monkeypatch):
    keys, values = tokens()
    context = Context(keys, values)
    before = context.predict(keys)
    lib, null = _core.lib, _core.ffi.NULL

    def drop(cross, count, err):  # as running out of memory does
        assert not lib.fin_cross_load(cross, 0, null, null, null, err)
        return lib.FIN_ERR_MEMORY

    monkeypatch.setattr(_context, "lib", Library("fin_cross_drop", drop))
    for count in (5, 30):
        with pytest.raises(finetti.OutOfMemoryError):
            context.drop(count)
        assert len(context) == 30 and (context.predict(keys) == before).all()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ["fin_cross_append", "fin_cross_load", "fin_cross_drop"])
def test_an_interrupt_leaves_no_half_changes(monkeypatch, name, late):
    keys, values = tokens(31)
    context = Context(keys[:30], values[:30], capacity=35)

    def interrupt(*args):
        if late:
            assert getattr(_core.lib, name)(*args) == 0
        raise KeyboardInterrupt

    monkeypatch.setattr(_context, "lib", Library(name, interrupt))
    with pytest.raises(KeyboardInterrupt):
        if name == "fin_cross_drop":
            context.drop(4)
        elif name == "fin_cross_append":
            context.append(keys[30:], values[30:])
        else:
            context.append(keys[:10], values[:10])
    monkeypatch.undo()
    done = late and name != "fin_cross_load"  # which fills a new one
    count = 30 if not done else 31 if name == "fin_cross_append" else 26
    assert len(context) == context.info["tokens"] == count and sum(context._steps) == count
    fresh = Context(context.keys, context.values)
    for a, b in zip(context.predict(keys, True, True), fresh.predict(keys, True, True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)
    context.append(keys[30:], values[30:])
    assert len(pickle.loads(pickle.dumps(context))) == count + 1


# ---- pickles ----------------------------------------------------------------------------------

@pytest.mark.parametrize("settings", [dict(kernel="matern32", scale=0.1 + 0.2), dict(kernel="linear", level=1 / 3),
                                      dict(form="softmax"), dict(method="nystrom", landmarks=20, seed=5)], ids=str)
def test_pickle_to_the_last_bit(settings):
    keys, values = tokens(100)
    context = Context(keys[:90], values[:90], scales=np.array([1, 2, 1 / 3]), capacity=120, **settings)
    for i in range(90, 100):
        context.append(keys[i:i + 1], values[i:i + 1])
    again = pickle.loads(pickle.dumps(context))
    assert again.settings == context.settings and (again.scales == context.scales).all()
    assert again.capacity == 120 and again.info == context.info
    for a, b in zip(context.predict(keys, True, True), again.predict(keys, True, True)):
        assert (a == b).all()
    context.drop(20)
    again = pickle.loads(pickle.dumps(context))
    if "method" not in settings:
        np.testing.assert_allclose(again.predict(keys), context.predict(keys), rtol=0, atol=1e-10)
    assert len(again) == 80
    again.append(keys[:1] + 1, values[:1])


# ---- threads, progress ------------------------------------------------------------------------

def test_many_threads_ask_while_one_changes(two_threads):
    keys, values = tokens(120)
    query = tokens(40, seed=5)[0]
    context = Context(keys[:100], values[:100], capacity=120)
    right = {n: Context(keys[:n], values[:n]).predict(query) for n in range(100, 121)}
    problems, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            mean, weights = context.predict(query, return_weights=True)
            if not np.abs(mean - right[weights.shape[1]]).max() < 1e-9:
                problems.append(weights.shape[1])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(100, 120):
        context.append(keys[i:i + 1], values[i:i + 1])
    stop.set()
    for thread in threads:
        thread.join()
    assert len(context) == 120 and not problems


def test_two_threads_are_inside_at_once(two_threads):
    keys, values = tokens(500)
    context = Context(keys, values)
    meeting = threading.Barrier(2, timeout=20)
    met = []

    def progress(what, done, total):
        if not met:
            meeting.wait()
            met.append(True)

    threads = [threading.Thread(target=lambda: context.predict(keys, progress=progress)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met and not meeting.broken


def test_append_waits_for_those_who_ask(two_threads):
    keys, values = tokens(500)
    context = Context(keys, values, capacity=501)
    seen = []

    def progress(what, done, total):
        if not seen:
            changer.start()
            changer.join(0.2)
            seen.append((changer.is_alive(), len(context)))

    changer = threading.Thread(target=lambda: context.append(keys[:1], values[:1]))
    context.predict(keys, progress=progress)
    changer.join(20)
    assert seen == [(True, 500)] and len(context) == 501


@pytest.mark.parametrize("change", [lambda c: c.append(c.keys[:1], c.values[:1]), lambda c: c.drop()])
def test_a_progress_function_may_ask_but_not_change(change):
    keys, values = tokens(500)
    context = Context(keys, values)
    mean, seen = context.predict(keys), []

    def progress(what, done, total):
        seen.append((context.predict(keys[:1])[0], len(pickle.loads(pickle.dumps(context))), len(context.keys)))
        change(context)

    with pytest.raises(RuntimeError, match="cannot change the context that it is called for"):
        context.predict(keys, progress=progress)
    assert seen == [(pytest.approx(mean[0]), 500, 500)]
    change(context)  # nobody is left inside
    assert len(context) != 500


def test_a_progress_function_may_ask_while_another_thread_waits_to_change(two_threads):
    keys, values = tokens(500)
    context = Context(keys, values, capacity=501)
    changer = threading.Thread(target=lambda: context.append(keys[:1], values[:1]), daemon=True)
    seen = []

    def progress(what, done, total):
        if not seen:
            changer.start()
            while context._gate.gone is None:
                pass
            seen.append(len(context.predict(keys[:1], return_weights=True)[1][0]))

    asker = threading.Thread(target=lambda: context.predict(keys, progress=progress), daemon=True)
    asker.start()
    for thread in (asker, changer):
        thread.join(20)
        assert not thread.is_alive()
    assert seen == [500] and len(context) == 501


def test_a_child_does_not_wait_for_threads_of_its_parent(two_threads):
    keys, values = tokens(500)
    context, other = Context(keys, values), Context(keys, values)
    codes = []

    def progress(what, done, total):  # this thread asks one context and changes another while the other one forks
        if not codes:
            with other._gate.turn:
                other._gate.wait()
                forker = threading.Thread(target=fork)
                forker.start()
                forker.join()

    def fork():
        child = os.fork()
        if child:
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return
        signal.alarm(20)
        try:
            context.append(keys[:1], values[:1])
            grandchild = os.fork()
            with pytest.raises(RuntimeError, match="make it anew"):
                other.predict(keys[:1])
            if grandchild:
                assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 7
            os._exit(7 if len(context) == 501 else 1)
        finally:
            os._exit(2)

    context.predict(keys, progress=progress)
    assert codes == [7]
    other.drop()
    assert len(other) == 499 and len(context) == 500


def test_progress_can_cancel_and_raise(two_threads):
    keys, values = tokens(500)
    context = Context(keys, values)
    with pytest.raises(finetti.CancelledError):
        context.predict(keys, progress=lambda *what: True)
    with pytest.raises(ZeroDivisionError):
        context.loo(progress=lambda *what: 1 / 0)
    context.append(keys[:1], values[:1])  # nobody is left inside
    with pytest.raises(finetti.CancelledError):
        Context(keys, values, progress=lambda *what: True)


# ---- bad input --------------------------------------------------------------------------------

@pytest.mark.parametrize("change, kind, words", [
    (lambda x: x.astype(np.float32), TypeError, "float32.*must be float64.*astype"),
    (lambda x: x.astype(np.float16), TypeError, "float16.*must be float64"),
    (lambda x: x.astype(complex), TypeError, "complex"),
    (lambda x: x.astype(object), TypeError, "object"),
    (lambda x: x.astype(">f8"), TypeError, "must be float64"),
    (lambda x: np.ma.masked_array(x), TypeError, "masked"),
    (lambda x: x.tolist(), TypeError, "NumPy array.*list"),
    (lambda x: None, TypeError, "NoneType"),
    (lambda x: x[:, 0], ValueError, r"\(30,\)"),
    (lambda x: np.asfortranarray(x), ValueError, "not contiguous.*ascontiguousarray"),
    (lambda x: np.frombuffer(b"-" + x.tobytes(), np.uint8)[1:].view(float).reshape(x.shape), ValueError, r"copy\(\)"),
    (lambda x: x[:, :2].copy(), ValueError, r"\(30, 2\).*3"),
])
def test_queries_and_keys_that_are_refused(change, kind, words):
    keys, values = tokens()
    context = Context(keys, values)
    calls = [context.predict, lambda x: context.append(x, values), lambda x: context.prefix(x, values),
             lambda x: Context(x, values)]
    for i, call in enumerate(calls):
        if i == 2 and change(keys) is None or i == 3 and words.endswith("3"):
            continue  # which is allowed there
        with pytest.raises(kind, match=words):
            call(change(keys))
    assert len(context) == 30


def test_other_bad_input():
    keys, values = tokens()
    context = Context(keys, values)
    for bad in (np.full((2, 3), np.nan), np.full((2, 3), np.inf)):
        with pytest.raises(finetti.ArgumentError, match="finite"):
            context.predict(bad)
    for bad in (values[:29], values[None], np.zeros((30, 2, 2)), np.ones(())):
        with pytest.raises(ValueError, match="values has shape"):
            Context(keys, bad)
    with pytest.raises(ValueError, match=r"values has shape \(30, 1\).*\(n,\)"):
        context.append(keys, values[:, None])
    with pytest.raises(ValueError, match=r"\(30, 1\).*\(n, 2\)"):
        Context(keys, tokens(dv=2)[1]).append(keys, values[:, None])
    with pytest.raises(finetti.ArgumentError):
        Context(np.empty((3, 0)), values[:3])
    with pytest.raises(ValueError, match="scales has 2"):
        Context(keys, values, scales=np.ones(2))
    with pytest.raises(finetti.ArgumentError):
        Context(keys, values, scales=np.array([1, 0, 1.0]))
    with pytest.raises(ValueError, match="go together"):
        context.prefix(keys)
    with pytest.raises(ValueError, match="no rows"):
        context.prefix(keys[:0], values[:0])
    with pytest.raises(finetti.UnsupportedError, match="no probability model"):
        Context(keys, values, form="softmax").evidence()


@pytest.mark.parametrize("settings, kind, words", [
    (dict(kernal="rbf"), TypeError, "kernal.*did you mean 'kernel'"),
    (dict(kernel="rbg"), finetti.ArgumentError, "rbf"),
    (dict(noise=-1), finetti.ArgumentError, "noise"),
    (dict(noise=float("nan")), finetti.ArgumentError, "noise"),
    (dict(noise="auto"), finetti.ArgumentError, "noise"),
    (dict(scale=[1, 2]), TypeError, "scale must be"),
    (dict(degree=2.5), finetti.ArgumentError, "degree"),
    (dict(landmarks=10**30), finetti.ArgumentError, "too large"),
    (dict(capacity=29), finetti.ArgumentError, "capacity = 29.*30"),
    (dict(capacity=3.5), TypeError, "float"),
    (dict(capacity=10**6), finetti.UnsupportedError, "nystrom"),
    (dict(capacity=2**40), finetti.FinettiError, "1099511627776 tokens|2\\^40|GB"),
    (dict(capacity=2**70), finetti.ArgumentError, "capacity"),
    (dict(form="nw", kernel="linear"), finetti.FinettiError, "linear"),
])
def test_settings_that_are_refused(settings, kind, words):
    with pytest.raises(kind, match=words):
        Context(*tokens(), **settings)


def test_memory_that_the_machine_does_not_have(monkeypatch):
    monkeypatch.setattr(_window.os, "sysconf", lambda name: 1000)
    with pytest.raises(finetti.UnsupportedError, match="this machine has 0.001 GB"):
        Context(*tokens(500))
