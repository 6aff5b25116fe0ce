"""Builds the wheel: the package, the extension module over the public headers, and the shared library beside it.

`make wheel` calls this on a copy of the folder inside the build tree; see binding.py for the two variables that say
where headers and library are.
"""

import os
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # pip does not
import binding  # noqa: E402


def version():
    with open(os.path.join(binding.INCLUDE, "finetti", "base.h")) as file:
        numbers = re.findall(r"#define FIN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
    return ".".join(numbers)


class with_library(build_ext):
    """The shared library goes beside the module, under the name that the module looks for; then come the stubs."""

    def run(self):
        for extension in self.extensions:  # a value that the compiler works out may change without a new declaration
            extension.depends = [os.path.join(folder, name) for folder, _, names in os.walk(binding.INCLUDE)
                                 for name in names]
        super().run()
        link = os.path.join(binding.LIBRARY, "libfinetti.so")  # -> libfinetti.so.0.1 -> libfinetti.so.0.1.0
        folder = os.path.dirname(self.get_ext_fullpath("finetti._finetti"))
        target = os.path.join(folder, os.path.basename(os.readlink(link)))
        shutil.copyfile(link, target)
        subprocess.run(["strip", "--strip-unneeded", target], check=False)
        if not self.inplace and os.path.exists("stubs.py"):  # from the package as it was just built
            subprocess.run([sys.executable, "-B", "stubs.py", os.path.dirname(folder), folder], check=True)


setup(version=version(), packages=["finetti"], package_data={"finetti": ["py.typed", "*.pyi"]},
      cffi_modules=["binding.py:ffi"], cmdclass={"build_ext": with_library},
      options={"bdist_wheel": {"py_limited_api": "cp39"}}, zip_safe=False)
