#!/usr/bin/env bash
# The wheel of `make wheel` and the tarball of `make dist` need nothing but the C library: what they have in them finds
# all it needs in there (tools/bundle.py looks), and both run, the tool even where there is nothing else.
set -eu
. "$SRC/tests/cli/common.bash"
! grep -q '^FINETTI_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt" || skip "a build with sanitizers needs their run-time"
command -v patchelf >/dev/null || skip "no patchelf"
"$FINETTI" risk --form softmax --samples 1000 --json >expected.json

# ---- the wheel
system=$(sed -n 's/^FINETTI_PYTHON:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
"$system" "$SRC/tools/bundle.py" wheel "$BUILD"/python/finetti-*.whl "$FINETTI" wheel
name=$(ls wheel)
[[ $name == finetti-*-cp39-abi3-manylinux_2_*_$(uname -m).whl ]] || fail "the wheel is called $name"
[ "$(stat -c %s "wheel/$name")" -lt 25000000 ] || fail "the wheel is larger than 25 MB"
"$system" -m venv --system-site-packages --without-pip env
"$system" -m pip --python env/bin/python --quiet --disable-pip-version-check install --no-index --no-deps "wheel/$name"
env/bin/finetti risk --form softmax --samples 1000 --json >wheel.json
cmp expected.json wheel.json || fail "the tool of the wheel computes something else"
env/bin/python -m finetti --version | grep -q "^finetti " || fail "python -m finetti"
# What README shows of Python, which asks for no scikit-learn.
sed -n '/^```python$/,/^```$/p' "$SRC/README.md" | grep -v '^```' >tour.py
grep -q 'import finetti' tour.py || fail "README has no Python"
cat >>tour.py <<'P'
import sys
context = finetti.Context(X[0].astype(float), y[:8].astype(float))
print(context.predict(X[0][:1].astype(float)))
assert "sklearn" not in sys.modules
P
env -u LD_LIBRARY_PATH env/bin/python -P tour.py || fail "the package of the wheel"
# Every file of the package says who made what is in it.
for library in env/lib/python3*/site-packages/finetti.libs/*; do
    stem=$(basename "$library")
    ls env/lib/python3*/site-packages/finetti-*.dist-info/licenses/"${stem%-*}.txt" >/dev/null ||
        ! command -v dpkg-query >/dev/null || fail "no licence of $stem"
done

# ---- the tarball
cmake --install "$BUILD" --component tool --prefix "$PWD/tree" >/dev/null
"$system" "$SRC/tools/bundle.py" tar tree dist
mkdir root
tar -xzf dist/finetti-*.tar.gz -C root --strip-components 1
root/bin/finetti risk --form softmax --samples 1000 --json >tar.json
cmp expected.json tar.json || fail "the tool of the tarball computes something else"
# In a root with the C library alone.
if unshare --mount true 2>/dev/null && chroot / true 2>/dev/null; then
    ldd "$FINETTI" | grep -oE '/[^ ]+/(ld-linux[^ /]*|lib(c|m|gcc_s|pthread|dl|rt))\.so\.[0-9]+' | sort -u |
        while read -r file; do
            mkdir -p "root$(dirname "$file")"
            cp -L "$file" "root$file"
        done
    mkdir root/proc # where the loader asks which program it loads
    unshare --mount bash -c 'mount --bind /proc root/proc && exec chroot root /bin/finetti risk --form softmax --samples 1000 --json' \
        >alone.json || fail "the tool needs more than the C library"
    cmp expected.json alone.json || fail "the tool computes something else alone"
else
    echo "SKIPPED: a root of its own: this user may not change it"
fi
