#!/usr/bin/env bash
# The encoder against torch: answers and all gradients, for every setting, with weights drawn here and
# with weights drawn there, exchanged as safetensors.
. "$SRC/tests/cli/common.bash"
"$PYTHON" -c 'import numpy, torch' 2>/dev/null || skip "no torch (Debian: python3-torch)"
program=$BUILD/tests/test_encoder
[ -x "$program" ] || skip "no $program (make check builds it, where there is cmocka)"
export OMP_NUM_THREADS=1
"$PYTHON" "$SRC/tests/data/encoder_torch.py" check "$program"
