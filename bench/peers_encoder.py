"""One training step of a transformer encoder, ours and PyTorch's, each in a process of its own.

    python3 peers_encoder.py ours|torch LIBRARY THREADS      then a line on standard input for every turn

A process of its own, because threads of two libraries in one are in each other's way, and because memory is
counted by process. Each line that comes in is a number of steps; the answer is a line of JSON: seconds of a step
by the clock and of the processor, and the largest memory so far. The first line out says that all is ready, and
has the loss and the gradient at the weights both start from, so that they can be compared.
"""

import ctypes
import json
import resource
import sys
import time
from ctypes import POINTER, Structure, byref, c_char, c_double, c_float, c_int, c_int64, c_void_p

import numpy as np

BATCH, L, INPUTS, WIDTH, HEADS, LAYERS, HIDDEN = 64, 64, 6, 64, 4, 2, 256
RATE, DECAY, BETAS = 1e-3, 0.01, (0.9, 0.99)
MOST, F32 = 8, 0  # heads of an encoder; a type


def data():
    generator = np.random.default_rng(7)
    tokens = generator.standard_normal((BATCH, L, INPUTS)).astype(np.float32)
    return tokens, generator.standard_normal(BATCH)


def weights(shapes):
    """The same numbers for the same names, whoever asks: {name: shape} to {name: array}."""
    out = {}
    for name in sorted(shapes):
        generator = np.random.default_rng(sum(map(ord, name)))
        spread = shapes[name][-1] ** -0.5 if len(shapes[name]) > 1 else 0.1
        start = 1 if "norm" in name and name.endswith("weight") else 0
        out[name] = (start + spread * generator.standard_normal(shapes[name])).astype(np.float32)
    return out


def peak():
    """Most memory that this process had. (What getrusage says counts what its parent had, too.)"""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- ours ------------------------------------------------------------------------------------------


class Error(Structure):
    _fields_ = [("status", c_int), ("message", c_char * 512)]


class Settings(Structure):
    _fields_ = [("name", ctypes.c_char_p), ("fields", c_void_p), ("count", c_int), ("size", ctypes.c_size_t)]


class Head(Structure):
    _fields_ = [("name", c_char * 24), ("kind", c_int), ("where", c_int), ("size", c_int64), ("weight", c_double)]


class Shape(Structure):
    _fields_ = [("inputs", c_int64), ("values", c_int64), ("heads", c_int64), ("head", Head * MOST)]


class Sequences(Structure):
    _fields_ = [("n", c_int64), ("offsets", c_void_p), ("tokens", c_void_p), ("hidden", c_void_p)]


class Pass(Structure):
    _fields_ = [("dtype", c_int), ("weights", c_void_p), ("blocks", c_int64), ("sum", c_void_p), ("first", c_int64),
                ("total", c_int64), ("targets", c_void_p * MOST), ("answers", c_void_p * MOST), ("losses", c_void_p),
                ("states", c_void_p), ("pooled", c_void_p), ("layer", c_int64), ("maps", c_void_p),
                ("map_head", c_int64), ("gradient", c_void_p), ("heads_only", c_int), ("loss", c_double),
                ("head_loss", c_double * MOST), ("head_targets", c_int64 * MOST)]


class Tensor(Structure):
    _fields_ = [("name", c_char * 48), ("dtype", c_int), ("ndim", c_int), ("shape", c_int64 * 4), ("data", c_void_p)]


class Memory(Structure):
    _fields_ = [("n", c_int64), ("inputs", c_int64), ("values", c_int64), ("offsets", c_void_p), ("tokens", c_void_p),
                ("labels", c_void_p), ("classes", c_int64)]


class Ours:
    """Learning on sequences in memory, labels as targets; every step has all of them."""

    def __init__(self, path, threads):
        self.calls, self.error = ctypes.CDLL(path), Error()
        for name in "fin_encoder_parameters", "fin_encoder_tensors", "fin_learn_step":
            getattr(self.calls, name).restype = c_int64
        self.calls.fin_encoder_weights.restype = POINTER(c_float)
        self.calls.fin_threads_set(threads)
        tokens, self.labels = data()
        self.tokens, self.offsets = tokens, np.arange(BATCH + 1, dtype=np.int64) * L
        memory = Memory(BATCH, INPUTS, 1, self.offsets.ctypes.data, tokens.ctypes.data, self.labels.ctypes.data, 0)
        self.memory = memory
        corpus, encoder, learn, shape = c_void_p(), c_void_p(), c_void_p(), Shape()
        self.call("fin_corpus_memory", byref(corpus), self.settings("corpus", objective="supervised"), byref(memory),
                  ctypes.c_uint64(1))
        self.calls.fin_corpus_get_shape(corpus, byref(shape))
        self.call("fin_encoder_create", byref(encoder),
                  self.settings("encoder", width=WIDTH, layers=LAYERS, heads=HEADS, hidden=HIDDEN), byref(shape),
                  ctypes.c_uint64(1))
        self.call("fin_learn_create", byref(learn),
                  self.settings("learn", batch=BATCH, steps=1000000, rate=RATE, decay=DECAY, beta1=BETAS[0],
                                beta2=BETAS[1], clip=1, evaluate_every=1000000, evaluate_on=1),
                  encoder, corpus, None, None, 0, 1)
        self.encoder, self.learn = encoder, learn
        self.load()

    def call(self, name, *arguments):
        if getattr(self.calls, name)(*arguments, byref(self.error)):
            raise RuntimeError(self.error.message.decode())

    def settings(self, name, **values):
        table = ctypes.pointer(Settings.in_dll(self.calls, f"fin_{name}_table"))
        block = ctypes.create_string_buffer(table.contents.size)
        self.calls.fin_settings_defaults(table, block, ctypes.c_size_t(table.contents.size))
        for key, value in values.items():
            self.call("fin_settings_parse", table, block, key.encode(), str(value).encode())
        return block

    def load(self):
        tensors = (Tensor * 256)()
        count = self.calls.fin_encoder_tensors(self.encoder, tensors, c_int64(256))
        start = ctypes.addressof(self.calls.fin_encoder_weights(self.encoder).contents)
        self.parameters = self.calls.fin_encoder_parameters(self.encoder)
        block = np.ctypeslib.as_array(self.calls.fin_encoder_weights(self.encoder), (self.parameters,))
        self.places = {t.name.decode(): ((t.data - start) // 4, tuple(t.shape[:t.ndim])) for t in tensors[:count]}
        for name, value in weights({name: shape for name, (_, shape) in self.places.items()}).items():
            at = self.places[name][0]
            block[at:at + value.size] = value.ravel()

    def gradient(self):
        gradient = np.empty(self.parameters)
        sequences = Sequences(BATCH, self.offsets.ctypes.data, self.tokens.ctypes.data, None)
        what = Pass(dtype=F32, gradient=gradient.ctypes.data)
        what.targets[0] = self.labels.ctypes.data
        self.call("fin_encoder_pass", self.encoder, byref(sequences), byref(what))
        names = {name: gradient[at:at + int(np.prod(shape))] for name, (at, shape) in self.places.items()}
        return what.loss, names

    def steps(self, count):
        until = self.calls.fin_learn_step(self.learn) + count
        self.call("fin_learn_run", self.learn, c_int64(until), None, None)


# ---- PyTorch's -------------------------------------------------------------------------------------


class Torch:
    """nn.TransformerEncoder as it is, between two linear maps; norm first, no dropout."""

    def __init__(self, _, threads):
        import torch

        self.torch = torch
        torch.set_num_threads(threads)
        tokens, labels = data()
        self.x, self.y = torch.from_numpy(tokens), torch.from_numpy(labels.astype(np.float32))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, "gelu", batch_first=True, norm_first=True)
        self.input, self.head = torch.nn.Linear(INPUTS, WIDTH), torch.nn.Linear(WIDTH, 1)
        self.encoder = torch.nn.TransformerEncoder(layer, LAYERS, torch.nn.LayerNorm(WIDTH))
        self.names = self.list_names()
        with torch.no_grad():
            for name, value in weights({name: tuple(p.shape) for name, p in self.names.items()}).items():
                self.names[name].copy_(torch.from_numpy(value))
        self.adam = torch.optim.AdamW(self.names.values(), RATE, BETAS, weight_decay=DECAY, foreach=True)

    def list_names(self):
        """{our name: parameter}. Our mask is nobody's here: no token is hidden."""
        names = {}
        pairs = [("input", self.input), ("norm", self.encoder.norm), ("head.label", self.head)]
        for i, layer in enumerate(self.encoder.layers):
            at = f"layer.{i}."
            names[at + "attention.in.weight"] = layer.self_attn.in_proj_weight
            names[at + "attention.in.bias"] = layer.self_attn.in_proj_bias
            pairs += [(at + "attention.out", layer.self_attn.out_proj), (at + "norm1", layer.norm1),
                      (at + "norm2", layer.norm2), (at + "ff1", layer.linear1), (at + "ff2", layer.linear2)]
        for name, module in pairs:
            names[name + ".weight"], names[name + ".bias"] = module.weight, module.bias
        return names

    def loss(self):
        r = self.encoder(self.input(self.x)).mean(1)
        return ((self.head(r)[:, 0] - self.y) ** 2).mean()

    def gradient(self):
        self.adam.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        return loss.item(), {name: p.grad.numpy().ravel().astype(float) for name, p in self.names.items()}

    def steps(self, count):
        for _ in range(count):
            self.adam.zero_grad(set_to_none=True)
            self.loss().backward()
            self.torch.nn.utils.clip_grad_norm_(self.names.values(), 1.0)
            self.adam.step()


def main():
    kind, library, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "torch":
        import torch  # the library itself is not the step's memory

        torch.zeros(1)
    else:
        ctypes.CDLL(library)
    base = peak()
    contestant = {"ours": Ours, "torch": Torch}[kind](library, threads)
    loss, gradient = contestant.gradient()
    print(json.dumps({"loss": loss, "gradient": {name: list(value) for name, value in gradient.items()},
                      "base": base}), flush=True)
    for line in sys.stdin:
        count = int(line)
        wall, own = time.perf_counter(), time.process_time()
        contestant.steps(count)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        print(json.dumps({"wall": wall / count, "processor": own / count, "peak": peak()}), flush=True)


if __name__ == "__main__":
    main()
