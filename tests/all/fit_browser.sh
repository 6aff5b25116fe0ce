# The pages of fit --report and finetti explain in headless Chromium (tests/browser/fit.mjs): no errors, no requests, dark, phone, keyboard;
# and the size of a page on 500 bags. Needs node, npm and chromium, as report_browser.sh does.
. "$SRC/tests/cli/common.bash"
for tool in node npm chromium; do
    command -v $tool >/dev/null || skip "no $tool"
done
version=1.65.0 # of playwright-core
browser=$BUILD/browser
mkdir -p "$browser"
if ! grep -qs "\"version\": \"$version\"" "$browser/node_modules/playwright-core/package.json"; then
    npm install --no-save --no-audit --no-fund --prefix "$browser" playwright-core@$version >npm.log 2>&1 ||
        skip "npm cannot install playwright-core: $(tail -n 1 npm.log)"
fi
"$FINETTI" simulate --n 500 --d 6 --L 20 --sign --out bags.csv 2>/dev/null
"$FINETTI" simulate --n 80 --d 4 --L 6 --out numbers.npz 2>/dev/null
accepts fit bags.csv --bag sample --label y --features 'x*' --model mixture:linear --cv 3 --compare mean --out model.fin --report fit.html
accepts explain model.fin bags.csv --report new.html --coords token,relevant
accepts fit numbers.npz --model softmax --cv 3 --compare mean --report numbers.html
# Texts: words are coloured by the probability that they are responsible.
"$PYTHON" "$SRC/tests/cli/text_folder.py" bert
accepts embed bert bert/texts.csv --layer 0 --out words.npz
accepts fit words.npz --label mood --model softmax --cv 3 --compare mean --out words.fin --report texts.html
accepts explain words.fin words.npz --report texts-new.html
[ "$(wc -c <fit.html)" -lt 3000000 ] || fail "the page on 500 bags has $(wc -c <fit.html) bytes"
node "$SRC/tests/browser/fit.mjs" "$browser" fit.html new.html numbers.html texts.html texts-new.html
