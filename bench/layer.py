"""A step of SGD of a transformer layer (lab layer) at the paper's sizes, beside PyTorch's autograd.

Both draw fresh tokens, go forward and backward, and take the step, in float on one thread. PyTorch has the formula as it
stands, with all rows of the attention, and with the register's row alone, which is all that the loss needs.
That both compute the same is a matter of tests (tests/data/layer_torch.py).
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p

import peers
from library import Error

D, HIDDEN, L, BATCH, ALPHA, STEPS = 80, 200, 10, 128, 1e-2, 100


class Pair(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("mark", c_void_p)]


def ours(bench, heads):
    """A call that makes STEPS steps of one run; the two looks at it are on two samples each."""
    library = ctypes.CDLL(bench.path)
    library.fin_command_find.restype = c_void_p
    library.fin_command_run.argtypes = [c_void_p, POINTER(Pair), c_int, c_void_p, POINTER(c_void_p), POINTER(Error)]
    library.fin_result_destroy.argtypes = [c_void_p]
    settings = {"H": heads, "runs": 1, "steps": STEPS, "log_every": STEPS, "test": 2}
    pairs = (Pair * len(settings))(*(Pair(name.encode(), str(value).encode(), None) for name, value in settings.items()))
    command = library.fin_command_find(b"layer")

    def call():
        result, error = c_void_p(), Error()
        if library.fin_command_run(command, pairs, len(pairs), None, byref(result), byref(error)):
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


def measure(bench):
    for heads in 1, 2:
        contestants = {"finetti": ours(bench, heads)}
        if peers.torch:
            contestants |= {"torch": Torch(heads, L + 1), "torch, one row": Torch(heads, 1)}
        flops = BATCH * (6 * HIDDEN * D + 6 * heads * D * D + 8 * heads * L * D)
        seconds = bench.race(contestants)
        bound = f"{STEPS * flops / seconds['finetti'] / 1e9:.1f} Gflop/s"
        bench.row(f"layer, {heads} head{'s' * (heads > 1)}", seconds, STEPS / 1e3, "k steps/s", bound=bound)


PARTS = {"layer": measure}
