# The site is built without a warning and its pages lead to each other; the notebooks run; the conda recipe and CITATION.cff are such files.
. "$SRC/tests/cli/common.bash"
site=$BUILD/tests/site
python=$BUILD/python/venv/bin/python
"$python" "$SRC/tools/site.py" "$SRC" "$site" >stdout || fail "the site has warnings"
"$PYTHON" - "$site/html" <<'P'
import html.parser, os, sys
root = sys.argv[1]
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()
    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids.add(found.get("id"))
pages = {}
for name in os.listdir(root):
    if name.endswith(".html"):
        pages[name] = Page()
        pages[name].feed(open(os.path.join(root, name), encoding="utf-8").read())
broken, outside = [], []
for name, page in pages.items():
    for link in page.links:
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            outside += [link] if link.endswith((".js", ".css")) else []
            continue
        target = os.path.normpath(path or name)
        there = target in pages or os.path.exists(os.path.join(root, path))
        if not there or (anchor and target in pages and anchor not in pages[target].ids):
            broken.append(f"{name}: {link}")
assert len(pages) >= 28, sorted(pages)
assert not broken, broken[:20]
assert not outside, outside[:5]  # nothing is loaded from elsewhere
text = open(os.path.join(root, "api.html"), encoding="utf-8").read()
for word in ("finetti.Encoder", "pretrain", "SingleLocationClassifier", "ArgumentError"):
    assert word in text, word
print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links")
P
MPLBACKEND=Agg "$python" "$SRC/tests/prose/notebook.py" "$SRC"/examples/notebooks/*.ipynb || fail "a notebook does not run"

# packaging/conda: YAML once its one variable is in its places, with the keys that conda-build asks for.
"$PYTHON" - "$SRC/packaging/conda" <<'P'
import os, re, sys, yaml
folder = sys.argv[1]
text = open(os.path.join(folder, "meta.yaml"), encoding="utf-8").read()
names = dict(re.findall(r'{% set (\w+) = "([^"]*)" %}', text))
text = re.sub(r"{%.*?%}", "", text)
text = re.sub(r"{{\s*(\w+)\s*}}", lambda found: names[found[1]], text)
text = re.sub(r'{{\s*(\w+)\("(\w+)"\)\s*}}', r"\1_\2", text)
assert "{{" not in text and "{%" not in text, "a part of the template is not understood"
recipe = yaml.safe_load(text)
for keys in ("package/name", "package/version", "source", "build/number", "build/script", "requirements/build",
             "requirements/host", "requirements/run", "test", "about/license", "about/summary"):
    part = recipe
    for key in keys.split("/"):
        assert key in part and part[key] is not None, f"the recipe has no {keys}"
        part = part[key]
header = open(os.path.join(os.environ["SRC"], "include/finetti/base.h")).read()
version = ".".join(re.search(rf"FIN_VERSION_{name} (\d+)", header)[1] for name in ("MAJOR", "MINOR", "PATCH"))
assert recipe["package"]["name"] == "finetti" and str(recipe["package"]["version"]) == version
host, run = ({re.split(r"[ <>=]", one)[0] for one in recipe["requirements"][part]} for part in ("host", "run"))
assert {"openblas", "liblapacke", "sleef", "jansson", "libzip", "sqlite", "yaml", "xxhash"} <= {name.replace("libyaml", "yaml").replace("libsqlite", "sqlite") for name in host} | host, host
assert {"python", "numpy", "cffi"} <= run, run
print(f"recipe of version {version}: {len(host)} packages to build with, {len(run)} to run")
P

# CITATION.cff: the keys and types of the Citation File Format 1.2.0, as far as we use them.
"$PYTHON" - "$SRC" <<'P'
import os, re, sys, yaml
with open(os.path.join(sys.argv[1], "CITATION.cff"), encoding="utf-8") as file:
    cite = yaml.safe_load(file)
def people(authors):
    assert authors and all({"name"} == set(one) or {"given-names", "family-names"} == set(one) for one in authors), authors
assert {"cff-version", "message", "title", "authors"} <= set(cite) <= {"cff-version", "message", "type", "title", "version", "license", "abstract",
                                                                       "authors", "references", "date-released", "keywords", "url", "repository-code"}
assert str(cite["cff-version"]) == "1.2.0" and cite["type"] == "software" and cite["license"] == "MIT"
people(cite["authors"])
for one in cite["references"]:
    assert {"type", "title", "authors"} <= set(one) <= {"type", "title", "authors", "year", "collection-title", "identifiers"}, one
    assert one["type"] in ("article", "conference-paper") and isinstance(one["year"], int)
    assert all(found["type"] in ("doi", "url", "swh", "other") and found["value"] for found in one.get("identifiers", [])), one
    people(one["authors"])
with open(os.path.join(sys.argv[1], "include/finetti/base.h"), encoding="utf-8") as file:
    header = file.read()
assert cite["version"] == ".".join(re.search(rf"FIN_VERSION_{name} (\d+)", header)[1] for name in ("MAJOR", "MINOR", "PATCH"))
print(f"CITATION.cff of version {cite['version']}: {len(cite['references'])} references")
P
