"""An encoder written with torch, from the formulas in include/finetti/encoder.h, and its numbers beside ours.

    encoder_torch.py check PROGRAM    PROGRAM is test_encoder, whose test_encoder_torch computes; this compares
    encoder_torch.py store            writes encoder_torch.h, the small answers that test_encoder_torch checks
                                      where there is no torch

Weights, tokens and answers go from one to the other in safetensors files, both ways. The format is so simple
that nothing has to be installed for it. Each tensor's distance is measured by its length. In double the bar is
1e-11; our float is held against torch in double, and against torch in float beyond torch's own error: 1e-5.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

HEADS = {"value": (1, 1.0), "label": (3, 0.5), "gauss": (2, 0.3)}  # answers, weight; as in test_encoder_torch.c
DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8}


def read(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = np.frombuffer(data[8 + size + a:8 + size + b], DTYPES[t["dtype"]]).reshape(t["shape"])
    return out


def write(path, tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        kind = next(k for k, v in DTYPES.items() if v == x.dtype)
        raw = np.ascontiguousarray(x).tobytes()
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def norm(s, p, name, x):
    return x if s["norm"] == "none" else F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])


def attention(s, p, name, y, seen):
    """y (L, width); seen (L): True for visible tokens."""
    L, w = y.shape
    H = int(s["heads"])
    d = w // H
    q, k, v = F.linear(y, p[name + ".in.weight"], p[name + ".in.bias"]).view(L, 3, H, d).permute(1, 2, 0, 3)
    k, v = k[:, seen], v[:, seen]
    if not seen.any():
        out = torch.zeros_like(q)
    elif s["attention"] == "softmax":
        out = torch.softmax(q @ k.transpose(1, 2) / d**0.5, -1) @ v
    else:
        ridge = torch.exp(p[name + ".ridge"])[:, None, None] * torch.eye(d, dtype=y.dtype)
        out = q @ torch.linalg.solve(k.transpose(1, 2) @ k + ridge, k.transpose(1, 2) @ v)
    return F.linear(out.permute(1, 0, 2).reshape(L, w), p[name + ".out.weight"], p[name + ".out.bias"])


def body(s, p, t, hidden):
    """Representations (L, width) of one sequence of tokens t (L, inputs), the last column being the value."""
    t = t.clone()
    t[hidden, -1] = 0
    x = F.linear(t, p["input.weight"], p["input.bias"]) + hidden[:, None].to(t.dtype) * p["mask"]
    L, w = x.shape
    if s["positions"] == "learned":
        x = x + p["positions"][:L]
    elif s["positions"] == "sinusoidal":
        angle = torch.arange(L).double()[:, None] * 10000.0 ** (-(torch.arange(w) // 2 * 2).double() / w)
        x = x + torch.where(torch.arange(w) % 2 == 1, angle.cos(), angle.sin()).to(x.dtype)
    act = F.gelu if s["activation"] == "gelu" else F.relu
    for i in range(int(s["layers"])):
        n = "layer.%d." % i
        x = x + attention(s, p, n + "attention", norm(s, p, n + "norm1", x), ~hidden)
        if int(s["hidden"]):
            z = act(F.linear(norm(s, p, n + "norm2", x), p[n + "ff1.weight"], p[n + "ff1.bias"]))
            x = x + F.linear(z, p[n + "ff2.weight"], p[n + "ff2.bias"])
    return norm(s, p, "norm", x)


def module(s, p, offsets, tokens, hidden, targets):
    """Answers of all heads and the loss. A target that begins with NaN is none."""
    rows, pooled = [], []
    for a, b in zip(offsets[:-1], offsets[1:]):
        h = hidden[a:b]
        rows.append(body(s, p, tokens[a:b], h))
        pooled.append((rows[-1] if h.all() else rows[-1][~h]).mean(0))
    answers, loss = {}, 0
    for name, (size, weight) in HEADS.items():
        r = torch.stack(pooled) if name == "label" else torch.cat(rows)
        f = answers[name] = F.linear(r, p["head.%s.weight" % name], p["head.%s.bias" % name])
        asked = ~torch.isnan(targets[name])
        f, y = f[asked], targets[name][asked]
        if name == "value":
            each = (f[:, 0] - y) ** 2
        elif name == "label":
            each = F.cross_entropy(f, y.long(), reduction="none")
        else:
            log_s = f[:, 1].clamp(-20, 20)
            each = ((f[:, 0] - y) ** 2 * torch.exp(-log_s) + log_s) / 2
            answers[name] = torch.cat([answers[name][:, :1], answers[name][:, 1:].clamp(-20, 20)], 1)
        loss = loss + weight * each.mean()
    return answers, loss


def compute(s, file, dtype):
    """Everything that the program computed, by torch: name -> array."""
    p = {k: torch.tensor(v, dtype=dtype, requires_grad=True) for k, v in file.items() if "/" not in k}
    targets = {h: torch.tensor(file["targets/" + h], dtype=torch.float64) for h in HEADS}
    targets = {h: y.to(dtype) if h != "label" else y for h, y in targets.items()}
    answers, loss = module(s, p, file["in/offsets"].tolist(), torch.tensor(file["in/tokens"]).to(dtype),
                           torch.tensor(file["in/hidden"]).bool(), targets)
    loss.backward()
    out = {"answers/" + h: f.detach().numpy() for h, f in answers.items()}
    out.update({"gradient/" + k: v.grad.numpy() for k, v in p.items()})
    out["loss/"] = loss.detach().numpy().reshape(1)
    return out


def draw(sizes, n, longest, inputs, seed):
    """Weights away from what they start as, and sequences: the first of one token, the second all hidden."""
    rng = np.random.default_rng(seed)
    file = {}
    for name, shape in sizes.items():
        x = rng.standard_normal(shape) / (shape[1] ** 0.5 if len(shape) > 1 else 5)
        if "norm" in name and name.endswith("weight"):
            x += 1
        file[name] = x.astype(np.float32)
    lengths = np.concatenate([[1], rng.integers(1, longest + 1, n - 1)])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = int(offsets[-1])
    hidden = (rng.random(rows) < 0.3).astype(np.uint8)
    hidden[:offsets[1]] = 0
    hidden[offsets[1]:offsets[2]] = 1
    file["in/offsets"], file["in/hidden"] = offsets, hidden
    file["in/tokens"] = rng.standard_normal((rows, inputs)).astype(np.float32)
    for name in HEADS:
        y = rng.integers(0, 3, n).astype(float) if name == "label" else rng.standard_normal(rows)
        y[rng.random(len(y)) < 0.2] = np.nan
        y[:1] = 1
        file["targets/" + name] = y
    return file


def sizes_of(s, inputs):
    w, hidden = int(s["width"]), int(s["hidden"])
    out = {"input.weight": (w, inputs), "input.bias": (w,), "mask": (w,)}
    norms = {} if s["norm"] == "none" else {".weight": (w,), ".bias": (w,)}
    if s["positions"] == "learned":
        out["positions"] = (int(s["longest"]), w)
    for i in range(int(s["layers"])):
        n = "layer.%d." % i
        out.update({n + "norm1" + k: v for k, v in norms.items()})
        out.update({n + "attention.in.weight": (3 * w, w), n + "attention.in.bias": (3 * w,)})
        out.update({n + "attention.out.weight": (w, w), n + "attention.out.bias": (w,)})
        if s["attention"] == "cme":
            out[n + "attention.ridge"] = (int(s["heads"]),)
        if hidden:
            out.update({n + "norm2" + k: v for k, v in norms.items()})
            out.update({n + "ff1.weight": (hidden, w), n + "ff1.bias": (hidden,)})
            out.update({n + "ff2.weight": (w, hidden), n + "ff2.bias": (w,)})
    out.update({"norm" + k: v for k, v in norms.items()})
    for name, (size, _) in HEADS.items():
        out.update({"head.%s.weight" % name: (size, w), "head.%s.bias" % name: (size,)})
    return out


def settings(**change):
    s = dict(width="8", layers="2", heads="2", hidden="12", attention="softmax", activation="gelu", norm="layer",
             positions="none", longest="20")
    s.update(change)
    return s


def words(s):
    return ["%s=%s" % x for x in s.items()]


def off(a, b, least=0.0):
    """Distance over length, which counts as `least` at least."""
    a, b = np.asarray(a, float).ravel(), np.asarray(b, float).ravel()
    return np.linalg.norm(a - b) / max(np.linalg.norm(b), least)


# ---- check -------------------------------------------------------------------------------------------------


def same_as_torch_layers():
    """The module above is torch's own TransformerEncoder, where that can do the same."""
    s = settings(width="16", hidden="32")
    file = draw(sizes_of(s, 3), 3, 9, 3, 1)
    p = {k: torch.tensor(v, dtype=torch.float64) for k, v in file.items() if "/" not in k}
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    net = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(16)).double()
    names = {"norm1": "norm1", "norm2": "norm2", "linear1": "ff1", "linear2": "ff2",
             "self_attn.out_proj": "attention.out"}
    state = {}
    for i in range(2):
        for theirs, ours in names.items():
            for end in (".weight", ".bias"):
                state["layers.%d.%s%s" % (i, theirs, end)] = p["layer.%d.%s%s" % (i, ours, end)]
        for end in ("weight", "bias"):
            state["layers.%d.self_attn.in_proj_%s" % (i, end)] = p["layer.%d.attention.in.%s" % (i, end)]
    state.update({"norm.weight": p["norm.weight"], "norm.bias": p["norm.bias"]})
    net.load_state_dict(state)
    net.train()  # the fast path of eval() answers padding with zeros
    t = torch.randn(9, 3, dtype=torch.float64)
    hidden = torch.arange(9) % 3 == 2
    shown = t.clone()
    shown[hidden, -1] = 0
    x = F.linear(shown, p["input.weight"], p["input.bias"]) + hidden[:, None].double() * p["mask"]
    theirs = net(x[None], src_key_padding_mask=hidden[None])[0]
    error = off(body(s, p, t, hidden).numpy(), theirs.detach().numpy())
    print("torch.nn.TransformerEncoder and this module: %.1e" % error)
    assert error < 1e-12


def compare(program, s, given, work):
    """The program computes, with weights of its own or those of `given`; torch does the same."""
    out = os.path.join(work, "out")
    subprocess.run([program, "test_encoder_torch", out, given or "-"] + words(s), check=True)
    file = read(out)
    ours = {k: v for k, v in file.items() if k.startswith(("f32/", "f64/"))}
    file = {k: v for k, v in file.items() if not k.startswith(("f32/", "f64/"))}
    exact, rough = compute(s, file, torch.float64), compute(s, file, torch.float32)
    assert sorted(k[4:] for k in ours) == sorted(2 * list(exact))
    text = []
    # A gradient of one number, a difference of many, may be small by chance: measured by a hundredth of the whole.
    whole = 0.01 * np.linalg.norm(np.concatenate([v.ravel() for k, v in exact.items() if k.startswith("gradient/")]))
    least = {k: whole if k.startswith("gradient/") else 0.0 for k in exact}
    for key, theirs, bar in (("f32/", rough, 1e-5), ("f32/", exact, 1e-5), ("f64/", exact, 1e-11)):
        errors = {k: off(ours[key + k], v, least[k]) for k, v in theirs.items()}
        # Where torch in float is away from itself in double (its solve is in float, ours in double), so are we.
        if theirs is rough:
            errors = {k: max(0.0, e - off(rough[k], exact[k], least[k])) for k, e in errors.items()}
        name = max(errors, key=errors.get)
        text.append("%s %.1e (%s)" % (key[:-1], errors[name], name))
        assert errors[name] < bar, (s, key, name, errors[name])
    print("  ".join(text[1:]), " ".join(words(s)), "weights of torch" if given else "")


def check(program):
    same_as_torch_layers()
    cases = [settings(attention=a, activation=b, norm=c, positions=d)
             for a in ("softmax", "cme") for b in ("gelu", "relu") for c in ("layer", "none")
             for d in ("none", "sinusoidal", "learned")]
    cases += [settings(layers="0"), settings(hidden="0"), settings(heads="1"), settings(heads="8"),
              settings(width="64", heads="4", hidden="256", longest="64"),
              settings(width="64", heads="4", hidden="256", longest="64", attention="cme")]
    with tempfile.TemporaryDirectory() as work:
        for i, s in enumerate(cases):
            compare(program, s, None, work)
            given = os.path.join(work, "given")
            write(given, draw(sizes_of(s, 3), 12, int(s["longest"]), 3, i))
            compare(program, s, given, work)


# ---- store -------------------------------------------------------------------------------------------------


def array(name, x, kind="double"):
    text = ", ".join("NAN" if x != x else "%.9g" % x if kind != "double" else "%.17g" % x
                     for x in np.asarray(x).ravel().tolist())
    return "static const %s %s[] = {%s};\n" % (kind, name, text)


def store(path):
    cases = [settings(width="4", hidden="6", longest="5"),
             settings(width="4", hidden="5", longest="5", attention="cme", activation="relu", norm="none",
                      positions="learned", layers="1"),
             settings(width="6", hidden="7", longest="5", heads="3", attention="cme", positions="sinusoidal",
                      layers="1")]
    text = "/* Answers and gradients of small encoders, by torch %s in double; made by encoder_torch.py store. */\n" \
        "/* clang-format off */\n" % torch.__version__.split("+")[0]
    rows = []
    for i, s in enumerate(cases):
        sizes = sizes_of(s, 3)
        file = draw(sizes, 4, 5, 3, 100 + i)
        out = compute(s, file, torch.float64)
        weights = np.concatenate([file[k].ravel() for k in sizes])
        gradient = np.concatenate([out["gradient/" + k].ravel() for k in sizes])
        text += array("weights_%d" % i, weights, "float") + array("gradient_%d" % i, gradient)
        text += array("offsets_%d" % i, file["in/offsets"], "int64_t") + array("hidden_%d" % i, file["in/hidden"], "uint8_t")
        text += array("tokens_%d" % i, file["in/tokens"], "float")
        for h in HEADS:
            text += array("%s_targets_%d" % (h, i), file["targets/" + h]) + array("%s_%d" % (h, i), out["answers/" + h])
        rows.append("    {\"%s\", %d, %.17g, weights_%d, gradient_%d, {4, offsets_%d, tokens_%d, hidden_%d},\n"
                    "     {value_targets_%d, label_targets_%d, gauss_targets_%d}, {value_%d, label_%d, gauss_%d}},\n"
                    % ((" ".join(words(s)), len(weights), out["loss/"][0]) + (i,) * 11))
    text += "static const stored all_stored[] = {\n%s};\n" % "".join(rows)
    lines = []
    for line in text.splitlines():  # no line of more than 110 columns
        while len(line) > 110:
            cut = line.rindex(", ", 0, 110) + 1 if not line.startswith("    {") else len(line)
            lines.append(line[:cut])
            line = "   " + line[cut:] if cut < len(line) else ""
        lines.append(line)
    with open(path, "w") as f:
        f.write("\n".join(line for line in lines if line) + "\n")


torch.set_num_threads(1)
if len(sys.argv) == 3 and sys.argv[1] == "check":
    check(sys.argv[2])
elif len(sys.argv) == 2 and sys.argv[1] == "store":
    store(os.path.join(os.path.dirname(os.path.abspath(__file__)), "encoder_torch.h"))
else:
    sys.exit(__doc__)
