"""Prose of the project: sentences and phrases of Markdown files and of the tool's help.

    prose.py sentences LIMIT FILE...      counts of words; sentences of more than LIMIT words; code 1 if there are any
    prose.py phrases LIST FILE...         lines with a phrase of the list (phrase | what to say instead); code 1 if any
    prose.py words LIST FILE...           words that are neither in Debian's dictionaries nor in the list; code 1 if any

A FILE that ends with .md is Markdown; others are plain text. A piece of code or a formula counts as one word.
"""

import re
import sys

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[ \t]*$", re.M | re.S)
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_]*[A-Z`0-9])")
# No part of a name, a path or a formula.
WORD = re.compile(r"(?<![\w./`-])[A-Za-z][a-z']+(?![\w/(]|\.[a-z]|-[a-z]*_)")
DICTIONARIES = ("/usr/share/dict/british-english", "/usr/share/dict/american-english")
SHORT = re.compile(r"\b(e\.g|i\.e|cf|vs|etc|approx|resp|Fig|fig|Eq|eq|Sec|sec|Thm|No|Prop|Lem|Cor|et al|St|Dr|p|pp)\.")


def blank(found):
    """As many lines, and nothing in them."""
    return "\n" * found.group().count("\n")


def prose(name, text):
    """The text without code blocks; of Markdown without links' addresses, comments and marks, too."""
    if not name.endswith(".md"):
        return text
    text = FENCE.sub(blank, text)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    text = re.sub(r"(?:(?<=\n\n)|\A)(?: {4,}.*\n|\t.*\n)+", blank, text)  # code by indentation
    text = re.sub(r"`[^`\n]+(?:\n[^`\n]+)?`", "Code", text)
    text = re.sub(r"\$[^$\n]+\$", "Formula", text)
    text = LINK.sub(lambda found: found[1], text)
    return re.sub(r"</?[a-z]+[^>\n]*>", "", text)


def paragraphs(name, text):
    """[(line, text)]: paragraphs, headings, items of lists and cells of tables."""
    found, start, lines = [], 0, []

    def end():
        if lines:
            found.append((start, " ".join(lines)))
            lines.clear()

    for number, line in enumerate(prose(name, text).split("\n"), 1):
        plain = line.strip()
        if name.endswith(".md") and plain.startswith("|"):
            end()
            found.extend((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", plain) if cell.strip(" -:"))
            continue
        # An item of a list; in the tool's help a row of a table, whose text goes on further right.
        row = not name.endswith(".md") and re.match(" {1,2}\\S|.*\\S {2}", line)
        item = re.match(r"([-*+]|\d+[.)])\s+", plain) if name.endswith(".md") else None
        if not plain or item or row or plain.startswith("#"):
            end()
        if plain and not lines:
            start = number
        if plain:
            lines.append(plain[item.end():] if item else plain)
        if plain.startswith("#") or (plain.endswith(":") and not name.endswith(".md")):
            end()
    end()
    return found


def sentences(name, text):
    """[(line, words, sentence)]"""
    found = []
    for line, paragraph in paragraphs(name, text):
        paragraph = SHORT.sub(lambda short: short[0].replace(".", ""), paragraph)
        for sentence in END.split(paragraph):
            words = [word for word in sentence.split() if re.search(r"[A-Za-z]{2}|^[aAI]$", word)]
            found.append((line, len(words), sentence.strip()))
    return found


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def main(verb, *words):
    bad = 0
    if verb == "sentences":
        limit, counts = int(words[0]), []
        for name in words[1:]:
            for line, length, sentence in sentences(name, read(name)):
                counts.append(length)
                if length > limit:
                    bad += 1
                    print(f"{name}:{line}: {length} words: {sentence}")
        counts.sort()
        print(f"{len(counts)} sentences: median {counts[len(counts) // 2]} words, nine of ten at most "
              f"{counts[len(counts) * 9 // 10]}, longest {counts[-1]}; {bad} of more than {limit}")
    elif verb == "phrases":
        rows = [line.split(" => ") for line in read(words[0]).splitlines() if line.strip() and not line.startswith("#")]
        patterns = [(re.compile(row[0].strip(), re.I), row[1].strip()) for row in rows]
        for name in words[1:]:
            for number, line in enumerate(read(name).splitlines(), 1):
                for pattern, instead in patterns:
                    if pattern.search(line):
                        bad += 1
                        print(f"{name}:{number}: '{pattern.search(line)[0]}': say: {instead}")
    elif verb == "words":
        known = {word.strip().lower() for name in (*DICTIONARIES, words[0]) for word in read(name).split("\n")}
        for name in words[1:]:
            for number, line in enumerate(prose(name, read(name)).splitlines(), 1):
                for word in WORD.findall(line):
                    word = re.sub("'s$", "", word.lower().rstrip("'"))
                    if len(word) > 3 and word not in known:
                        bad += 1
                        print(f"{name}:{number}: '{word}'")
    else:
        sys.exit(__doc__)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
