"""Builds the wheel: the package, the extension module over the public headers, and the shared library beside it.

`make wheel` calls this on a copy of the folder inside the build tree; see binding.py for the two variables that say
where headers and library are.
"""

import os
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_ext import build_ext

import binding


def version():
    with open(os.path.join(binding.INCLUDE, "finetti", "base.h")) as file:
        numbers = re.findall(r"#define FIN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
    return ".".join(numbers)


class with_library(build_ext):
    """The shared library goes beside the module, under the name that the module looks for."""

    def run(self):
        super().run()
        source = os.path.realpath(os.path.join(binding.LIBRARY, "libfinetti.so"))
        name = f"libfinetti.so.{version().split('.')[0]}"
        target = os.path.join(os.path.dirname(self.get_ext_fullpath("finetti._finetti")), name)
        if not self.dry_run:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(source, target)
            subprocess.run(["strip", "--strip-unneeded", target], check=False)


setup(version=version(), packages=["finetti"], package_data={"finetti": ["py.typed", "*.pyi"]},
      cffi_modules=["binding.py:ffi"], cmdclass={"build_ext": with_library},
      options={"bdist_wheel": {"py_limited_api": "cp39"}}, zip_safe=False)
