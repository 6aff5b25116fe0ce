#!/usr/bin/env python3
"""docs/papers.md, from what `finetti reproduce --json` says: paper by paper every statement that is tried, with its verdict.

    build/finetti reproduce --json > reproduce.json && python3 tools/papers.py reproduce.json > docs/papers.md

With --check docs/papers.md it writes nothing and fails if a statement or a verdict there is another (numbers may differ in
their last digits from machine to machine).
"""
import json, re, sys

PAPERS = {
    "Marion et al. 2025": ("Attention layers provably solve single-location regression", """\
Pierre Marion, Raphael Berthier, Gerard Biau, Claire Boyer. ICLR 2025."""),
    "Zhang et al. 2022": ("An Analysis of Attention via the Lens of Exchangeability and Latent Variable Models", """\
Yufeng Zhang, Boyi Liu, Qi Cai, Lingxiao Wang, Zhaoran Wang. arXiv 2212.14852. Its theorems' numbers were not available to us, so statements are quoted from its
abstract."""),
    "Zhang et al. 2023": ("What and How does In-Context Learning Learn? (the sequel of the paper before)", """\
Yufeng Zhang, Fengzhuo Zhang, Zhuoran Yang, Zhaoran Wang. arXiv 2305.19420."""),
    "Duranthon et al. 2026": ("The advantage of softmax attention (the sequel of the first paper)", """\
O. Duranthon, P. Marion, C. Boyer, B. Loureiro, L. Zdeborova. ICLR 2026."""),
    "": ("Other papers", ""),
}

# What is not tried, and why.
NOT = {
    "Marion et al. 2025": [
        ("Linear probing of BERT: the sentiment that one word decides becomes linear in a fixed token, layer by layer", "section 2",
         "BERT's weights cannot be had offline; a smaller published encoder (Universal Sentence Encoder Lite) and encoders trained here are probed instead (docs/encoder.md)"),
        ("Projected gradient descent from M converges to the oracle, as a theorem for all step sizes below a bound", "the convergence theorem",
         "a proof is not run; that it converges at the paper's and at other sizes is tried (above)"),
    ],
    "Zhang et al. 2022": [
        ("Theorems with their constants", "the body of the paper", "the numbers and constants of its theorems were not available to us; rates and limits are tried as the abstract states them"),
        ("BERT and ViT pretrained at scale", "experiments", "weights and images cannot be had offline; examples/digits.yaml makes claims of images of yours, tried on digits of 8 x 8 (docs/encoder.md)"),
    ],
    "Zhang et al. 2023": [
        ("The bound on pretraining with dependent tokens (PAC-Bayes), and approximation in depth", "theorem 5.3, proposition 5.4",
         "bounds with constants that are not given, on networks of any depth: nothing that is run could make them fail"),
        ("The theorem with its constants that joins them", "theorem 6.2", "the same; proposition 6.3, wrong labels, is tried as a claim of our own (exchangeability_representation)"),
    ],
}

HEAD = """\
# The papers, statement by statement

What the papers say and what comes of it here: `make reproduce` tries every row and this page is written from its output
(`tools/papers.py`). Only what a paper says is here (claims of kind `paper`); what was derived for finetti, and the checks of the code
against itself, are in the report. A claim holds if its 95 % interval lies inside what is expected, fails if outside, and is undecided otherwise.
Numbers are those of the quick sizes. M is the manifold theta = eta = rho = 0, the oracle has k = k*, v = v*, and cme is kernel ridge attention ([notation](notation.md)).
"""


def cell(text):
    return text.replace("|", "\\|")


def paper(source):
    return next((key for key in PAPERS if key and source.startswith(key)), "")


def page(result):
    claims = [(study["study"], c) for study in result["studies"] for c in study["claims"] if c["kind"] == "paper"]
    counts = {v: sum(c["verdict"] == v for _, c in claims) for v in ("holds", "fails", "undecided")}
    out = [HEAD, f"Papers: {counts['holds']} of {len(claims)} hold, {counts['fails']} fail, {counts['undecided']} undecided.\n"]
    for key, (title, about) in PAPERS.items():
        rows = [(s, c) for s, c in claims if paper(c["source"]) == key]
        if not rows:
            continue
        out += [f"## {title}\n"] + ([about + "\n"] if about else [])
        out += ["| statement | where | what is run: study, claim | measured | expected | verdict | figure |", "| --- | --- | --- | --- | --- | --- | --- |"]
        for study, c in rows:
            where = re.sub(r"^[:, ]+|^\((.*)\)$", r"\1", c["source"][len(key):].strip()) if key else c["source"]
            verdict = c["verdict"] if c["verdict"] == "holds" else f"**{c['verdict']}**" + (f": {c['known']}" if c["known"] else "")
            out.append("| " + " | ".join(cell(x) for x in (c["statement"], where or "-", f"`{study}`, {c['id']}", c["measured"], c["expected"], verdict,
                                                             c["figure"] or "-")) + " |")
        if key in NOT:
            out += ["", "Not tried:\n", "| statement | where | why not |", "| --- | --- | --- |"]
            out += ["| " + " | ".join(cell(x) for x in row) + " |" for row in NOT[key]]
        out.append("")
    return "\n".join(out)


def without_numbers(text):
    """Rows without the column of what was measured."""
    return [" | ".join(row[:4] + row[5:]) if len(row := re.split(r"(?<!\\)\|", line)) == 9 else line for line in text.splitlines()]


if __name__ == "__main__":
    new = page(json.load(open(sys.argv[1])))
    if "--check" in sys.argv:
        path = sys.argv[sys.argv.index("--check") + 1]
        there, now = without_numbers(open(path).read()), without_numbers(new)
        other = [f"- {a}" for a in there if a not in now] + [f"+ {b}" for b in now if b not in there]
        if other:
            sys.exit(f"{path} is not what `finetti reproduce --json` says; write it anew by tools/papers.py:\n" + "\n".join(other[:20]))
    else:
        sys.stdout.write(new)
