"""Texts through a pretrained encoder of BERT-base's shape: 64 texts of 64 pieces beside PyTorch's nn.TransformerEncoder, and
beside the products of matrices in it. Contestants are processes (peers_text.py) that take turns; with one thread they are
charged the processor's time, with two the clock's."""

import os

import peers
from encoder import PLAIN, TURNED, Contestant, find_sgemm, sgemm_seconds
from peers_text import HIDDEN, LAYERS, PIECES, TEXTS, WIDTH

GROUP, ROWS = 512, TEXTS * PIECES
MAPS = [(WIDTH, WIDTH)] * 4 + [(WIDTH, HIDDEN), (HIDDEN, WIDTH)]
WEIGHTS = LAYERS * sum(a * b for a, b in MAPS) * 4


def one(bench, threads, alone):
    contestants = {"": Contestant(bench, "ours", threads, "peers_text.py")}
    try:
        contestants["torch TransformerEncoder"] = Contestant(bench, "torch", threads, "peers_text.py")
        bench.agree("texts, states", [contestants[""].start["mean"]],
                    [contestants["torch TransformerEncoder"].start["mean"]], 1e-5)
        turns = {name: [] for name in contestants}
        for _ in range(2 if bench.quick else 4):
            for name, contestant in contestants.items():
                turns[name].append(contestant.steps(1))
        clock = "processor" if threads == 1 else "wall"
        seconds = {name: min(turn[clock] for turn in taken) for name, taken in turns.items()}
        peak = {name: taken[-1]["peak"] for name, taken in turns.items()}
        bound = []
        if alone and threads == 1:
            operations = LAYERS * ROWS * 2 * sum(a * b for a, b in MAPS)
            bound.append(f"{alone / seconds['']:.0%} of sgemm's {operations / alone / 1e9:.0f} GFlop/s")
        bound.append(f"memory {peak[''] / 1e6:.0f} MB, the layers' weights are {WEIGHTS / 1e6:.0f}; torch "
                     f"{peak['torch TransformerEncoder'] / 1e6:.0f}")
        title = f"texts through BERT-base, {threads} thread" + ("s" if threads > 1 else "")
        bench.row(title, seconds, ROWS / 1e3, "k pieces/s", {"torch TransformerEncoder": 1.5}, "; ".join(bound))
    finally:
        for contestant in contestants.values():
            contestant.close()


def text(bench):
    if not peers.torch:  # which makes the weights, too
        bench.skip("texts through BERT-base", "python3-torch")
        return
    sgemm = find_sgemm()
    alone = sgemm and sgemm_seconds(bench, sgemm, [(PLAIN, TURNED, GROUP, b, a) for a, b in MAPS], LAYERS * ROWS // GROUP)
    for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
        one(bench, threads, alone)


PARTS = {"text": text}
