#!/usr/bin/env python3
"""Writes layer_torch.csv: three steps of SGD of the layer of src/train/layer.h by torch's autograd, in double.

    tests/data/layer_torch.py > tests/data/layer_torch.csv

All rows of the attention are computed, as the formula has them. Tokens, register and start are sines that
tests/test_train_layer.c makes as well. Rows: f at each step, sample by sample; then the parameters behind the last.
"""

import torch

H, d, r, m, L, B, ALPHA, STEPS = 2, 6, 5, 7, 4, 3, 0.05, 3


def sines(salt, scale, *shape):
    i = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float64)
    return (scale * torch.sin(12.9898 * i + 78.233 * salt)).float().double().reshape(shape)


def norm(x):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + 1e-5)


def layer(x, start, w):
    X = torch.cat([start.expand(len(x), 1, d), x], 1)
    Z, rows = norm(X), X
    for h in range(H):
        scores = (Z @ w["Wk"][h].T) @ (Z @ w["Wq"][h].T).transpose(1, 2) / r**0.5
        rows = rows + torch.softmax(scores, 2) @ Z @ w["Wv"][h]
    rows = rows + torch.relu(rows @ w["W1"].T + w["b1"]) @ w["W2"].T + w["b2"]
    return rows[:, 0] @ w["theta"]


shapes = {"Wk": (H, r, d), "Wq": (H, r, d), "Wv": (H, d, d), "W1": (m, d), "b1": (m,), "W2": (d, m), "b2": (d,), "theta": (d,)}
w = {name: sines(salt, 0.6, *shape).requires_grad_() for salt, (name, shape) in enumerate(shapes.items())}
start = sines(20, 0.4, d)
print("what,step,index,value")
for step in range(STEPS):
    x, y = sines(30 + step, 1.5, B, L, d), sines(40 + step, 1, B)
    f = layer(x, start, w)
    for i, value in enumerate(f.tolist()):
        print(f"f,{step},{i},{value:.17g}")
    slopes = torch.autograd.grad(((f - y) ** 2).mean(), list(w.values()))
    with torch.no_grad():
        for p, g in zip(w.values(), slopes):
            p -= ALPHA * g
at = 0
for p in w.values():
    for value in p.flatten().tolist():
        print(f"w,{STEPS},{at},{value:.17g}")
        at += 1
