"""Attention to contexts of tokens in NumPy, PyTorch and scikit-learn. What is not installed is None."""

import warnings

import numpy as np

from peers import torch

try:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
except ImportError:
    GaussianProcessRegressor = None


# ---- many contexts, kernel ridge -------------------------------------------------------------------


def numpy_gram(a, b, scale):
    """exp(-|a - b|^2 / 2 scale^2), as fast as NumPy does it: one product, few passes, in place."""
    a, b = a / scale, b / scale
    gram = a @ b.T
    gram -= 0.5 * np.einsum("ij,ij->i", a, a)[:, None]
    gram -= 0.5 * np.einsum("ij,ij->i", b, b)
    return np.exp(gram, out=gram)


def numpy_cme(keys, values, queries, scale, noise):
    """numpy.linalg.solve in a loop. keys: (n, L, dk), values: (n, L, dv), queries: (n, m, dk)."""
    out = np.empty(queries.shape[:2] + values.shape[2:])
    for k, v, q, to in zip(keys, values, queries, out):
        gram = numpy_gram(k, k, scale)
        gram.flat[::len(k) + 1] += noise
        to[:] = numpy_gram(q, k, scale) @ np.linalg.solve(gram, v)
    return out


def torch_gram(a, b, scale):
    a, b = a / scale, b / scale
    gram = torch.baddbmm(-0.5 * (b * b).sum(-1)[:, None, :], a, b.transpose(1, 2))
    gram -= 0.5 * (a * a).sum(-1)[:, :, None]
    return gram.exp_()


def torch_cme(keys, values, queries, scale, noise, at_once=None):
    """torch.linalg.cholesky and cholesky_solve of `at_once` contexts at a time (None: all)."""
    parts = []
    for i in range(0, len(keys), at_once or len(keys)):
        k, v, q = (array[i:i + (at_once or len(keys))] for array in (keys, values, queries))
        gram = torch_gram(k, k, scale)
        gram.diagonal(dim1=1, dim2=2).add_(noise)
        parts.append(torch_gram(q, k, scale) @ torch.cholesky_solve(v, torch.linalg.cholesky(gram)))
    return torch.cat(parts)


# ---- softmax -----------------------------------------------------------------------------------------


def torch_softmax(keys, values, queries, temperature, at_once):
    """`at_once` queries at a time: fewer than all keep the matrix of weights small, and are faster."""
    parts = [torch.softmax(part @ keys.T / temperature, 1) @ values for part in queries.split(at_once)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def numpy_softmax(keys, values, queries, temperature):
    score = queries @ keys.T
    score *= 1 / temperature
    score -= score.max(1, keepdims=True)
    np.exp(score, out=score)
    return (score @ values) / score.sum(1, keepdims=True)


# ---- the learning curve ------------------------------------------------------------------------------


def sklearn_refit(keys, values, queries, answers, scale, noise, lengths):
    """Squared error after the first l tokens, l in `lengths`: a regressor fitted anew for each."""
    errors = []
    for l in lengths:
        kernel = ConstantKernel(1.0, "fixed") * RBF(scale, "fixed")
        model = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(keys[:l], values[:l])
        errors.append(float(np.mean((model.predict(queries).reshape(answers.shape) - answers) ** 2)))
    return errors


def numpy_refit(keys, values, queries, answers, scale, noise, lengths):
    """The same with numpy.linalg.solve and the Gram matrix computed once."""
    gram, asked, errors = numpy_gram(keys, keys, scale), numpy_gram(queries, keys, scale), []
    gram.flat[::len(keys) + 1] += noise
    for l in lengths:
        errors.append(float(np.mean((asked[:, :l] @ np.linalg.solve(gram[:l, :l], values[:l]) - answers) ** 2)))
    return errors
