#!/usr/bin/env python3
"""Writes src/text/unicode_tables.h: what the tokenizers ask of Unicode, from Python's unicodedata.

    python3 tools/make_unicode.py > src/text/unicode_tables.h
"""

import sys
import unicodedata as u

ALL = [chr(c) for c in range(sys.maxunicode + 1)]


def ranges(holds):
    """Pairs (first, last) of the characters for which holds()."""
    out = []
    for c, x in enumerate(ALL):
        if not holds(x):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def runs(pairs):
    """(first, last, step, difference): of a run every step-th character moves by the same difference."""
    out = []
    for c, to in pairs:
        last = out[-1] if out else None
        if last and last[3] == to - c and (c - last[1] == last[2] or (last[0] == last[1] and c - last[1] <= 2)):
            last[2], last[1] = c - last[1], c
        else:
            out.append([c, c, 1, to - c])
    return out


def lower():
    """Simple lower case. U+0130 alone becomes two characters; the code knows it."""
    return [(c, ord(x.lower())) for c, x in enumerate(ALL) if len(x.lower()) == 1 and x.lower() != x]


def plain():
    """What is left of a character without its marks: canonical decomposition, category Mn left out. Hangul
    is done by arithmetic."""
    one, more = [], []
    for c, x in enumerate(ALL):
        if 0xAC00 <= c <= 0xD7A3 or u.category(x) in ("Mn", "Cs"):
            continue
        left = [ord(y) for y in u.normalize("NFD", x) if u.category(y) != "Mn"]
        if left == [c] or not left:
            continue
        if len(left) == 1:
            one.append((c, left[0]))
        else:
            more.append([c, *left, *[0] * (3 - len(left))])
    return one, more


def spans(pairs):
    """(first, last, where the target of the first stands), and the targets: of characters close together. Between them
    stands a character for itself."""
    out, to = [], []
    for c, target in pairs:
        if out and c - out[-1][1] <= 4:
            to += range(out[-1][1] + 1, c)
        else:
            out.append([c, c, len(to)])
        to.append(target)
        out[-1][1] = c
    return out, to


def width():
    """Forms that differ from another character in width, or in whether a line may end there."""
    out = []
    for c, x in enumerate(ALL):
        tag, *to = u.decomposition(x).split() or [""]
        if tag in ("<wide>", "<narrow>", "<noBreak>") or (u.category(x) == "Zs" and x != " "):
            left = u.normalize("NFKC", x)
            if len(left) == 1 and left != x:
                out.append((c, ord(left)))
    return out


def table(name, kind, rows, comment):
    print(f"\n/* {comment} */\nstatic const {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        text = [hex(v) if v > 9 else str(v) for v in (row if isinstance(row, (list, tuple)) else [row])]
        if kind == "fini_several":
            text[1:] = ["{" + ", ".join(text[1:]) + "}"]
        item = " " + ", ".join(text) + "," if kind == "fini_char" else " {" + ", ".join(text) + "},"
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def main():
    print(f"""/* Tables of Unicode {u.unidata_version}, in the order of the characters.
 * Written by tools/make_unicode.py; do not edit. */
/* clang-format off */""")
    one, more = plain()
    table("marks", "fini_range", ranges(lambda x: u.category(x) == "Mn"), "Mn: marks that take no place.")
    table("punctuation", "fini_range", ranges(lambda x: ord(x) > 127 and u.category(x)[0] == "P"),
          "P*, beyond ASCII.")
    table("controls", "fini_range", ranges(lambda x: u.category(x) in ("Cc", "Cf", "Co", "Cs")),
          "Cc, Cf, Co, Cs.")
    table("spaces", "fini_range", ranges(lambda x: u.category(x)[0] == "Z"), "Z*: Zs, and ends of lines and paragraphs.")
    table("lower", "fini_run", runs(lower()), "Simple lower case.")
    places, to = spans(one)
    table("plain", "fini_span", places, "Without marks: one character, which stands in plain_to.")
    table("plain_to", "fini_char", to, "In the order of the spans.")
    table("plain_more", "fini_several", more, "Without marks: two or three.")
    table("width", "fini_run", runs(width()), "Wide, narrow and unbreakable forms.")


if __name__ == "__main__":
    main()
