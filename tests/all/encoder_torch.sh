#!/usr/bin/env bash
# The encoder against torch: answers and all gradients, for every setting, with weights drawn here and
# with weights drawn there, exchanged as safetensors.
set -euo pipefail
: "${SRC:?the source tree}" "${BUILD:?the build tree}" "${PYTHON:?python3}"
"$PYTHON" -c 'import numpy, torch' 2>/dev/null || {
    echo "skipped: no torch (Debian: python3-torch)"
    exit 77
}
program=$BUILD/tests/test_encoder_torch
[ -x "$program" ] || {
    echo "skipped: no $program (make check builds it, where there is cmocka)"
    exit 77
}
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
"$PYTHON" "$SRC/tests/data/encoder_torch.py" check "$program"
