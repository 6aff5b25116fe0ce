#!/bin/sh
# Finds what the build needs and, on Debian and its relatives, installs what is missing.
#
#   tools/setup.sh [build] [check] [check-all] [wheel] [deb] [bench] [web] [clang]      (no word: build)
#
# When nothing is missing it prints nothing and takes a few milliseconds. Elsewhere than on Debian
# it only looks, and stops with the list of what it did not find.
# FINETTI_SETUP=no skips it altogether.
set -eu

[ "${FINETTI_SETUP:-yes}" = no ] && exit 0

have() { command -v "$1" >/dev/null 2>&1; }

# Debian gives the run-time libraries of clang a version in their names.
clang_major() {
    if have clang; then
        clang -dumpversion | cut -d. -f1
    else
        major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
        echo "${major:-14}"
    fi
}

# One line per need: the Debian package, how to look for it where dpkg does not know it, and what
# a person elsewhere should look for.
build='
gcc cmd:gcc the C compiler gcc
libc6-dev header:stdio.h the headers of the C library
cmake cmd:cmake CMake 3.25 or later
make cmd:make GNU make
pkg-config cmd:pkg-config pkg-config
libopenblas-dev pc:openblas OpenBLAS
liblapacke-dev pc:lapacke LAPACKE, the C interface of LAPACK
libsleef-dev pc:sleef SLEEF, vector mathematics
librandom123-dev header:Random123/philox.h Random123, headers only
libjansson-dev pc:jansson jansson, JSON
libzip-dev pc:libzip libzip
zlib1g-dev pc:zlib zlib
libsqlite3-dev pc:sqlite3 SQLite 3.35 or later
libyaml-dev pc:yaml-0.1 libyaml
libxxhash-dev pc:libxxhash xxHash
libhdf5-dev none HDF5, optional
'
wheel='
python3 cmd:python3 Python 3.9 or later
python3-dev cmd:python3-config the header Python.h
python3-cffi module:cffi cffi
python3-setuptools module:setuptools setuptools
python3-wheel module:wheel wheel, the format of Python packages
python3-numpy module:numpy NumPy
python3-sklearn module:sklearn scikit-learn
patchelf cmd:patchelf patchelf
binutils cmd:readelf binutils
'
deb='
debhelper cmd:dh debhelper
dh-python cmd:dh_python3 dh-python
lintian cmd:lintian lintian
'
check="$wheel
libcmocka-dev pc:cmocka cmocka, unit tests
python3-pip module:pip pip 22.3 or later
python3-pytest module:pytest pytest
python3-hypothesis module:hypothesis hypothesis
python3-pandas module:pandas pandas
python3-h5py none h5py, optional
"
bench="$wheel
python3-pip module:pip pip 22.3 or later
python3-scipy module:scipy SciPy
python3-torch module:torch PyTorch
"

# The page to play with: clang for WebAssembly.
web() {
    echo "
clang cmd:clang the C compiler clang
lld cmd:wasm-ld wasm-ld, the linker of LLVM for WebAssembly
wasi-libc header:/usr/include/wasm32-wasi/stdlib.h the C library for WebAssembly
libclang-rt-$(clang_major)-dev-wasm32 none the run-time of clang for WebAssembly
python3 cmd:python3 Python 3.9 or later
"
}

wanted=$build
for group in "$@"; do
    case $group in
    build) ;;
    check) wanted="$wanted$check" ;;
    wheel) wanted="$wanted$wheel" ;;
    deb) wanted="$wanted$deb" ;;
    bench) wanted="$wanted$bench" ;;
    web) wanted="$wanted$(web)" ;;
    check-all | clang)
        major=$(clang_major)
        wanted="$wanted
clang cmd:clang the C compiler clang
libclang-rt-$major-dev none the sanitizer run-time of clang
libomp-$major-dev none the OpenMP run-time of clang
"
        if [ "$group" = check-all ]; then
            wanted="$wanted$check$(web)
g++ cmd:g++ the C++ compiler g++
valgrind cmd:valgrind valgrind
man-db cmd:man man
locales none locales with a decimal comma
codespell cmd:codespell codespell
wamerican none a list of American words
wbritish none a list of British words
python3-sphinx module:sphinx Sphinx
python3-myst-parser module:myst_parser MyST, Markdown for Sphinx
python3-yaml module:yaml PyYAML
libopenmpi-dev pc:ompi-c Open MPI
openmpi-bin cmd:mpirun mpirun
sqlite3 cmd:sqlite3 the SQLite shell
debootstrap cmd:debootstrap debootstrap
librsvg2-bin cmd:rsvg-convert rsvg-convert
chromium cmd:chromium Chromium
nodejs cmd:node Node.js
npm cmd:npm npm
python3-tqdm module:tqdm tqdm
python3-matplotlib module:matplotlib matplotlib
mypy module:mypy mypy
python3-torch module:torch PyTorch
"
            # Kernels for AVX-512 are run by the tests where the CPU has it, and in an emulator where it has not.
            if [ "$(uname -m)" = x86_64 ] && ! grep -q avx512dq /proc/cpuinfo; then
                wanted="$wanted
bochs cmd:bochs Bochs, which emulates a CPU
bochs-term none the text display of Bochs
bochsbios none the BIOS of Bochs
vgabios none a VGA BIOS
grub-pc-bin none GRUB for a PC
grub-common cmd:grub-mkrescue grub-mkrescue
xorriso cmd:xorriso xorriso
mtools cmd:mformat mtools
cpio cmd:cpio cpio
"
            fi
        fi
        ;;
    *)
        echo "setup.sh: no group '$group' (there are: build, check, check-all, wheel, deb, bench, web, clang)" >&2
        exit 2
        ;;
    esac
done

# True if the need is met in some other way than by a Debian package.
found() {
    case $1 in
    cmd:*) have "${1#cmd:}" ;;
    pc:*) have pkg-config && pkg-config --exists "${1#pc:}" ;;
    header:*) have "${CC:-gcc}" && echo "#include <${1#header:}>" | "${CC:-gcc}" -E -x c - >/dev/null 2>&1 ;;
    module:*) have python3 && python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('${1#module:}'))" ;;
    none) [ "$debian" = no ] ;; # no way to look: CMake will say
    esac
}

debian=no
installed=
if have apt-get && have dpkg-query; then
    debian=yes
    names=$(echo "$wanted" | cut -d' ' -f1)
    # shellcheck disable=SC2086 # one argument per name
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $names 2>/dev/null |
        sed -n 's/^installed //p' | tr '\n' ' ' || true)
fi

packages=
texts=
while read -r package probe text; do
    [ -n "$package" ] || continue
    case " $installed" in *" $package "*) continue ;; esac
    # With Debian's own python3, a module from elsewhere does not count.
    case $debian$probe in yesmodule:*) ;; *) found "$probe" && continue ;; esac
    packages="$packages $package"
    texts="$texts
  $text  (Debian: $package)"
done <<END
$wanted
END

[ -n "$packages" ] || exit 0

if [ "$debian" = no ]; then
    echo "setup.sh: not found on this system:$texts" >&2
    echo "setup.sh: install these (libraries with their headers and pkg-config files) and run make again" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo; then
        echo "setup.sh: missing packages, and neither root nor sudo to install them. As root:" >&2
        echo "  apt-get install --no-install-recommends$packages" >&2
        exit 1
    fi
    as_root=sudo
fi

echo "setup.sh: installing$packages"
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }
apt update
# shellcheck disable=SC2086
apt install -y --no-install-recommends $packages
