#!/usr/bin/env bash
# Takes docs/images/report.png, the report of `finetti reproduce` as a browser shows it. Needs Chromium; run from the project's root
# after `make`.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$finetti" reproduce --out "$work" >/dev/null
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,900 --virtual-time-budget=3000 \
    --screenshot=docs/images/report.png "file://$work/index.html" 2>/dev/null
