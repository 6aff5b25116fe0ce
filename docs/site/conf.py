"""The documentation as a site: `make site`. Pages are those of docs/, the reference comes from docstrings of the package."""

import os
import re

SRC = os.environ["SRC"]
project = "finetti"
author = "the authors of finetti"
with open(os.path.join(SRC, "include", "finetti", "base.h"), encoding="utf-8") as header:
    numbers = dict(re.findall(r"#define FIN_VERSION_(MAJOR|MINOR|PATCH) (\d+)", header.read()))
release = version = ".".join(numbers[name] for name in ("MAJOR", "MINOR", "PATCH"))
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
master_doc = root_doc = "index"
exclude_patterns = ["extra", "files"]
html_extra_path = ["extra"]  # pictures that pages show by HTML of their own
html_theme = "alabaster"
html_theme_options = {"description": "an attention layer as a statistical estimator", "fixed_sidebar": True, "page_width": "1100px"}
html_copy_source = False
html_show_sourcelink = False
pygments_style = "default"
highlight_language = "none"
myst_heading_anchors = 4
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_default_options = {"members": True, "inherited-members": True, "show-inheritance": False}
autodoc_member_order = "bysource"


def plain(app, what, name, obj, options, lines):
    """Docstrings are plain text: what reStructuredText would take for marks is no mark. Those of scikit-learn are not."""
    if any("``" in line or ":class:" in line or ":term:" in line for line in lines):
        lines[:] = [re.sub(":math:`([^`]*)`", r"``\1``", line) for line in lines]  # formulas would be drawn by a script from elsewhere
        return
    code = False
    for i, line in enumerate(lines):
        code = (code or line.lstrip().startswith(">>>")) and line.strip() != ""
        if code or re.match(r"\s*-{3,}$", line):
            continue
        head = re.match(r"(\s*[\w, *]+ : )(.*)$", line)
        before, rest = head.groups() if head else ("", line)
        rest = re.sub(r"`([^`]+)`", lambda found: f"\x00{found[1]}\x01", rest)
        pieces = re.split(r"(\x00[^\x01]*\x01)", rest)
        pieces = [piece if piece.startswith("\x00") else re.sub(r"([|*\\]|(?<=\w)_(?!\w))", r"\\\1", piece) for piece in pieces]
        lines[i] = before + "".join(pieces).replace("\x00", "``").replace("\x01", "``")


def setup(app):
    app.connect("autodoc-process-docstring", plain, priority=100)
