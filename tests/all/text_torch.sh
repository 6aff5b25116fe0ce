#!/usr/bin/env bash
# Encoders of text against torch: BERT and DistilBERT of several shapes with random weights, float and half precisions.
. "$SRC/tests/cli/common.bash"
"$PYTHON" -c 'import numpy, torch' 2>/dev/null || skip "no torch (Debian: python3-torch)"
export OMP_NUM_THREADS=1
"$PYTHON" "$SRC/tests/data/text_torch.py" check "$FINETTI"
