"""The documentation as a site of plain HTML: `make site`. Nothing is downloaded.

    site.py SRC OUTPUT      (with a Python that has finetti, Sphinx and MyST)

Pages are docs/*.md; docs/index.md says in which order. The reference of Python comes from docstrings, whose examples
are run by the tests. A warning is an error.
"""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
MODULES = ("tasks", "families", "datasets", "plot")


def pages(index):
    """The pages in the order of docs/index.md, group by group: [(title of the group, [page])]."""
    groups = []
    for line in index.splitlines():
        if line.startswith("## "):
            groups.append((line[3:], []))
        for _, target, _, _ in LINK.findall(line) if groups else ():
            groups[-1][1].append(target)
    return groups


def moved(text, folder, source, files):
    """Links of a page as the site has them: pages beside each other, other files of the project in files/."""
    def link(found):
        before, target, anchor, after = found[1], found[2], found[3] or "", found[4]
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = os.path.normpath(os.path.join(folder, target))
        name = os.path.basename(path)
        if path.startswith("docs/") and path.endswith((".md", ".png", ".svg")):
            return f"{before}{os.path.relpath(path, 'docs')}{anchor}{after}"
        if path in ("README.md", "CONTRIBUTING.md"):
            return f"{before}{name.lower()}{anchor}{after}"
        if path == "docs":
            return f"{before}index.md{after}"
        if os.path.isdir(os.path.join(source, path)):  # a site has no listings
            return found[0].replace(found[2], "readme.md")
        files.add(path)
        return f"{before}files/{path}{anchor}{after}"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def reference():
    """{file: text} of the pages on Python: one of the package, one for each public module."""
    package = importlib.import_module("finetti")
    classes, functions, errors = [], [], []
    for name in package.__all__:
        value = getattr(package, name)
        if inspect.isclass(value):
            (errors if issubclass(value, Exception) else classes).append(name)
        elif callable(value):
            functions.append(name)
    lines = ["# Python reference", "", "```{eval-rst}"]
    for title, kind, names in (("Classes", "class", classes), ("Functions", "function", functions),
                               ("Exceptions", "exception", errors)):
        lines += [title, "-" * len(title), ""]
        for name in names:
            lines += [f".. auto{kind}:: finetti.{name}", ""]
    made = {"api.md": "\n".join([*lines, "```", ""])}
    for module in MODULES:
        value = importlib.import_module(f"finetti.{module}")
        lines = [f"# finetti.{module}", "", (inspect.getdoc(value) or "").split("\n")[0], "", "```{eval-rst}"]
        for name in value.__all__:
            kind = "class" if inspect.isclass(getattr(value, name)) else "function"
            lines += [f".. auto{kind}:: finetti.{module}.{name}", ""]
        made[f"api_{module}.md"] = "\n".join([*lines, "```", ""])
    return made


def main(source, output):
    shutil.rmtree(output, ignore_errors=True)
    folder, files = os.path.join(output, "source"), set()
    for place in ("images", "extra/images"):
        shutil.copytree(os.path.join(source, "docs", "images"), os.path.join(folder, place))
    shutil.copy(os.path.join(source, "docs", "site", "conf.py"), folder)

    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(path):
        with open(os.path.join(source, path), encoding="utf-8") as file:
            return file.read()

    index = read("docs/index.md")
    names = sorted(name for name in os.listdir(os.path.join(source, "docs")) if name.endswith(".md"))
    for name in names:
        write(name, moved(read(f"docs/{name}"), "docs", source, files))
    for name in ("README.md", "CONTRIBUTING.md"):
        write(name.lower(), moved(read(name), "", source, files))
    made = reference()
    for name, text in made.items():
        write(name, text)
    tree, listed = [], {"index.md"}
    for title, targets in pages(index):
        own = [os.path.basename(target) for target in targets]
        own = [name.lower() if name in ("README.md", "CONTRIBUTING.md") else name for name in own] + \
            (list(made) if title == "Reference" else [])
        listed.update(own)
        tree += ["```{toctree}", ":hidden:", f":caption: {title}", "", *own, "```", ""]
    tree += ["```{toctree}", ":hidden:", "", "readme.md", "```", ""]
    missing = sorted({*names, *made} - listed)
    if missing:
        sys.exit(f"site.py: docs/index.md does not list {', '.join(missing)}")
    links = "".join(f"- [finetti.{name}](api_{name}.md)\n" for name in MODULES)
    text = moved(index, "docs", source, files).replace("## Reference\n\n", f"## Reference\n\n- [Python reference](api.md): every class and function\n{links}", 1)
    write("index.md", text + "\n" + "\n".join(tree))
    for path in files:
        to = os.path.join(folder, "files", path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.join(source, path), to)
    html = os.path.join(output, "html")
    done = subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", os.path.join(output, "doctrees"),
                           folder, html], env={**os.environ, "SRC": source})
    if done.returncode == 0:
        print(os.path.join(html, "index.html"))
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
