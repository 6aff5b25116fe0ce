"""Runs the code cells of a notebook, one after the other, as Jupyter does, without Jupyter: notebook.py FILE..."""

import contextlib
import io
import json
import sys
import traceback


def run(path):
    """How many cells ran; an exception says in which one it happened."""
    with open(path, encoding="utf-8") as file:
        book = json.load(file)
    assert book["nbformat"] == 4 and book["metadata"]["language_info"]["name"] == "python"
    names, count, exercises = {"__name__": "__main__"}, 0, 0
    for number, cell in enumerate(book["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            exercises += "**Exercise" in source and "solution" not in source
            continue
        assert not cell["outputs"], f"{path}, cell {number}: outputs are not kept"
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(source, f"{path}, cell {number}", "exec"), names)
        except BaseException:
            traceback.print_exc()
            sys.exit(f"{path}, cell {number}:\n{source}\nprinted\n{printed.getvalue()}")
        count += 1
    print(f"{path}: {count} cells, {exercises} exercises")
    return exercises


if __name__ == "__main__":
    if not all([run(path) >= 3 for path in sys.argv[1:]]):
        sys.exit("a notebook has fewer than three exercises")
