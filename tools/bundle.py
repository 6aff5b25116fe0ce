#!/usr/bin/env python3
"""Makes a wheel or a tarball that needs nothing but the C library of the system it runs on.

  bundle.py wheel PLAIN.whl TOOL OUT    the wheel with the libraries it needs and the command line tool in it
  bundle.py tar INSTALLED OUT           an installed tree (bin/, lib/, share/) with the libraries it needs, as a tarball

Libraries are copied, under names with a hash of their content, so that they never meet others of the same name in one
process; run paths are relative. What stays outside is the C library and the run-time of the compiler, which every Linux
has. The name of the result says which C library is the oldest that will do. patchelf does the work on the files.
"""

import base64
import csv
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

OUTSIDE = re.compile(r"(lib(c|m|pthread|dl|rt|util|resolv|gcc_s)|ld-linux[-\w]*)\.so\.\d+$")


def output_of(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return not os.path.islink(path) and file.read(4) == b"\x7fELF"


def elf_files(top):
    return sorted(path for folder, _, names in os.walk(top) for name in names if is_elf(path := os.path.join(folder, name)))


def needed(path):
    return output_of("patchelf", "--print-needed", path).split()


def places(path):
    """Where the loader of this machine finds what a file needs, and what that needs: name -> path."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", path), re.M))


def copyright_of(path):
    """The text of the licence of a library, as Debian keeps it; None elsewhere."""
    if shutil.which("dpkg-query"):
        for name in {path, os.path.realpath(path), os.path.realpath(path).replace("/usr/lib", "/lib", 1)}:
            done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
            text = f"/usr/share/doc/{done.stdout.split(':')[0]}/copyright"
            if done.returncode == 0 and os.path.exists(text):
                return text
    return None


def bundle(top, folder, licences):
    """Copies into `folder` (below top) what the files below top need; -> the C library that is needed, (2, x)."""
    files, kept = elf_files(top), {}  # kept: name of a library -> its name here
    inside = {os.path.basename(path): path for path in files}
    places_of = {}
    for path in files:
        places_of.update(places(path))
    queue = list(files)
    while queue:
        for name in needed(queue.pop()):
            if OUTSIDE.match(name) or name in inside or name in kept:
                continue
            if name not in places_of:
                sys.exit(f"bundle.py: {name} was not found on this machine")
            with open(places_of[name], "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()[:8]
            stem, _, rest = name.partition(".so")
            kept[name] = f"{stem}-{digest}.so{rest}"
            os.makedirs(folder, exist_ok=True)
            copy = os.path.join(folder, kept[name])
            shutil.copyfile(places_of[name], copy)
            os.chmod(copy, 0o755)
            places_of.update(places(places_of[name]))
            queue.append(copy)
            text = copyright_of(places_of[name])
            if text:
                os.makedirs(licences, exist_ok=True)
                shutil.copyfile(text, os.path.join(licences, stem + ".txt"))
    for path in elf_files(top):
        here = os.path.dirname(path)
        names = needed(path)
        edits = [("--replace-needed", name, kept[name]) for name in names if name in kept]
        ways = {os.path.relpath(folder, here)} if edits else set()
        ways |= {os.path.relpath(os.path.dirname(inside[name]), here) for name in names if name in inside}
        if os.path.basename(path) in kept.values():
            edits.append(("--set-soname", os.path.basename(path)))
        if ways:
            run_path = ":".join("$ORIGIN" if way == "." else f"$ORIGIN/{way}" for way in sorted(ways))
            edits.append(("--force-rpath", "--set-rpath", run_path))
        for edit in edits:  # one by one: several at once break some files
            subprocess.run(["patchelf", *edit, path], check=True)
    return check(top)


def check(top):
    """Everything that a file below top needs is below top or stays outside on purpose."""
    newest = (2, 0)
    for path in elf_files(top):
        for name, place in places(path).items():
            if not OUTSIDE.match(name) and not os.path.realpath(place).startswith(os.path.realpath(top) + os.sep):
                sys.exit(f"bundle.py: {os.path.relpath(path, top)} would load {place}")
        if "not found" in output_of("ldd", path):
            sys.exit(f"bundle.py: {os.path.relpath(path, top)} needs what is not found:\n{output_of('ldd', path)}")
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("readelf", "-V", path)):
            newest = max(newest, (int(major), int(minor)))
    return newest


def write_record(top, info):
    """RECORD: name, checksum and size of every file."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for folder, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, top)
            if relative == f"{info}/RECORD":
                continue
            with open(path, "rb") as file:
                data = file.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow([relative, f"sha256={digest}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    with open(os.path.join(top, info, "RECORD"), "w") as file:
        file.write(text.getvalue())


def wheel(plain, tool, out):
    with tempfile.TemporaryDirectory() as top:
        with zipfile.ZipFile(plain) as archive:
            archive.extractall(top)
        info = next(name for name in os.listdir(top) if name.endswith(".dist-info"))
        os.makedirs(os.path.join(top, "finetti", "bin"))
        inside = shutil.copy(tool, os.path.join(top, "finetti", "bin", "finetti"))
        subprocess.run(["strip", inside], check=True)
        with open(os.path.join(top, info, "entry_points.txt"), "w") as file:
            file.write("[console_scripts]\nfinetti = finetti.__main__:main\n")
        for path in elf_files(top):
            os.chmod(path, 0o755)
        libc = bundle(top, os.path.join(top, "finetti.libs"), os.path.join(top, info, "licenses"))
        tag = f"manylinux_{libc[0]}_{libc[1]}_{platform.machine()}"
        with open(os.path.join(top, info, "WHEEL")) as file:
            text = file.read()
        with open(os.path.join(top, info, "WHEEL"), "w") as file:
            file.write(re.sub(r"^(Tag: \w+-\w+)-\w+$", rf"\1-{tag}", text, flags=re.M))
        write_record(top, info)
        os.makedirs(out, exist_ok=True)
        target = os.path.join(out, re.sub(r"-[^-]+\.whl$", f"-{tag}.whl", os.path.basename(plain)))
        for name in os.listdir(out):
            if name.endswith(".whl"):
                os.remove(os.path.join(out, name))
        with zipfile.ZipFile(target + ".part", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for folder, folders, names in os.walk(top):
                folders.sort()
                for name in sorted(names):
                    path = os.path.join(folder, name)
                    entry = zipfile.ZipInfo(os.path.relpath(path, top), (2020, 1, 1, 0, 0, 0))
                    entry.external_attr = (0o100755 if is_elf(path) else 0o100644) << 16
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    with open(path, "rb") as file:
                        archive.writestr(entry, file.read())
        os.replace(target + ".part", target)
    return target


def owned_by_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def tar(installed, out):
    with tempfile.TemporaryDirectory() as above:
        top = os.path.join(above, "finetti")
        shutil.copytree(installed, top, symlinks=True)
        for path in elf_files(top):
            subprocess.run(["strip", "--strip-unneeded", path], check=True)
        libc = bundle(top, os.path.join(top, "lib", "finetti"), os.path.join(top, "share", "doc", "finetti", "licenses"))
        os.makedirs(out, exist_ok=True)
        version = output_of(os.path.join(top, "bin", "finetti"), "--version").split()[1]
        name = f"finetti-{version}-linux-{platform.machine()}-glibc{libc[0]}.{libc[1]}"
        target = os.path.join(out, name + ".tar.gz")
        with tarfile.open(target + ".part", "w:gz", compresslevel=6) as archive:
            archive.add(top, name, filter=owned_by_root)
        os.replace(target + ".part", target)
    return target


def main(words):
    if len(words) == 4 and words[0] == "wheel":
        target = wheel(*words[1:])
    elif len(words) == 3 and words[0] == "tar":
        target = tar(*words[1:])
    else:
        sys.exit(__doc__)
    print(f"{target}  {os.path.getsize(target) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
