"""Encoders of text with random weights, in torch and as folders of ours.

    text_torch.py check TOOL    nn.TransformerEncoder (norm last) beside `finetti embed`, layer by layer, to 1e-5

Bench takes make() from here.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

BERT = {"at": "encoder.layer.{}.", "in": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense",
        "down": "output.dense", "norm2": "output.LayerNorm"}
DISTIL = {"at": "transformer.layer.{}.", "in": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
          "out": "attention.out_lin", "norm1": "sa_layer_norm", "up": "ffn.lin1", "down": "ffn.lin2",
          "norm2": "output_layer_norm"}
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def save(path, tensors, kind):
    header, at, blocks = {}, 0, []
    for name, x in tensors.items():
        x = x.detach().to(TYPES[kind]).contiguous()
        blocks.append((x if kind == "F32" else x.view(torch.int16)).numpy().tobytes())
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + len(blocks[-1])]}
        at += len(blocks[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(blocks))


def make(folder, kind="bert", width=768, layers=12, heads=12, hidden=3072, act="gelu", words=2000, longest=64, dtype="F32"):
    """Writes the folder; returns (the layers as nn.TransformerEncoder, states of all layers for the numbers of pieces)."""
    torch.manual_seed(width + layers)
    names, bert = (BERT, True) if kind == "bert" else (DISTIL, False)
    activation = (lambda x: F.gelu(x, approximate="tanh")) if act == "gelu_new" else act
    layer = nn.TransformerEncoderLayer(width, heads, hidden, 0.0, activation, 1e-12, batch_first=True)
    encoder = nn.TransformerEncoder(layer, layers).eval()
    tables = {"word_embeddings.weight": torch.randn(words, width) / 10,
              "position_embeddings.weight": torch.randn(longest, width) / 10,
              "LayerNorm.weight": 1 + torch.randn(width) / 10, "LayerNorm.bias": torch.randn(width) / 10}
    if bert:
        tables["token_type_embeddings.weight"] = torch.randn(2, width) / 10
    tables = {name: x.to(TYPES[dtype]).float() for name, x in tables.items()}
    with torch.no_grad():
        for name, p in encoder.named_parameters():
            p.copy_(((1.0 if "norm" in name and name.endswith("weight") else 0) + torch.randn(p.shape) / 20)
                    .to(TYPES[dtype]).float())
    tensors = {"embeddings." + name: x for name, x in tables.items()}
    for i, one in enumerate(encoder.layers):
        at = names["at"].format(i)
        for part in "weight", "bias":
            for name, x in zip(names["in"], getattr(one.self_attn, "in_proj_" + part).chunk(3)):
                tensors[f"{at}{name}.{part}"] = x
            for name, module in (("out", one.self_attn.out_proj), ("norm1", one.norm1), ("up", one.linear1),
                                 ("down", one.linear2), ("norm2", one.norm2)):
                tensors[f"{at}{names[name]}.{part}"] = getattr(module, part)
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "model.safetensors"), tensors if bert else {"distilbert." + n: x for n, x in tensors.items()},
         dtype)
    keys = (("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act") if bert else
            ("dim", "n_layers", "n_heads", "hidden_dim", "activation"))
    config = dict(zip(keys, (width, layers, heads, hidden, act)), model_type=kind, max_position_embeddings=longest,
                  vocab_size=words, type_vocab_size=2)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [f"w{i}" for i in range(4, words)]) + "\n")

    def states(numbers):
        x = tables["word_embeddings.weight"][numbers] + tables["position_embeddings.weight"][:len(numbers)]
        x = x + tables["token_type_embeddings.weight"][0] if bert else x
        out = [F.layer_norm(x, (width,), tables["LayerNorm.weight"], tables["LayerNorm.bias"], 1e-12)]
        for one in encoder.layers:
            out.append(one(out[-1][None])[0])
        return out

    return encoder, states


def check(tool):
    random = np.random.default_rng(0)
    shapes = [dict(width=32, layers=2, heads=4, hidden=64), dict(width=48, layers=3, heads=3, hidden=100, act="relu"),
              dict(width=40, layers=1, heads=5, hidden=33, act="gelu_new"),
              dict(width=384, layers=6, heads=12, hidden=1536),  # MiniLM
              dict(width=64, layers=2, heads=4, hidden=128, dtype="F16"),
              dict(width=64, layers=2, heads=4, hidden=128, dtype="BF16")]
    for kind in "bert", "distilbert":
        for shape in shapes:
            with tempfile.TemporaryDirectory() as folder:
                _, states = make(folder, kind, words=200, **shape)
                pieces = [random.integers(4, 200, n) for n in (1, 5, 30, 62, 7)]
                with open(f"{folder}/texts.csv", "w", encoding="utf-8") as file:
                    csv.writer(file).writerows([["text"], *[[" ".join(f"w{i}" for i in one)] for one in pieces]])
                worst = 0
                with torch.no_grad():
                    want = [states(torch.tensor([2, *one, 3])) for one in pieces]
                for layer in range(shape["layers"] + 1):
                    subprocess.run([tool, "embed", folder, f"{folder}/texts.csv", "--layer", str(layer), "--out",
                                    f"{folder}/x.npz"], check=True, stdout=subprocess.DEVNULL)
                    found = np.load(f"{folder}/x.npz")["tokens"]
                    worst = max(worst, float(np.abs(found - torch.cat([one[layer] for one in want]).numpy()).max()))
                print(f"{kind}, {shape}: {worst:.1e}")
                assert worst < 1e-5


if __name__ == "__main__":
    check(sys.argv[2])
