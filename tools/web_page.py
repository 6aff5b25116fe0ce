#!/usr/bin/env python3
"""Makes the page to play with: one HTML file from web/ and the WebAssembly modules.

    web_page.py SOURCE SCALAR.wasm SIMD.wasm OUT.html

Scripts and styles stand inside, allowed by their hashes; the modules are compressed. Nothing is fetched: the policy of the
page forbids it.
"""

import base64
import gzip
import hashlib
import os
import pathlib
import re
import sys

PANEL = (
    '<p class="say" role="status">Starting …</p>\n<div class="stage"><div class="plots"></div><div class="controls"></div></div>\n'
    '<div class="beside"></div>'
)


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def packed(module):
    return base64.b64encode(gzip.compress(pathlib.Path(module).read_bytes(), 9, mtime=0)).decode()


def main(source, scalar, simd, out):
    web, uplot = pathlib.Path(source, "web"), pathlib.Path(source, "third_party/uplot")
    text = {path.name: path.read_text() for path in web.iterdir() if path.is_file()}
    panels = sorted(name for name in text if re.fullmatch(r"panel\d\.js", name))
    code = [text["module.js"], text["page.js"], *(text[name] for name in panels), "start();\n"]
    parts = {
        "UPLOT_CSS": (uplot / "uPlot.min.css").read_text(),
        "CSS": text["style.css"],
        "WORKER": text["module.js"] + text["worker.js"],
        "SCALAR": packed(scalar),
        "SIMD": packed(simd),
        "UPLOT_JS": (uplot / "uPlot.iife.min.js").read_text(),
        "CODE": "".join(code),
        "PANEL": PANEL,
    }
    scripts = " ".join(digest(parts[name]) for name in ("UPLOT_JS", "CODE"))
    styles = " ".join(digest(parts[name]) for name in ("UPLOT_CSS", "CSS"))
    parts["CSP"] = (
        f"default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; style-src {styles}; "
        "worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'"
    )
    for name in ("WORKER", "UPLOT_JS", "CODE"):
        if re.search("</script|<!--", parts[name], re.I):
            sys.exit(f"web_page.py: {name} holds what ends a script")
    page = re.sub(r"@([A-Z_]+)@", lambda m: parts[m[1]], text["page.html"])
    # whole or absent
    pathlib.Path(out + ".part").write_text(page)
    os.replace(out + ".part", out)


main(*sys.argv[1:])
