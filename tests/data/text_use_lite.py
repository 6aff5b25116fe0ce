"""Universal Sentence Encoder Lite in the folder `use`, beside its own graph computed here, and the experiment of the first
paper's section 2: see tests/long/text_use_lite.sh. FINETTI is the tool. Prints what docs/encoder.md says."""
import csv
import json
import os
import statistics
import subprocess
import sys

import numpy as np

SRC, TOOL, SPLITS = os.environ["SRC"], os.environ["FINETTI"], 5


def tool(*words):
    return subprocess.run([TOOL, *words], check=True, capture_output=True, text=True).stdout


def embed(texts, *options):
    """{array: values}; USE's own tokens are the last layer's."""
    with open("texts.csv", "w", newline="") as file:
        csv.writer(file).writerows([["text"], *[[text] for text in texts]])
    tool("embed", "use", "texts.csv", "--out", "texts.npz", *options)
    return dict(np.load("texts.npz"))


def tensors():
    data = open("use/model.safetensors", "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {name: np.frombuffer(data, "<f4", (v["data_offsets"][1] - v["data_offsets"][0]) // 4,
                                8 + size + v["data_offsets"][0]).reshape(v["shape"])
            for name, v in header.items() if name != "__metadata__"}


def sentence_vectors(texts):
    """The end of its graph: tanh of a map of the mean, of length 1."""
    weights, arrays = tensors(), embed(texts)
    bags = np.split(arrays["tokens"], arrays["offsets"][1:-1])
    out = np.tanh(np.array([bag.mean(0) for bag in bags]) @ weights["pooler.dense.weight"].T + weights["pooler.dense.bias"])
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def cosines():
    texts = ["How old are you?", "What is your age?", "The parliament passed the budget on Friday", "My cat sleeps in the sun",
             "Add two spoons of flour", "The train to Vienna is late", "Our server ran out of memory"]
    v = sentence_vectors(texts)
    same, others = float(v[0] @ v[1]), v[0] @ v[2:].T
    print(f"cosine of two questions about age {same:.4f}; of one and unrelated sentences {others.min():.2f} to {others.max():.2f}")
    assert abs(same - 0.846) < 0.001 and others.max() < 0.2


def probe(folder, test, token="first"):
    r = json.loads(tool("probe", "use", "--data", f"{folder}/train.csv", "--test-data", f"{folder}/{test}.csv", "--text",
                        "sentence", "--label", "mood", "--layer", "all", "--token", token, "--json"))
    assert all((row["train"], row["test"]) == (800, 400) for row in r["layers"])
    return [row["accuracy"] for row in r["layers"]]


def probes():
    """Means over splits of the words: a word is what is drawn, not a sentence."""
    found = {}
    for what, test, token in (("first piece", "test", "first"), ("mean of the pieces", "test", "mean"),
                              ("first piece, label words of another kind", "verbs", "first"),
                              ("first piece, new shapes of sentences", "shapes", "first")):
        rows = [probe(str(split), test, token) for split in range(1, SPLITS + 1)]
        found[what] = [(statistics.mean(x), statistics.stdev(x) / SPLITS ** 0.5) for x in zip(*rows)]
        print(f"{what:42}", *[f"{mean:.3f} +- {error:.3f}" for mean, error in found[what]])
    first = [mean for mean, _ in found["first piece"]]
    assert first[0] == 0.5 and first[1] > 0.8 and first[2] > 0.9  # chance before the first layer, linear after it
    assert found["first piece, new shapes of sentences"][2][0] < 0.75 < first[2]  # what is not reproduced


def locations():
    for layer in "012":
        for part in "train", "test":
            tool("embed", "use", f"1/{part}.csv", "--text", "sentence", "--layer", layer, "--out", f"{part}.npz")
        tool("fit", "train.npz", "--label", "mood", "--out", "model.fin")
        tool("locate", "model.fin", "test.npz", "--blind", "--top", "1", "--out", "located.csv")
        texts, found = (list(csv.DictReader(open(name))) for name in ("1/test.csv", "located.csv"))
        hit = [int(t["at"]) <= float(f["begin"]) < int(t["at"]) + len(t["word"]) for t, f in zip(texts, found)]
        share = sum(hit) / len(texts)
        weight = statistics.mean(float(f["probability"]) for f in found)
        print(f"layer {layer}: the word that decided is found in {share:.3f} of {len(texts)} sentences, "
              f"with probability {weight:.2f} in the mean")
        assert len(found) == len(texts) == 400 and (layer != "0" or share >= 0.95)


# ---- sentences with their pieces coloured by the probability that they decide ----------------------


def words(count=5, per_row=24):
    """The first test sentences of different lengths, through what locations() fitted to the last layer."""
    tool("locate", "model.fin", "test.npz", "--blind", "--top", "99", "--out", "all.csv")
    texts, rows = list(csv.DictReader(open("1/test.csv"))), list(csv.DictReader(open("all.csv")))
    lengths, chosen = set(), []
    for i, text in enumerate(texts):
        if len(chosen) < count and len(text["sentence"]) not in lengths:
            lengths.add(len(text["sentence"]))
            chosen.append(i)
    wide = 16 + 8.43 * max(len(texts[i]["sentence"]) for i in chosen)
    high = per_row * count + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high}" font-family="monospace" font-size="14">',
           f'<rect width="{wide:.0f}" height="{high}" fill="white"/>']
    for y, i in enumerate(chosen):
        for row in rows:
            begin, end, p = float(row["begin"]), float(row["end"]), float(row["probability"])
            if row["bag"] == str(i) and p >= 0.005:
                out.append(f'<rect x="{8 + 8.43 * begin:.1f}" y="{8 + per_row * y}" width="{8.43 * (end - begin):.1f}" '
                           f'height="20" fill="#d95f02" fill-opacity="{p:.2f}"><title>{p:.2f}</title></rect>')
        text = texts[i]["sentence"].replace("&", "&amp;").replace("<", "&lt;")
        out.append(f'<text x="8" y="{23 + per_row * y}" textLength="{8.43 * len(text):.0f}">{text}</text>')
    with open("text_words.svg", "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


# ---- what the pieces around the adjective know of it ------------------------------------------------


def around(split, part, layer):
    """{places from the adjective: (states, moods as +-1)}"""
    tool("embed", "use", f"{split}/{part}.csv", "--text", "sentence", "--layer", str(layer), "--out", "x.npz")
    arrays, found = dict(np.load("x.npz")), {}
    for i, row in enumerate(csv.DictReader(open(f"{split}/{part}.csv"))):
        own = range(arrays["offsets"][i], arrays["offsets"][i + 1])
        at = next(t for t in own if arrays["begin"][t] <= int(row["at"]) < arrays["end"][t])
        for t in own:
            found.setdefault(t - at, []).append((arrays["tokens"][t], 1 if row["mood"] == "good" else -1))
    return {k: tuple(map(np.array, zip(*rows))) for k, rows in found.items()}


def ridge(x, y, u, v):
    """Share of v whose sign a least-squares map of x to y tells from u."""
    middle, spread = x.mean(0), x.std(0) + 1e-9
    x, u = (x - middle) / spread, (u - middle) / spread
    w = np.linalg.solve(x.T @ x + 0.1 * len(x) * np.eye(x.shape[1]), x.T @ (y - y.mean()))
    return np.mean(np.sign(u @ w + y.mean()) == v)


def places():
    lines = []
    for layer in range(3):
        shares = {}
        for split in range(1, SPLITS + 1):
            train, test = around(split, "train", layer), around(split, "test", layer)
            for k in range(-8, 7):
                shares.setdefault(k, []).append(ridge(*train[k], *test[k]))
        lines.append([(k, statistics.mean(share)) for k, share in shares.items()])
        print(f"layer {layer}, by places from the adjective:", *[f"{k}: {mean:.2f}" for k, mean in lines[-1]])
    assert dict(lines[0])[0] > 0.95 and max(mean for k, mean in lines[0] if k) < 0.6 < min(mean for _, mean in lines[2])
    with open("text_places.svg", "w", encoding="utf-8") as file:
        file.write(draw(lines))


def draw(lines):
    def x(k):
        return 60 + 30 * (k + 8)

    def y(share):
        return 250 - 400 * (share - 0.45)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="640" height="310" font-family="sans-serif" font-size="13">',
           '<rect width="640" height="310" fill="white"/>']
    for share in 0.5, 0.6, 0.7, 0.8, 0.9, 1.0:
        out.append(f'<path d="M60 {y(share):.0f}H480" stroke="#ddd"/>'
                   f'<text x="52" y="{y(share) + 4:.0f}" text-anchor="end">{share}</text>')
    for k in range(-8, 7, 2):
        out.append(f'<text x="{x(k)}" y="272" text-anchor="middle">{k}</text>')
    out.append('<text x="270" y="296" text-anchor="middle">places from the adjective</text>'
               '<text x="60" y="20">accuracy of a linear map from this piece, new adjectives</text>')
    for line, color, name in zip(lines, ("#888888", "#d95f02", "#1f78b4"), ("embedding", "layer 1", "layer 2")):
        path = "L".join(f"{x(k)} {y(share):.1f}" for k, share in line)
        out.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>'
                   f'<text x="490" y="{y(line[-1][1]) + 4:.0f}" fill="{color}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


for split in range(1, SPLITS + 1):
    os.makedirs(str(split), exist_ok=True)
    subprocess.run([sys.executable, f"{SRC}/tests/data/text_sentences.py", str(split), str(split)], check=True)
cosines()
probes()
locations()
words()
places()
