#!/usr/bin/env bash
# Draws docs/images/python_*.png with the scripts of examples/python. Needs the package, matplotlib and Pillow; run from
# the project's root with PYTHON set to an interpreter that has them (musk1.csv: see examples/python/musk.py).
set -euo pipefail
python=${PYTHON:-build/python/venv/bin/python}
for name in phase_portrait posterior_over_locations in_context_regression musk; do
    REPEATS=5 "$python" "examples/python/$name.py" "docs/images/python_$name.png"
    # 256 colours are enough, and half of the bytes.
    "$python" -c 'import sys; from PIL import Image
Image.open(sys.argv[1]).convert("RGB").quantize(256, method=2).save(sys.argv[1], optimize=True)' "docs/images/python_$name.png"
done
