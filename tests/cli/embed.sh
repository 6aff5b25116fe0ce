#!/usr/bin/env bash
# finetti embed and finetti probe of a folder: texts through a pretrained encoder.
. "$(dirname "$0")/common.bash"
"$PYTHON" "$SRC/tests/cli/text_folder.py" bert

# ---- bags: a token a piece, and what it is of the text
accepts embed bert bert/texts.csv --layer 0 --out words.npz
prints "bert, 2 layers of width 8, 2 heads, 16 units; 15 pieces"
prints "60, 540 pieces"
accepts embed bert bert/texts.csv --layer all --longest 5 --out all.npz --json
grep -q "60 of 60 texts were cut to 5 pieces; 240 pieces are left out" stderr || fail "no note on texts that were cut"
"$PYTHON" - <<'PY'
import json, npz, struct
r = json.load(open("stdout"))
assert (r["n"], r["tokens"], r["width"]) == (60, 300, 24) and "layer" not in r, r
npz.CODES.update({"<U5": "I", "<U4": "I"})
a = npz.load("words.npz")
def texts(name):
    (n,), flat, _ = a[name]
    wide = len(flat) // n
    return ["".join(map(chr, filter(None, flat[i * wide:(i + 1) * wide]))) for i in range(n)]
assert a["tokens"][0] == (540, 8) and a["offsets"][1] == tuple(range(0, 541, 9))
text = texts("piece")
assert text[0] == "[CLS]" and text[8] == "[SEP]" and text[1] == "The" and text[5] == "BAD" and text[7] == "."
place, begin, end = (a[name][1] for name in ("place", "begin", "end"))
lines = open("bert/texts.csv").read().splitlines()[1:]
for t in range(540):
    own = lines[t // 9].split(",")[0][begin[t]:end[t]]
    assert place[t] == t % 9 and own == ("" if text[t][0] == "[" else text[t])
assert texts("mood") == ["bad", "good"] * 30 and a["stars"][1] == (1, 4) * 30
PY

# ---- an endless word is a piece like others: an array of texts is as wide as its longest, so its text is cut
"$PYTHON" -c 'import sys
for word in b"x" * 100000, "\u00e9".encode() * 50000, b"\x80" * 100000:
    sys.stdout.buffer.write(b"a " * 40 + word + b"\n")' >words
(echo text; cat words) >endless.csv
accepts embed bert endless.csv --layer 0 --out endless.npz
[ "$(stat -c %s endless.npz)" -lt 100000 ] || fail "a file of $(stat -c %s endless.npz) bytes for an endless word"

# ---- the responsible word
accepts fit words.npz --label mood --model softmax --out model.fin
accepts locate model.fin words.npz --blind --top 1 --out located.csv
"$PYTHON" - <<'PY'
import csv
rows = list(csv.DictReader(open("located.csv")))
assert len(rows) == 60 and all(row["piece"] == ("great" if i % 2 else "BAD") for i, row in enumerate(rows)), rows[:3]
PY

# ---- probes, layer by layer: the first piece knows nothing before the first layer
accepts probe bert --data bert/texts.csv --text text --label mood --layer all --json
"$PYTHON" - <<'PY'
import json
r = json.load(open("stdout"))
assert [row["layer"] for row in r["layers"]] == [0, 1, 2] and r["classes"] == 2 and r["token"] == "first"
assert all(row["train"] == 48 and row["test"] == 12 for row in r["layers"])
assert r["layers"][0]["accuracy"] == 0.5 and r["layers"][1]["accuracy"] > 0.9, r
PY
accepts probe bert --data bert/texts.csv --text text --label mood --layer 0 --token 5
prints "     0     1.0000"
accepts probe bert --data bert/texts.csv --test-data bert/texts.csv --text text --label stars --kind regression --token mean
prints "     2     0.9"

# ---- sentences of a study: known by what is in the folder, wherever it lies
cat >study.yaml <<'Y'
study: words
title: Words
runs:
  - {id: a, command: text, set: {layer: 0, token: mean, good: great, bad: BAD, test_good: great, test_bad: bad, seen: 1, train: 20, test: 10,
     shapes: "the {n} was {a} .", nouns: film|it|and}}
  - {id: b, command: text, set: {measure: locate, model: softmax, layer: 0, good: great, bad: BAD, test_good: great, test_bad: bad, seen: 1, train: 40, test: 10,
     shapes: "the {n} was {a} .", nouns: film|it|and}}
claims:
  - {id: read, statement: "The mean tells it.", from: a, take: accuracy, reduce: only, expect: {at_least: 0.6}}
  - {id: found, statement: "It is found.", from: b, take: found, reduce: only, expect: {at_least: 0.6}}
Y
accepts study run study.yaml --store s.db --set '*.encoder=bert'
prints "derived: 2 of 2 hold"
prints "2 computed"
cp -R bert elsewhere
accepts study run study.yaml --store s.db --set '*.encoder=elsewhere'
prints "2 cached, 0 computed"
printf 'x' | dd of=elsewhere/model.safetensors bs=1 seek="$(($(stat -c %s elsewhere/model.safetensors) - 2))" conv=notrunc 2>/dev/null
accepts study run study.yaml --store s.db --set '*.encoder=elsewhere'
prints "0 cached, 2 computed"
code=0
"$FINETTI" study run study.yaml --store none.db >stdout 2>stderr || code=$?
[ $code = 1 ] && grep -q "no encoder: set encoder to a folder" stdout stderr || fail "without an encoder: $code: $(cat stdout stderr)"
refuses 2 "no config.json" study run study.yaml --store none.db --set '*.encoder=/dev'
refuses 2 "no config.json" study run study.yaml --store none.db --set '*.encoder=../../../../../../etc/passwd'
refuses 2 "nothing with this was given" lab text --encoder xxh128:00000000000000000000000000000000
refuses 2 "layer = 3: the encoder has 2" lab text --encoder bert --layer 3
refuses 2 "needs one {a}" lab text --shapes "no word"
refuses 2 "good has 1 words" lab text --good great

# ---- refused
refuses 2 "has no column 'txt'; did you mean text?" embed bert bert/texts.csv --text txt --out x.npz
refuses 2 "column 'stars' has numbers" embed bert bert/texts.csv --text stars --out x.npz
refuses 2 "--out FILE.npz is needed" embed bert bert/texts.csv --out x.csv
refuses 2 "neither all nor a number from 0 to 2" embed bert bert/texts.csv --layer 3 --out x.npz
refuses 2 "no number from 0 (all) to 12" embed bert bert/texts.csv --longest 13 --out x.npz
refuses 1 "no config.json" embed . bert/texts.csv --out x.npz
refuses 2 "needs --data FILE.csv and --text COLUMN" probe bert --label mood
refuses 2 "--pool is for encoders of finetti pretrain" probe bert --data bert/texts.csv --text text --label mood --pool max
refuses 2 "none of first, last, mean" probe bert --data bert/texts.csv --text text --label mood --token cls
refuses 2 "text 0 (from 0) has 9" probe bert --data bert/texts.csv --text text --label mood --token 9
refuses 2 "--token is for the folder of an encoder of text" probe model.fin --token first
printf 'text,y\nfine,1\nwell, no,2\n' >commas.csv
refuses 1 "line 3 has 3 cells, but the header has 2" embed bert commas.csv --out x.npz
sed 's/,text,/,t,/; s/text,mood/text,offsets/' bert/texts.csv >odd.csv
refuses 2 "the column 'offsets' has the name of an array" embed bert odd.csv --out x.npz
[ ! -e x.npz ] || fail "a refused embed left its file"
echo "embed: ok"
