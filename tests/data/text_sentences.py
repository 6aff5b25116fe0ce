"""Sentences whose mood depends on one word, from word lists of our own.

    python3 text_sentences.py FOLDER [SEED]

Which adjectives are for training follows from SEED. Writes train.csv (800) and test.csv (400, whose adjectives are in no training sentence), and two files on which the
probes are not expected to read as well: verbs.csv (400, the deciding word is a verb) and shapes.csv (400, new shapes of
sentences). Columns: sentence, mood, word (the one that decides) and at (its first character)."""
import csv
import os
import random
import sys

GOOD = """good great excellent wonderful pleasant brilliant fantastic amazing perfect beautiful impressive nice fine awesome
gorgeous exciting attractive comfortable happy safe smart clean useful helpful successful strong fun funny easy fresh healthy
valuable incredible interesting cute cool sweet rich wise""".split()
BAD = """bad awful terrible horrible poor nasty boring ugly annoying painful uncomfortable stupid ridiculous sad angry
dangerous dirty broken weak worst worse evil cheap difficult sick dead crazy dumb wrong lazy violent guilty rude slow
expensive fake false insane silly""".split()
LOVE = "loved enjoyed liked praised admired".split()
HATE = "hated disliked despised regretted cursed".split()
NOUNS = "phone film book hotel meal song game car coffee garden lecture concert jacket museum camera story".split()
WHO = ["my sister", "our neighbour", "the teacher", "my friend", "a colleague", "his brother", "the guide", "her uncle"]
DID = "bought saw mentioned described remembered noticed".split()
WHEN = ["yesterday", "last week", "in spring", "on Monday", "this morning", "a year ago"]
SHAPES = ["The {n} that {w} {d} {t} was {a}", "The {n} {w} {d} was {a} {t}", "The {n} was {a} and {w} {d} it {t}"]
OTHERS = ["It was {t} that {w} {d} such {a} things", "{a} was what {w} called the {n} {t}",
          "Nobody {d} the {n} {t} , so {a} it was"]
VERBS = ["The {n} that {w} {a} {t} is here", "The {n} {w} {a} was here {t}"]


def write(path, count, words, shapes, draw):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sentence", "mood", "word", "at"])
        for i in range(count):
            mood = i % 2
            word = draw.choice(words[mood])
            before, after = draw.choice(shapes).split("{a}")
            pieces = {"n": draw.choice(NOUNS), "w": draw.choice(WHO), "d": draw.choice(DID), "t": draw.choice(WHEN)}
            before, after = before.format(**pieces), after.format(**pieces)
            out.writerow([before + word + after, ("bad", "good")[mood], word, len(before)])


def main():
    folder, draw = sys.argv[1], random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    bad, good = (draw.sample(words, len(words)) for words in (BAD, GOOD))
    seen, unseen = (bad[:27], good[:27]), (bad[27:], good[27:])
    write(os.path.join(folder, "train.csv"), 800, seen, SHAPES, draw)
    write(os.path.join(folder, "test.csv"), 400, unseen, SHAPES, draw)
    write(os.path.join(folder, "verbs.csv"), 400, (HATE, LOVE), VERBS, draw)
    write(os.path.join(folder, "shapes.csv"), 400, unseen, OTHERS, draw)


if __name__ == "__main__":
    main()
