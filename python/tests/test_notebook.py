"""What notebooks show of results, and summaries: every number, and nothing that could be markup."""

import re
from html.parser import HTMLParser

import finetti


class Reader(HTMLParser):
    """Tags open and close in order; the texts of cells."""

    def __init__(self, html):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td", "p")
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "td":
            self.cells[-1] += data


def test_result():
    result = finetti.run("risk", L=5, show="risk,bayes", samples=1000)
    cells = Reader(result._repr_html_()).cells
    for name, value in result.items():
        assert cells[cells.index(name) + 1] == f"{value:.6g}"
    assert "closed form" in cells
    text = result.summary()
    assert text.startswith(repr(result)) and re.search(r"^settings: .*\bL = 5\b", text, re.M) and "gamma" not in text


def test_sweep():
    result = finetti.run("risk", lam=[0.1, 0.2])
    cells = Reader(result._repr_html_()).cells
    assert any(" to " in cell for cell in cells) and re.search(r"lam = 0.1 to 0.2", result.summary())


def test_training():
    runs = finetti.train(runs=4, steps=10)
    cells = Reader(runs._repr_html_()).cells
    assert cells[:2] == ["unconverged", "4"]


def test_study():
    result = finetti.study({"study": "tour", "title": "<b>tour", "runs": [{"command": "risk", "axes": {"lam": [0.1, 0.2]}}],
                            "claims": [{"id": "low", "statement": "It is <low>.", "take": "risk", "reduce": "max",
                                        "expect": {"at_most": -1}}]})
    html = result._repr_html_()
    assert "It is <low>." in Reader(html).cells and "<b>" not in html
    assert re.search(r"^fails: It is <low>. Measured [0-9.]+, expected at most -1$", result.summary(), re.M)
