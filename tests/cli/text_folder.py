"""A folder of a small BERT with weights that are random, in which the moods of words show: text_folder.py FOLDER."""
import json, os, random, struct, sys

WIDTH, HEADS, LAYERS, HIDDEN, LONGEST = 8, 2, 2, 16, 12
WORDS = "[PAD] [UNK] [CLS] [SEP] the film was great ##er bad and long . , it".split()
GOOD, BAD = WORDS.index("great"), WORDS.index("bad")
folder, draw = sys.argv[1], random.Random(5)
tensors = {}


def add(name, shape, middle=0.0, spread=0.3):
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    tensors[name] = (shape, [middle + spread * draw.gauss(0, 1) for _ in range(count)])


def linear(name, out, width=None):
    add(name + ".weight", (out, width) if width else (out,), 0 if width else 1, 0.3)
    add(name + ".bias", (out,))


add("embeddings.word_embeddings.weight", (len(WORDS), WIDTH), spread=1)
add("embeddings.position_embeddings.weight", (LONGEST, WIDTH), spread=0.1)
add("embeddings.token_type_embeddings.weight", (2, WIDTH), spread=0.1)
linear("embeddings.LayerNorm", WIDTH)
words = tensors["embeddings.word_embeddings.weight"][1]
for word, sign in (GOOD, 3), (BAD, -3):
    words[word * WIDTH] = sign
for i in range(LAYERS):
    at = f"encoder.layer.{i}."
    for name in "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense":
        linear(at + name, WIDTH, WIDTH)
    linear(at + "attention.output.LayerNorm", WIDTH)
    linear(at + "intermediate.dense", HIDDEN, WIDTH)
    linear(at + "output.dense", WIDTH, HIDDEN)
    linear(at + "output.LayerNorm", WIDTH)
os.makedirs(folder, exist_ok=True)
header, at, data = {}, 0, b""
for name, (shape, flat) in tensors.items():
    block = struct.pack("<%df" % len(flat), *flat)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(block)]}
    at, data = at + len(block), data + block
text = json.dumps(header).encode()
with open(os.path.join(folder, "model.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
with open(os.path.join(folder, "vocab.txt"), "w") as file:
    file.write("\n".join(WORDS) + "\n")
with open(os.path.join(folder, "config.json"), "w") as file:
    json.dump({"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
               "intermediate_size": HIDDEN, "hidden_act": "gelu", "max_position_embeddings": LONGEST,
               "vocab_size": len(WORDS), "type_vocab_size": 2, "layer_norm_eps": 1e-12}, file)
with open(os.path.join(folder, "texts.csv"), "w") as file:
    file.write("text,mood,stars\n")
    for i in range(60):
        good = i % 2
        filler = draw.sample(["and", "long", "it"], 2)
        file.write(f"The {filler[0]} film was {'great' if good else 'BAD'} {filler[1]}.,{('bad', 'good')[good]},{1 + 3 * good}\n")
