#!/usr/bin/env bash
# Builds for arm64 and runs the lean tests that need no Python under qemu-user: `make check-arm64`.
#
#   tools/arm64.sh BUILD [REGEX]      (the tests whose names match; default: unit tests, examples and what of the tool is below)
#
# tests/arm64.txt has the tests that are left out there, as they are long, and what goes through the same code.
# The libraries come from Debian's packages for arm64 (by this machine's own sources), unpacked below BUILD/sysroot: nothing is installed but the cross
# compiler and the emulator. Not part of .ci/run, as the emulator is slow.
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
build=$(mkdir -p "$1" && cd "$1" && pwd)
tests=${2:-'^test_|^example_|^cli_'}
# Scripts of the tool; those of today's list ask nothing of Python but to read what the tool has written.
scripts='curve info landscape plot risk simulate'
root=$build/sysroot

missing=
for need in gcc-aarch64-linux-gnu:aarch64-linux-gnu-gcc qemu-user:qemu-aarch64; do
    command -v "${need#*:}" >/dev/null || missing="$missing ${need%:*}"
done
# shellcheck disable=SC2086
[ -z "$missing" ] || apt-get install -y --no-install-recommends libc6-dev-arm64-cross $missing

if [ ! -e "$root/done" ]; then
    mkdir -p "$build/apt/lists/partial" "$build/apt/cache/archives/partial" "$root"
    : >"$build/apt/status"
    apt() {
        apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$build/apt" -o Dir::State::status="$build/apt/status" \
            -o Dir::Cache="$build/apt/cache" -o APT::Install-Recommends=false -o APT::Sandbox::User=root "$@"
    }
    apt update
    apt -y --download-only install libc6-dev libgcc-12-dev libgomp1 libopenblas-dev liblapacke-dev libsleef-dev librandom123-dev \
        libjansson-dev libzip-dev zlib1g-dev libsqlite3-dev libyaml-dev libxxhash-dev libcmocka-dev
    for package in "$build"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    # What packages would do when they are configured: OpenBLAS is the BLAS and the LAPACK.
    lib=$root/usr/lib/aarch64-linux-gnu
    for file in "$lib"/openblas-pthread/lib{openblas,blas,lapack}.* "$lib"/openblas-pthread/pkgconfig/*.pc; do
        to=$lib${file#"$lib/openblas-pthread"}
        ln -sf "$(realpath -s --relative-to="$(dirname "$to")" "$file")" "${to/-openblas.pc/.pc}"
    done
    # Absolute links lead out of it.
    find "$root" -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
    done
    touch "$root/done"
fi

cat >"$build/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT "$root")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH "$root")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;$root")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,$root/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,$root/lib/aarch64-linux-gnu")
END
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig
cmake -S "$src" -B "$build" -D CMAKE_TOOLCHAIN_FILE="$build/toolchain.cmake" -D FINETTI_MPI=OFF -D FINETTI_PYTHON=/bin/false
cmake --build "$build" -j "${JOBS:-2}" --target finetti_cli examples tests
export QEMU_LD_PREFIX=$root OPENBLAS_NUM_THREADS=1 FINETTI_TEST_SIZE=small FINETTI_EMULATOR="qemu-aarch64;-L;$root"
left=$(sed -n 's/^\(test_[a-z_0-9]*\) | .*/\1/p' "$src/tests/arm64.txt" | paste -sd'|')
code=0
ctest --test-dir "$build" -L lean -R "$tests" -E "^(cli_.*|${left:-none})$" --output-on-failure --no-tests=ignore -j "${JOBS:-2}" || code=1

# The tool, as scripts call it: by its name, in a folder of its own.
mkdir -p "$build/emulated"
printf '#!/bin/sh\nexec "%s" -L "%s" "%s" "$@"\n' "$(command -v qemu-aarch64)" "$root" "$build/finetti" >"$build/emulated/finetti"
chmod +x "$build/emulated/finetti"
for name in $scripts; do
    [[ cli_$name =~ $tests ]] || continue
    if FINETTI=$build/emulated/finetti SRC=$src BUILD=$build PYTHON=${PYTHON:-/usr/bin/python3} bash "$src/tests/cli/$name.sh" >"$build/cli_$name.log" 2>&1; then
        echo "cli_$name passes"
    else
        echo "cli_$name fails: $(tail -n 1 "$build/cli_$name.log")"
        code=1
    fi
done
exit $code
