#!/usr/bin/env bash
# The AVX-512 kernels on a machine that has no AVX-512: the kernel tests in Bochs, an emulated CPU that has.
#
# A Linux kernel boots in the emulator with the tests of the kernels as its only programs, and writes what they print
# to a serial line. Takes a minute or two. set-up installs the emulator where the CPU has no AVX-512; the kernel image is that of
# the system, or else Debian's, unpacked below BUILD and not installed. Where the CPU has AVX-512 this is skipped:
# `make check` runs those kernels. FINETTI_EMULATE=1 runs it all the same.
set -euo pipefail
. "$SRC/tests/cli/common.bash"
[ "${FINETTI_EMULATE:-0}" = 1 ] || ! grep -q avx512dq /proc/cpuinfo || skip "this CPU has AVX-512, the kernel tests use it"
[ "$(uname -m)" = x86_64 ] || skip "not an x86-64 machine"
for tool in bochs grub-mkrescue xorriso mformat cpio script; do
    command -v $tool >/dev/null || skip "no $tool"
done
image=$(ls /boot/vmlinuz-* "$BUILD"/emulator/boot/vmlinuz-* 2>/dev/null | tail -n 1 || true)
if [ ! -r "$image" ]; then
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: //p' | head -n 1)
    mkdir -p "$BUILD/emulator"
    (cd "$BUILD/emulator" && apt-get -q download "$package" >download.log 2>&1 && dpkg-deb -x "$package"_*.deb .) ||
        skip "no kernel image: neither in /boot nor from apt-get download"
    image=$(ls "$BUILD"/emulator/boot/vmlinuz-*)
fi
bios=/usr/share/bochs

trap 'kill ${emulator:-} 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/root/dev" "$work/root/proc" "$work/root/tmp" "$work/iso/boot/grub"
mknod "$work/root/dev/console" c 5 1 2>/dev/null || skip "may not make a device node"
mknod "$work/root/dev/null" c 1 3

# The first program: runs the tests one after the other and switches the machine off.
cat >"$work/init.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    char *tests[] = {TESTS}, *environment[] = {"LD_BIND_NOW=1", "FINETTI_THREADS=1", "FINETTI_TEST_SIZE=small", NULL};
    mount("proc", "/proc", "proc", 0, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            char *arguments[] = {"/test_kernel", tests[i], NULL};
            execve("/test_kernel", arguments, environment);
            _exit(127);
        }
        waitpid(child, &status, 0);
        printf("RESULT %s %d\n", tests[i], status);
        fflush(stdout);
    }
    puts("FINISHED");
    fflush(stdout);
    sleep(1);
    reboot(RB_POWER_OFF);
}
C
test=$BUILD/tests/test_kernel # one program for all files; a file's tests are run by its name
[ -x "$test" ] || fail "no $test"
cp "$test" "$work/root/"
ldd "$test" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$work/root$(dirname "$library")"
    cp -L "$library" "$work/root$library"
done
names=
for source in "$SRC"/tests/test_kernel_*.c; do
    names="$names\"$(basename "$source" .c)\","
done
cc -static -O1 -D_GNU_SOURCE -DTESTS="$names" "$work/init.c" -o "$work/root/init"
(cd "$work/root" && find . | cpio -o -H newc 2>/dev/null | gzip >"$work/iso/boot/initrd.gz")
cp "$image" "$work/iso/boot/vmlinuz"
# The emulated CPU's compacted XSAVE sizes do not add up for Linux, which would then switch AVX off: plain XSAVE.
cat >"$work/iso/boot/grub/grub.cfg" <<'G'
set timeout=0
menuentry test { linux /boot/vmlinuz console=ttyS0 quiet mitigations=off tsc=reliable panic=1 noxsaves clearcpuid=xsavec,xsaves
 initrd /boot/initrd.gz }
G
grub-mkrescue -o "$work/test.iso" "$work/iso" >"$work/grub.log" 2>&1
cat >"$work/bochsrc" <<B
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
memory: guest=1024, host=1024
romimage: file=$bios/BIOS-bochs-latest
vgaromimage: file=$bios/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$work/test.iso, status=inserted
boot: cdrom
log: $work/bochs.log
com1: enabled=1, mode=file, dev=$work/serial
display_library: term
clock: sync=none
B
echo c >"$work/go"
TERM=xterm timeout 860 script -qc "bochs -q -f '$work/bochsrc' -rc '$work/go'" /dev/null >/dev/null 2>&1 </dev/null &
emulator=$!
for ((second = 0; second < 840; second++)); do
    sleep 1
    grep -q "FINISHED\|panic" "$work/serial" 2>/dev/null && break
done
tr -d '\r' <"$work/serial" | grep -E "OK \]|FAILED|RESULT|avx512|panic" || true
# The emulator's x87 unit is not exact to the last bit, so what is compared with long double functions is left out here.
failed=$(tr -d '\r' <"$work/serial" | grep -E '^\[  FAILED  \] [a-z0-9_]+$' | grep -v '_long_double$' || true)
crashed=$(tr -d '\r' <"$work/serial" | awk '/^RESULT/ && ($3 % 256 != 0 || $3 == 127 * 256)') # a signal, or not started
[ -z "$failed$crashed" ] || fail "$failed $crashed"
grep -q FINISHED "$work/serial" || fail "the emulator did not get to the end in time; what is above did pass"
grep -q "avx512" "$work/serial" || fail "no AVX-512 in the emulator"
echo "the AVX-512 kernels agree with the reference"
