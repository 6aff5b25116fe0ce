"""Steps of SGD at the paper's sizes: of a transformer layer (lab layer), and of two heads (lab heads).

All draw fresh tokens, go forward and backward, and take the step, on one thread. PyTorch has the layer's formula as it
stands, with all rows of the attention, and with the register's row alone, which is all that the loss needs. Two heads are
written out in NumPy, in float and in R^d, 20 runs at once, and left to autograd in PyTorch; ours are reduced to the Gram
matrix of eight vectors, which has the same law. That all compute the same is a matter of tests (tests/data/layer_torch.py,
tests/test_train_heads.c).
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p

import numpy as np

import peers
from library import Error

D, HIDDEN, L, BATCH, ALPHA, STEPS, RUNS = 80, 200, 10, 128, 1e-2, 100, 20


class Pair(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("mark", c_void_p)]


def command(bench, name, settings):
    """A call that runs a command of the library's table."""
    library = ctypes.CDLL(bench.path)
    library.fin_command_find.restype = c_void_p
    library.fin_command_run.argtypes = [c_void_p, POINTER(Pair), c_int, c_void_p, POINTER(c_void_p), POINTER(Error)]
    library.fin_result_destroy.argtypes = [c_void_p]
    pairs = (Pair * len(settings))(*(Pair(name.encode(), str(value).encode(), None) for name, value in settings.items()))
    found = library.fin_command_find(name.encode())

    def call():
        result, error = c_void_p(), Error()
        if library.fin_command_run(found, pairs, len(pairs), None, byref(result), byref(error)):
            raise RuntimeError(error.message.decode())
        library.fin_result_destroy(result)
    return call


class Torch:
    def __init__(self, heads, rows):
        torch = peers.torch
        self.heads, self.rows = heads, rows
        wide = (2 / (D + HIDDEN)) ** 0.5
        start = [((heads, D, D), D ** -0.5), ((heads, D, D), 0), ((heads, D, D), D ** -0.5), ((HIDDEN, D), wide),
                 ((HIDDEN,), 0), ((D, HIDDEN), wide), ((D,), 0), ((D,), 1 / D)]
        self.w = [(spread * torch.randn(shape)).requires_grad_() for shape, spread in start]
        self.register = torch.randn(1, 1, D) * D ** -0.5
        star = torch.linalg.qr(torch.randn(D, 2 * heads))[0].T
        self.k, self.v = star[:heads], star[heads:]

    def draw(self):
        torch = peers.torch
        x = torch.randn(BATCH, L, D)
        x[:, :self.heads] = x[:, :self.heads] * 0.5 ** 0.5 + (D / 2) ** 0.5 * self.k
        return x, (x[:, :self.heads] * self.v).sum((1, 2)) + 0.1 * torch.randn(BATCH)

    def forward(self, x):
        torch, (Wk, Wq, Wv, W1, b1, W2, b2, theta) = peers.torch, self.w
        X = torch.cat([self.register.expand(BATCH, 1, D), x], 1)
        Z = (X - X.mean(-1, keepdim=True)) / (X.std(-1, correction=0, keepdim=True) + 1e-5)
        rows = X[:, :self.rows]
        for h in range(self.heads):
            scores = (Z[:, :self.rows] @ Wk[h].T) @ (Z @ Wq[h].T).transpose(1, 2) / D ** 0.5
            rows = rows + torch.softmax(scores, 2) @ Z @ Wv[h]
        rows = rows + torch.relu(rows @ W1.T + b1) @ W2.T + b2
        return rows[:, 0] @ theta

    def __call__(self):
        torch = peers.torch
        for _ in range(STEPS):
            x, y = self.draw()
            slopes = torch.autograd.grad(((self.forward(x) - y) ** 2).mean(), self.w)
            with torch.no_grad():
                for w, slope in zip(self.w, slopes):
                    w.sub_(slope, alpha=ALPHA)


class Heads:
    """RUNS runs of two heads (k_h, v_h), two pairs, at once: a step is lam = 1's."""

    def __init__(self):
        self.rng = np.random.Generator(np.random.SFC64(1))
        self.x = np.empty((RUNS, 5, L, D), np.float32)
        self.kv = self.rng.standard_normal((RUNS, 4, D), np.float32)
        self.kv /= np.linalg.norm(self.kv, axis=-1, keepdims=True)

    def step(self):
        f, rng, x, kv = np.float32, self.rng, self.x, self.kv
        rng.standard_normal(dtype=f, out=x)
        x[:, :, :2] *= f(0.5 ** 0.5)
        x[:, :, 0, 0] += f((D / 2) ** 0.5)
        x[:, :, 1, 1] += f((D / 2) ** 0.5)
        y = x[:, :, 0, 2] + x[:, :, 1, 3] + f(0.1) * rng.standard_normal((RUNS, 5), f)
        rows = x.reshape(RUNS, 5 * L, D)
        s = (kv @ rows.transpose(0, 2, 1)).reshape(RUNS, 2, 2, 5, L)
        chi, z = s[:, :, 0], s[:, :, 1]
        w = peers.special.erf(chi)
        m = f(2 / 5) * ((w * z).sum((1, 3)) - y)[:, None, :, None]
        p = np.empty_like(s)
        p[:, :, 0] = f(peers.TWO_OVER_SQRT_PI) * np.exp(-chi * chi) * z * m
        p[:, :, 1] = w * m
        slope = p.reshape(RUNS, 4, 5 * L) @ rows
        slope -= kv * (kv * slope).sum(-1, keepdims=True)
        kv -= f(1e-3) * slope
        kv /= np.sqrt((kv * kv).sum(-1, keepdims=True))

    def __call__(self):
        for _ in range(STEPS):
            self.step()


class HeadsTorch(Heads):
    def __init__(self):
        super().__init__()
        self.kv = peers.torch.tensor(self.kv, requires_grad=True)

    def step(self):
        torch, kv = peers.torch, self.kv
        x = torch.randn(RUNS, 5, L, D)
        x[:, :, :2] *= 0.5 ** 0.5
        x[:, :, 0, 0] += (D / 2) ** 0.5
        x[:, :, 1, 1] += (D / 2) ** 0.5
        y = x[:, :, 0, 2] + x[:, :, 1, 3] + 0.1 * torch.randn(RUNS, 5)
        s = (kv @ x.view(RUNS, 5 * L, D).transpose(1, 2)).view(RUNS, 2, 2, 5, L)
        loss = (((torch.erf(s[:, :, 0]) * s[:, :, 1]).sum((1, 3)) - y) ** 2).sum() / 5
        slope, = torch.autograd.grad(loss, kv)
        with torch.no_grad():
            kv.sub_(1e-3 * (slope - kv * (kv * slope).sum(2, keepdim=True)))
            kv.div_(kv.norm(dim=2, keepdim=True))


def heads(bench):
    settings = {"runs": RUNS, "steps": 100 * STEPS, "lam": 1, "decay": 0, "log_every": 100 * STEPS}
    ours = command(bench, "heads", settings)
    flat = command(bench, "heads", settings | {"d": 10 ** 9})
    contestants = {"finetti": ours, "d = 10^9": flat, "numpy": Heads()}
    if peers.torch:
        contestants["torch"] = HeadsTorch()
    seconds = bench.race(contestants)
    seconds = {who: t / (100 if who in ("finetti", "d = 10^9") else 1) for who, t in seconds.items()}
    bench.row("two heads, 20 runs", seconds, STEPS / 1e3, "k steps/s", aims={"numpy": 100, "torch": 100})


def layer(bench):
    settings = {"runs": 1, "steps": STEPS, "log_every": STEPS, "test": 2}
    for heads in 1, 2:
        contestants = {"finetti": command(bench, "layer", settings | {"H": heads})}
        if peers.torch:
            contestants |= {"torch": Torch(heads, L + 1), "torch, one row": Torch(heads, 1)}
        flops = BATCH * (6 * HIDDEN * D + 6 * heads * D * D + 8 * heads * L * D)
        seconds = bench.race(contestants)
        bound = f"{STEPS * flops / seconds['finetti'] / 1e9:.1f} Gflop/s"
        bench.row(f"layer, {heads} head{'s' * (heads > 1)}", seconds, STEPS / 1e3, "k steps/s", bound=bound)


PARTS = {"layer": layer, "heads": heads}
