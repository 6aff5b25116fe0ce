#!/usr/bin/env bash
# Draws docs/images/reconstructions_digits.png (half of 16 patches hidden): images as they are, as they were shown, and as a
# pretrained encoder completes them. Needs rsvg-convert and the data beside the project; run from the project's root after
# `make`. About a minute.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
data=${DATA:-../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
draw() {
    "$finetti" pretrain "${@:2}" --readout pooled --batch 64 --rate 4e-3 --beta2 0.98 --decay 0.05 --out "$work/$1.fin" >/dev/null
    "$finetti" probe "$work/$1.fin" --per-class 10 --reconstruct "$work/$1.svg" >/dev/null
    rsvg-convert -w 900 "$work/$1.svg" -o "docs/images/reconstructions_$1.png"
}
draw digits --data "$data/digits8x8.csv" --label digit --patch 2 --steps 2500
