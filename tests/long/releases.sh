#!/usr/bin/env bash
# The wheel and the tarball in bare systems of two Debian releases, with Python, NumPy, cffi and pip and nothing else: the wheel
# installs, README's Python prints what README shows, all that is bundled finds what it needs in there or in the C library,
# and the tool of the tarball runs. Guarded at every change by all_install.
. "$(dirname "$0")/../cli/common.bash"
! grep -q '^FINETTI_SANITIZE:[A-Z]*=.' "$BUILD/CMakeCache.txt" || skip "a build with sanitizers needs their run-time"
command -v patchelf >/dev/null || skip "no patchelf"
command -v debootstrap >/dev/null || skip "no debootstrap"
unshare --mount true 2>/dev/null && chroot / true 2>/dev/null || skip "only root may change the root"
mirror=http://deb.debian.org/debian
wget -q --spider -T 20 -t 1 "$mirror/dists/stable/Release" || skip "$mirror does not answer"

python=$(sed -n 's/^FINETTI_PYTHON:[A-Z]*=//p' "$BUILD/CMakeCache.txt")
"$python" "$SRC/tools/bundle.py" wheel "$BUILD"/python/finetti-*.whl "$FINETTI" dist
cmake --install "$BUILD" --component tool --prefix "$PWD/tree" >/dev/null
"$python" "$SRC/tools/bundle.py" tar tree dist
"$FINETTI" risk --form softmax --samples 1000 --json >expected.json
# README: the block of Python, and the block of text after it.
sed -n '/^```python$/,/^```$/p' "$SRC/README.md" | grep -v '^```' >tour.py
sed -n '/^```python$/,$p' "$SRC/README.md" | sed -n '/^```text$/,/^```$/p' | sed '/^```$/q' | grep -v '^```' >tour.txt
[ -s tour.txt ] || fail "README has no output of its Python"

# Run in the new root, where these files are below /given.
cat >inside.sh <<'I'
set -eu
cd /given
pip install --quiet --no-index --break-system-packages --root-user-action ignore dist/*.whl 2>pip.err ||
    pip install --quiet --no-index --root-user-action ignore dist/*.whl
! python3 -c 'import sklearn' 2>/dev/null || exit 3
python3 tour.py >tour.out
diff tour.txt tour.out
finetti risk --form softmax --samples 1000 --json | cmp expected.json
mkdir unpacked
tar -xzf dist/finetti-*.tar.gz -C unpacked --strip-components 1
unpacked/bin/finetti risk --form softmax --samples 1000 --json | cmp expected.json
unpacked/bin/finetti simulate --n 60 --d 4 --L 4 --sign --out train.csv
unpacked/bin/finetti fit train.csv --bag sample --label y --features 'x*' --model mixture --cv none --out model.fin >fit.txt
finetti locate model.fin train.csv --blind --top 1 --extras relevant >locate.txt
# What ldd finds: beside the file, or of the C library and the compiler's run-time.
outside='(lib(c|m|pthread|dl|rt|util|resolv|gcc_s)|ld-linux[-a-z0-9_]*)\.so\.[0-9]+'
place=$(python3 -c 'import finetti, os; print(os.path.dirname(os.path.dirname(finetti.__file__)))')
count=0
for file in $(find "$place"/finetti "$place"/finetti.libs unpacked -type f); do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    count=$((count + 1))
    ldd "$file" >needs
    if grep 'not found' needs || grep -vE "linux-vdso|/finetti(\.libs)?/|/given/unpacked/|^	(/[^ ]*/)?$outside( |\$)" needs; then
        echo "$file needs what is outside" >&2
        exit 1
    fi
done
[ "$count" -ge 10 ]
echo "$(. /etc/os-release && echo "$PRETTY_NAME"): $(python3 --version), NumPy $(python3 -c 'import numpy; print(numpy.__version__)'), $count files with all they need"
I

for release in bookworm trixie; do
    root=$work/$release
    debootstrap --variant=minbase "$release" "$root" "$mirror" >debootstrap.log 2>&1 || fail "debootstrap $release: $(tail -n 3 debootstrap.log)"
    chroot "$root" apt-get -qq install -y --no-install-recommends python3-numpy python3-cffi python3-pip >apt.log 2>&1 ||
        fail "$release has no Python: $(tail -n 3 apt.log)"
    mkdir "$root/given"
    cp -r dist inside.sh tour.py tour.txt expected.json "$root/given"
    unshare --mount bash -c 'mount --bind /proc "$0/proc" && exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$0" bash /given/inside.sh' "$root" ||
        fail "Debian $release"
done
