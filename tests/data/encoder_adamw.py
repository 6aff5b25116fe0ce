"""Known answers for tests/test_encoder_learn_adamw.c: six steps of torch's AdamW in doubles.

The model is an encoder without layers and norms, label = H mean_l(A t_l + a) + h, on four sequences
of 1, 2, 3, 4 tokens; warm-up of two steps and a cosine, clipping at 0.5, decay of matrices alone.
Run with python3 (torch needed); prints what the test has."""
import math
import torch

torch.set_default_dtype(torch.float64)
STEPS, WARMUP, RATE, FINAL = 6, 2, 0.05, 0.2
sequences, labels, at = [], [], 0
for i in range(4):
    tokens = [[((t * 3 + j) * 5 % 13 - 6) / 4 for j in range(3)] for t in range(at, at + i + 1)]
    at += i + 1
    sequences.append(torch.tensor(tokens))
    labels.append((i * 3 % 5) - 1.5)
labels = torch.tensor(labels)

shapes = [("A", (2, 3)), ("a", (2,)), ("mask", (2,)), ("H", (1, 2)), ("h", (1,))]
p, count = {}, 0
for name, shape in shapes:
    n = math.prod(shape)
    p[name] = torch.tensor([((count + k) * 7 % 11 - 5) / 8 for k in range(n)]).reshape(shape)
    p[name].requires_grad_()
    count += n

def rate(s):
    if s < WARMUP:
        return RATE * (s + 1) / WARMUP
    angle = math.pi * (s - WARMUP) / (STEPS - WARMUP)
    return RATE * (FINAL + (1 - FINAL) * 0.5 * (1 + math.cos(angle)))

optimizer = torch.optim.AdamW([{"params": [p["A"], p["H"]], "weight_decay": 0.1},
                               {"params": [p["a"], p["h"]], "weight_decay": 0.0}],
                              betas=(0.9, 0.99), eps=1e-8)
losses, norms = [], []
for s in range(STEPS):
    optimizer.zero_grad()
    f = torch.stack([(p["H"] @ (x @ p["A"].T + p["a"]).mean(0) + p["h"])[0] for x in sequences])
    loss = ((f - labels) ** 2).mean()
    loss.backward()
    trained = [p[k] for k in ("A", "a", "H", "h")]
    norms.append(float(torch.nn.utils.clip_grad_norm_(trained, 0.5)))
    losses.append(loss.item())
    for group in optimizer.param_groups:
        group["lr"] = rate(s)
    optimizer.step()

def show(name, numbers):
    print(f"static const double {name}[] = {{{', '.join(f'{x:.12g}' for x in numbers)}}};")

show("known_loss", losses)
show("known_norm", norms)
show("known_rate", [rate(s) for s in range(STEPS)])
show("known_weights", [x for name, _ in shapes for x in p[name].detach().flatten().tolist()])
