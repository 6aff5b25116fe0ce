"""Texts through BERT-base with random weights, ours and PyTorch's, each in a process of its own.

    python3 peers_text.py ours|torch LIBRARY THREADS      then a line on standard input for every turn

As peers_encoder.py: a line that comes in is a number of passes, the answer is JSON with seconds of a pass and the
largest memory so far. Both have the same weights and pieces; the first line out has the mean of the end's states.
"""

import ctypes
import json
import os
import sys
import tempfile
import time
from ctypes import byref, c_char_p, c_int, c_int64, c_void_p

import numpy as np

from peers_encoder import Error, peak

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data"))
TEXTS, PIECES, WIDTH, LAYERS, HIDDEN = 64, 64, 768, 12, 3072


def numbers():
    return np.random.default_rng(3).integers(4, 2000, (TEXTS, PIECES - 2))


class Pass(ctypes.Structure):
    _fields_ = [("states", c_void_p), ("pick", c_int), ("at", c_int64), ("pooled", c_void_p)]


class Ours:
    def __init__(self, path, threads, folder):
        self.calls, self.error = ctypes.CDLL(path), Error()
        self.calls.fin_threads_set(threads)
        self.encoder, self.pieces = c_void_p(), c_void_p()
        self.call("fin_text_encoder_open", byref(self.encoder), folder.encode())
        texts = (c_char_p * TEXTS)(*[" ".join(f"w{i}" for i in row).encode() for row in numbers()])
        self.call("fin_text_pieces_cut", byref(self.pieces), self.encoder, c_int64(TEXTS), texts, None, c_int64(0))
        self.states = np.empty((TEXTS * PIECES, WIDTH), np.float32)
        self.list = (c_void_p * (LAYERS + 1))()
        self.list[LAYERS] = self.states.ctypes.data

    def call(self, name, *arguments):
        if getattr(self.calls, name)(*arguments, byref(self.error)):
            raise RuntimeError(self.error.message.decode())

    def run(self):
        self.call("fin_text_encoder_run", self.encoder, self.pieces, byref(Pass(ctypes.cast(self.list, c_void_p))), None)
        return self.states


class Torch:
    """nn.TransformerEncoder as it is, in inference mode, which takes its fast path."""

    def __init__(self, _, threads, folder):
        import torch
        from text_torch import make

        self.torch = torch
        torch.set_num_threads(threads)
        self.encoder, states = make(folder, words=2000)
        rows = torch.from_numpy(np.pad(numbers(), ((0, 0), (1, 1)), constant_values=(2, 3)))
        with torch.inference_mode():
            self.x = torch.stack([states(row)[0] for row in rows])

    def run(self):
        with self.torch.inference_mode():
            return self.encoder(self.x).numpy()


def main():
    kind, library, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        if kind == "ours":  # weights come from torch, whose memory is not ours
            child = os.fork()
            if child == 0:
                from text_torch import make
                make(folder, words=2000)
                os._exit(0)
            os.waitpid(child, 0)
        contestant = {"ours": Ours, "torch": Torch}[kind](library, threads, folder)
        print(json.dumps({"mean": contestant.run().reshape(-1, WIDTH).mean(0).tolist(), "base": 0}), flush=True)
        for line in sys.stdin:
            count = int(line)
            wall, own = time.perf_counter(), time.process_time()
            for _ in range(count):
                contestant.run()
            wall, own = time.perf_counter() - wall, time.process_time() - own
            print(json.dumps({"wall": wall / count, "processor": own / count, "peak": peak()}), flush=True)


if __name__ == "__main__":
    main()
