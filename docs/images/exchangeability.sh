#!/usr/bin/env bash
# Draws docs/images/exchangeability.png: how fast softmax attention finds the conditional mean, and where its limit is not that of
# kernel ridge attention. Needs rsvg-convert; run from the project's root after `make`.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$finetti" reproduce exchangeability_inference --out "$work" >/dev/null
{
    echo '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="880" height="400">'
    echo '<rect width="880" height="400" fill="white"/>'
    x=0
    for figure in softmax-circle ratio; do
        "$finetti" plot --store "$work/finetti.db" --study exchangeability_inference --figure $figure --out "$work/$figure.png" >/dev/null
        echo "<image x=\"$x\" y=\"8\" width=\"430\" height=\"384\" preserveAspectRatio=\"xMidYMin\"" \
            "xlink:href=\"data:image/png;base64,$(base64 -w0 "$work/$figure.png")\"/>"
        x=450
    done
    echo '</svg>'
} >"$work/both.svg"
rsvg-convert --unlimited --zoom 2 "$work/both.svg" --output docs/images/exchangeability.png
