"""Bags of tokens in PyTorch: attention-based deep multiple-instance learning, and linear attention fed by a DataLoader."""

import numpy as np

from peers import torch

# ---- deep attention, cross-validated ------------------------------------------------------------------


def standardise(tokens, learn, clip):
    """z-scores with the deviations of the tokens to learn from; constant columns become 0."""
    mean, deviation = tokens[learn].mean(0), tokens[learn].std(0)
    z = (tokens - mean) * np.where(deviation > 1e-12, 1 / np.maximum(deviation, 1e-12), 0)
    return np.clip(z, -clip, clip).astype(np.float32)


def padded(z, offsets):
    """All bags as one array (bags, longest, columns), and where there are tokens."""
    size = np.diff(offsets)
    x = np.zeros((len(size), size.max(), z.shape[1]), np.float32)
    mask = np.arange(size.max()) < size[:, None]
    x[mask] = z
    return torch.from_numpy(x), torch.from_numpy(mask)


class DeepAttention(torch.nn.Module if torch else object):
    """Ilse, Tomczak, Welling 2018: h = relu(W x), a = softmax(w.tanh(V h)), logit = u.sum_l a_l h_l."""

    def __init__(self, columns, width=64):
        super().__init__()
        self.embed = torch.nn.Linear(columns, width)
        self.attend, self.score = torch.nn.Linear(width, width), torch.nn.Linear(width, 1)
        self.read = torch.nn.Linear(width, 1)

    def weights(self, h, mask):
        return torch.softmax(self.score(torch.tanh(self.attend(h)))[..., 0].masked_fill(~mask, -torch.inf), 1)

    def forward(self, x, mask):
        h = torch.relu(self.embed(x))
        return self.read((self.weights(h, mask)[:, None] @ h)[:, 0])[:, 0]


def deep_fit(x, mask, size, y, learn, epochs=40, batch=8, rate=1e-3):
    model = DeepAttention(x.shape[2])
    adam = torch.optim.Adam(model.parameters(), rate, foreach=True)
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    for _ in range(epochs):
        order = np.random.permutation(learn)
        for i in range(0, len(order), batch):
            part = order[i:i + batch]
            longest, rows = size[part].max(), torch.from_numpy(part)
            adam.zero_grad(set_to_none=True)
            loss_of(model(x[rows, :longest], mask[rows, :longest]), y[rows]).backward()
            adam.step()
    return model


def deep_folds(tokens, offsets, labels, folds, clip, most):
    """Accuracy in each of the folds, at most `most`; folds: (repeats, bags)."""
    size, y = np.diff(offsets), torch.from_numpy(labels.astype(np.float32))
    bag, right = np.repeat(np.arange(len(size)), size), []
    for repeat in folds:
        for fold in np.unique(repeat)[:most - len(right)]:
            torch.manual_seed(len(right))
            np.random.seed(len(right))
            learn, left = np.flatnonzero(repeat != fold), np.flatnonzero(repeat == fold)
            x, mask = padded(standardise(tokens, repeat[bag] != fold, clip), offsets)
            model = deep_fit(x, mask, size, y, learn)
            with torch.no_grad():
                said = (model(x[left], mask[left]) > 0).numpy()
            right.append(np.mean(said == (labels[left] > 0.5)))
    return right


def deep_weights(learn, judge, seed):
    """Weights that deep attention, fitted to (tokens, offsets, labels), gives the tokens of other bags, and its accuracy there."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    tokens, offsets, labels = learn
    x, mask = padded(tokens.astype(np.float32), offsets)
    model = deep_fit(x, mask, np.diff(offsets), torch.from_numpy(labels.astype(np.float32)), np.arange(len(labels)), epochs=100)
    x, mask = padded(judge[0].astype(np.float32), judge[1])
    with torch.no_grad():
        weight = model.weights(torch.relu(model.embed(x)), mask)[mask].numpy()
        return weight, np.mean((model(x, mask) > 0).numpy() == (judge[2] > 0.5))


# ---- linear attention over many tokens ------------------------------------------------------------------


class Bags(torch.utils.data.Dataset if torch else object):
    """A bag at a time out of a mapped array, as one writes it."""

    def __init__(self, tokens, offsets, y):
        self.tokens, self.offsets, self.y = tokens, offsets, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(np.array(self.tokens[self.offsets[i]:self.offsets[i + 1]])), self.y[i]


def pad(bags):
    x = torch.nn.utils.rnn.pad_sequence([x for x, _ in bags], batch_first=True)
    size = torch.tensor([len(x) for x, _ in bags])
    return x, torch.arange(x.shape[1]) < size[:, None], torch.tensor([y for _, y in bags], dtype=torch.float32)


class Linear:
    """f = sum_l softmax(k.x_l) v.x_l + b, logistic loss, Adam."""

    def __init__(self, d, rate=1e-3):
        self.kv, self.b = torch.zeros(d, 2, requires_grad=True), torch.zeros(1, requires_grad=True)
        self.adam = torch.optim.Adam((self.kv, self.b), rate)

    def step(self, f, y):
        self.adam.zero_grad(set_to_none=True)
        torch.nn.functional.binary_cross_entropy_with_logits(f + self.b, y).backward()
        self.adam.step()

    def loader(self, tokens, offsets, y, bags, batch=64):
        """A DataLoader over the first `bags` bags, padded. Returns the number of tokens."""
        data = torch.utils.data.Subset(Bags(tokens, offsets, y), range(bags))
        for x, mask, labels in torch.utils.data.DataLoader(data, batch, shuffle=True, collate_fn=pad):
            score, value = (x @ self.kv).unbind(-1)
            weight = torch.softmax(score.masked_fill(~mask, -torch.inf), 1)
            self.step((weight * value).sum(1), labels)
        return int(offsets[bags])

    def slices(self, tokens, offsets, y, bags, batch=4096):
        """No DataLoader and no padding: neighbouring bags are one matrix, sums go by index_add."""
        for i in range(0, bags, batch):
            j = min(i + batch, bags)
            x = torch.from_numpy(np.asarray(tokens[offsets[i]:offsets[j]]))
            bag = torch.from_numpy(np.repeat(np.arange(j - i), np.diff(offsets[i:j + 1])))
            score, value = (x @ self.kv).unbind(-1)
            e, zero = torch.exp(score - score.detach().max()), torch.zeros(j - i)
            self.step(zero.index_add(0, bag, e * value) / zero.index_add(0, bag, e), torch.from_numpy(y[i:j]))
        return int(offsets[bags])
