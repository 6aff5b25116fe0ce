# The page on a fit: fit --report and finetti explain. One file that asks for nothing, the same bytes again, with what it is about; names
# that would break a page; numbers as labels; refusals. The browser is in tests/all/fit_browser.sh.
set -eu
. "$SRC/tests/cli/common.bash"
"$PYTHON" - <<'P'
import random
random.seed(5)
with open("slides.csv", "w") as f:
    f.write("slide,label,x,y,id,<b>f0,f1,f2\n")
    for s in range(40):
        hit = random.randrange(12)
        for t in range(12):
            v = [random.gauss(0, 1) + (4 if s % 2 and t == hit and k == 0 else 0) for k in range(3)]
            f.write("s%d,%s,%d,%d,<u>%d-%d,%s\n" % (s, "<i>tumor" if s % 2 else "normal", t % 4, t // 4, s, t, ",".join("%.4f" % x for x in v)))
P
accepts fit slides.csv --bag slide --label label --features '<b>f0,f1,f2' --model any --cv 3 --compare mean --out model.fin --report fit.html --coords x,y
accepts fit slides.csv --bag slide --label label --features '<b>f0,f1,f2' --model any --cv 3 --compare mean --report again.html --coords x,y --quiet --threads 2 --cv-out left.csv
cmp fit.html again.html
accepts explain model.fin slides.csv --report new.html --coords x,y
"$FINETTI" simulate --n 40 --d 3 --L 5 --out numbers.npz 2>/dev/null
accepts fit numbers.npz --model embedding --locator no --cv none --report numbers.html --quiet
"$PYTHON" - <<'P'
import html.parser, re
class Page(html.parser.HTMLParser):
    def __init__(self, name):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(open(name, encoding="utf-8").read())
    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)
    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass
    def handle_data(self, data):
        if not set(self.open[-1:]) & {"script", "style"}:
            self.text += data
fit, new, numbers = (Page(n) for n in ("fit.html", "new.html", "numbers.html"))
for page in (fit, new, numbers):
    names = [t for t, _ in page.tags]
    assert not {"img", "link"} & set(names) - {"link"} and not [a for t, a in page.tags for k in ("src",) if k in a]
    assert all(a["href"].startswith("data:") for t, a in page.tags if t == "link")
    assert not [a for _, a in page.tags if "style" in a or any(k.startswith("on") for k in a)]
    assert "default-src 'none'" in next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
figures = lambda p: [a["id"] for t, a in p.tags if t == "figure"]
assert figures(fit) == ["figure-fit." + f for f in ("roc", "calibration", "learning", "flipping")], figures(fit)
assert figures(new) == ["figure-fit." + f for f in ("roc", "calibration", "flipping")]
assert figures(numbers) == ["figure-fit." + f for f in ("observed", "flipping")]
for text in ("<i>tumor", "<b>f0", "Few bags", "mean", "Where it is surest", "Where it is least sure", "Sensitivity", "First row is better by"):
    assert text in fit.text, text
assert len(set(re.findall(r"id <u>\d+-\d+", fit.text))) == 12 * 5 # what the file says beside, of five tokens of twelve bags
assert "those that the model was fitted to" in new.text and "bags that were left out" not in new.text
assert "of the variance of the labels" in numbers.text and "Responsible" not in numbers.text and "That is too good" in numbers.text
assert sum(t == "rect" and a.get("fill", "")[:1] == "#" and a.get("height", "")[-1] != "%" for t, a in fit.tags) >= 12 * 12 # 12 bags of 12 tokens
P

# ---- pictures: one for each bag, a square for each token
accepts locate model.fin slides.csv --pictures drawn --coords x,y --out l.csv
[ "$(ls drawn | wc -l)" = 40 ] && [ "$(grep -c '<rect' drawn/2-s1.svg)" = 12 ] || fail "$(ls drawn)"
refuses 2 "go together" locate model.fin slides.csv --pictures drawn

# ---- --cv-out: every model, every bag once; shares right are those of the table
accepts fit slides.csv --bag slide --label label --features '<b>f0,f1,f2' --model any --cv 3 --compare mean --no-curve --cv-out left.csv --json
"$PYTHON" - <<'P'
import csv, json
rows = list(csv.DictReader(open("left.csv", newline="")))
assert list(rows[0]) == ["model", "bag", "true_label", "predicted", "p_<i>tumor", "p_normal"] and len(rows) == 80, rows[0]
for model in json.load(open("stdout"))["validation"]["models"]:
    own = [r for r in rows if r["model"] == model["model"]]
    assert sorted(r["bag"] for r in own) == sorted("s%d" % i for i in range(40))
    assert all(abs(float(r["p_<i>tumor"]) + float(r["p_normal"]) - 1) < 1e-12 for r in own)
    assert all((float(r["p_normal"]) > 0.5) == (r["predicted"] == "normal") for r in own)
    right = sum(r["predicted"] == r["true_label"] for r in own) / 40 # folds of 13 and 14 bags: means over folds are near
    assert abs(right - model["mean"]["accuracy"]) < 0.02, (right, model["mean"])
P

# ---- refusals
refuses 2 "end it in .html" fit slides.csv --bag slide --label label --report fit.txt
refuses 2 "takes --report" explain model.fin slides.csv
refuses 2 "is not two columns" explain model.fin slides.csv --report n.html --coords x
refuses 2 "is about the pictures" fit slides.csv --bag slide --label label --coords x,y
refuses 2 "is no column of numbers" explain model.fin slides.csv --report n.html --coords x,slide
refuses 2 "end it in .csv" fit slides.csv --bag slide --label label --cv-out left.npz
refuses 2 "do not go together" fit slides.csv --bag slide --label label --cv none --cv-out left.csv
