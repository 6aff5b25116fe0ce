#!/usr/bin/env bash
# The page to play with: its WebAssembly modules beside the native library on a thousand random settings under Node
# (tests/browser/module.mjs), and every panel in headless Chromium by mouse, touch and keyboard (tests/browser/explore.mjs).
# Pictures are left in BUILD/browser. Needs node, npm (for playwright-core, which goes into BUILD/browser) and Debian's
# chromium, and a build with the page (make web).
. "$SRC/tests/cli/common.bash"
[ -e "$BUILD/web/index.html" ] || skip "the page was not built"
for tool in node npm chromium; do
    command -v $tool >/dev/null || skip "no $tool"
done
playwright
bash "$SRC/tools/update_uplot.sh" --check || fail "third_party/uplot is not what npm has"

# Node.js 20 has the vector instructions behind a flag, which later ones do not know.
flag=--experimental-wasm-relaxed-simd
node $flag -e 0 2>/dev/null || flag=
node $flag "$SRC/tests/browser/module.mjs" "$SRC" "$BUILD/tests/web_native" "$BUILD/web/scalar.wasm" "$BUILD/web/simd.wasm"
accepts explore --out page.html
node "$SRC/tests/browser/explore.mjs" page.html "$FINETTI" "$browser" "$BUILD/python/venv/bin/python"
