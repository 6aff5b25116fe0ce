#!/usr/bin/env python3
"""How many small faults in the sources the tests find: makes faults, one at a time, and runs the tests.

    tools/mutants.py [-n 60] [--seed 1]     make mutants N=60 SEED=1

A fault changes one place of src/ or cli/: a sign, a constant, a comparison, an index, && and ||, * and /, a
statement left out, two arguments swapped. Comments, strings, directives, declarations, assertions and the words
of error messages are left alone. The same seed and the same sources give the same faults; every module gets some.

Everything happens in a copy of the tree (build-mutants/tree). For each fault:
  - it is built, with warnings as errors; what does not compile does not count, and another is drawn;
  - the object code, without what is for the debugger, is compared with the original's; the same code is the
    same program: that does not count either, and another is drawn;
  - the lean tests of its module are run, test_<module>_... (cli_... for the tool), until one fails;
  - if none does, all lean tests, until one fails.
A test that takes ten times as long as without the fault, and more than a minute, has found it too.

Nothing but the standard library is needed. A change of the tests is judged by the same faults before and after:
--json FILE writes what was done, and --replay FILE does it again, in this tree or in another (--tree).
"""
import argparse
import bisect
import fcntl
import glob
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

# ---- the sources as tokens ---------------------------------------------------------------------

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<char>[uUL]?'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|.)
""", re.X | re.S)

CONTROL = {"if", "for", "while", "switch"}
TYPES = {"char", "short", "int", "long", "float", "double", "void", "signed", "unsigned", "_Bool", "bool", "struct",
         "union", "enum", "const", "static", "typedef", "volatile", "register", "extern", "inline"}
KEYWORDS = CONTROL | TYPES | {"return", "break", "continue", "goto", "do", "else", "case", "default", "sizeof",
                              "_Alignof", "_Static_assert", "_Thread_local"}

# Calls whose arguments are words for a person, or that hold in every program without a fault.
WORDS = re.compile(r"(^|_)(fail|failed|fails|usage|warn|complain|strerror)(_|$)|^cli_(error|note|message)|assert")
# The order of the first two arguments does not matter.
ALIKE = re.compile(r"fma|min|max|add|mul|hypot|swap", re.I)


class Token:
    __slots__ = ("kind", "text", "at", "end", "mate", "skip")

    def __init__(self, kind, text, at):
        self.kind, self.text, self.at, self.end = kind, text, at, at + len(text)
        self.mate = -1     # of a bracket: the token at the other end
        self.skip = False  # nothing here can matter


def tokens_of(text):
    found = [Token(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(text) if m.lastgroup != "space"]
    opened = []
    for i, token in enumerate(found):
        if token.kind != "mark":
            continue
        if token.text in "([{":
            opened.append(i)
        elif token.text in ")]}" and opened:
            j = opened.pop()
            token.mate, found[j].mate = j, i
    return found


def hide(text):
    """Comments and directives as spaces, so that offsets stay."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    plain = re.sub(r"""/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""",
                   lambda m: m.group() if m.group()[0] in "\"'" else blank(m), text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*", blank, plain, flags=re.M | re.S)


class Source:
    """Where faults can be made in one file."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.tokens = tokens_of(hide(text))
        self.faults = {}  # kind -> [(from, to, text instead)]
        self.lines = set()
        t, i = self.tokens, 0
        while i < len(t):
            if t[i].text == "{" and t[i].mate > i:
                if i > 0 and t[i - 1].text == ")":
                    self.body(i, t[i].mate)
                else:
                    self.table(i, t[i].mate)
                i = t[i].mate
            i += 1

    def line_at(self, offset):
        return bisect.bisect_right(self.starts, offset)

    def add(self, kind, at, end, text):
        self.faults.setdefault(kind, []).append((at, end, text))

    # Numbers of a table at file scope.
    def table(self, first, last):
        t, head = self.tokens, first
        while head > 0 and t[head - 1].text not in (";", "}"):
            head -= 1
        if any(t[i].text in ("enum", "struct", "union", "typedef") for i in range(head, first)) or \
           any(t[i].kind in ("string", "char") for i in range(first, last)) or t[first - 1].text != "=":
            return
        for i in range(first, last):
            if t[i].kind == "number":
                self.constant(t[i])
                self.lines.add(self.line_at(t[i].at))

    def body(self, first, last):
        t = self.tokens
        for i in range(first, last):
            if t[i].kind == "name" and t[i + 1].text == "(" and WORDS.search(t[i].text) or t[i].text == "sizeof":
                end = t[i + 1].mate if t[i + 1].text == "(" else i + 1
                for j in range(i, end + 1):
                    t[j].skip = True
        sizes = self.declared_sizes(first, last)
        for i in range(first + 1, last):
            if t[i].skip:
                continue
            self.lines.add(self.line_at(t[i].at))
            self.sign(i)
            self.comparison(i)
            self.logic(i)
            self.product(i)
            if t[i].kind == "number" and i not in sizes and not (t[i - 1].text == "[" and t[i + 1].text == "]"):
                self.constant(t[i])
            if t[i].text == "[" and i not in sizes and t[i].mate > i + 1:
                self.index(i)
            if t[i].kind == "name" and t[i].text not in KEYWORDS and t[i + 1].text == "(":
                self.arguments(i)
        self.statements(first, last)

    def declared_sizes(self, first, last):
        """Brackets in declarations, and what is in them."""
        t, found = self.tokens, set()
        for i in range(first, last):
            if t[i].text != "[":
                continue
            j = i - 1
            while j > first and t[j].text == "]":
                j = t[j].mate - 1
            before = j - 1
            while before > first and t[before].text == "*" and t[before].end == t[before + 1].at:
                before -= 1
            start = j
            while start > first and t[start - 1].text not in (";", "{", "}"):
                start -= 1
            declared = t[start].kind == "name" and self.is_declaration(start)
            direct = t[before].kind == "name" and t[before].text not in ("return", "else", "case", "goto", "sizeof")
            listed = declared and t[before].text == "," and not any(
                t[k].text == "=" for k in range(before, i))
            if t[j].kind == "name" and (direct or listed) or t[j].text in ("{", ","):
                found.update(range(i, t[i].mate + 1))
        return found

    def is_declaration(self, i):
        t = self.tokens
        if t[i].text in TYPES:
            return True
        if t[i].kind != "name" or t[i].text in KEYWORDS:
            return False
        if t[i + 1].kind == "name":
            return True
        j = i + 1
        while t[j].text == "*":
            j += 1
        return j > i + 1 and t[j].kind == "name" and t[j - 1].end == t[j].at and t[i].end < t[i + 1].at

    # In the layout of this tree an operator between two things has a space on both sides, and one before a thing has
    # none after it.
    def is_between(self, i):
        token, t = self.tokens[i], self.text
        return t[token.at - 1] in " \n" and t[token.end] in " \n"

    def sign(self, i):
        token = self.tokens[i]
        other = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}.get(token.text)
        if not other:
            return
        if self.is_between(i):
            self.add("sign", token.at, token.end, other)
        elif token.text == "-" and self.tokens[i - 1].text not in (")", "]"):
            self.add("sign", token.at, token.end, "")

    def comparison(self, i):
        token = self.tokens[i]
        other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}.get(token.text)
        if other and self.is_between(i):
            self.add("comparison", token.at, token.end, other)

    def logic(self, i):
        token = self.tokens[i]
        if token.text in ("&&", "||"):
            self.add("logic", token.at, token.end, "||" if token.text == "&&" else "&&")
        elif token.text == "!":
            self.add("logic", token.at, token.end, "")

    def product(self, i):
        token = self.tokens[i]
        other = {"*": "/", "/": "*", "*=": "/=", "/=": "*="}.get(token.text)
        if other and self.is_between(i):
            self.add("product", token.at, token.end, other)

    def constant(self, token):
        """n to n + 1 or n - 1; a fraction by a quarter, one with all its digits by a thousandth."""
        m = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)", token.text)
        if m:
            n = int(m.group(1), 0) if not re.fullmatch("0[0-7]+", m.group(1)) else int(m.group(1), 8)
            write = hex if m.group(1)[:2] in ("0x", "0X") else str
            self.add("constant", token.at, token.end, write(n + 1) + m.group(2))
            if n > 0:
                self.add("constant", token.at, token.end, write(n - 1) + m.group(2))
            return
        m = re.fullmatch(r"(.*?)([fFlL]?)", token.text)
        try:
            if "x" in token.text.lower():
                x, write = float.fromhex(m.group(1)), lambda y: y.hex()
            else:
                x, write = float(m.group(1)), repr
        except ValueError:
            return
        digits = re.sub(r"^0[xX]|[pP].*|\." if write is not repr else r"[eE].*|\.", "", m.group(1))
        by = 1.0009765625 if len(digits) > 6 else 1.25
        y = write(x * by) if x != 0 else "1.0"
        if y != token.text and "inf" not in y:
            self.add("constant", token.at, token.end, y + m.group(2))

    def index(self, i):
        t = self.tokens
        j = t[i].mate
        inner = self.text[t[i].end:t[j].at]
        if "\n" in inner:
            return
        low = {"?", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "=", ",", "&&", "||"}
        if any(t[k].text in low for k in range(i + 1, j)):
            inner = f"({inner})"
        self.add("index", t[i].end, t[j].at, inner + " + 1")
        self.add("index", t[i].end, t[j].at, inner + " - 1")

    def arguments(self, i):
        t = self.tokens
        first, last = i + 1, t[i + 1].mate
        if t[i - 1].kind == "name" and t[i - 1].text not in KEYWORDS or \
           any(t[k].kind == "string" for k in range(first, last)):
            return
        commas, k = [], first + 1
        while k < last:
            if t[k].text in "([{" and t[k].kind == "mark":
                k = t[k].mate
            elif t[k].text == ",":
                commas.append(k)
            k += 1
        ends = [first] + commas + [last]
        parts = [(t[a + 1].at, t[b - 1].end) for a, b in zip(ends, ends[1:]) if b > a + 1]
        for k in range(len(parts) - 1):
            (a, b), (c, d) = parts[k], parts[k + 1]
            one, two, between = self.text[a:b], self.text[c:d], self.text[b:c]
            if one != two and not (k == 0 and ALIKE.search(t[i].text)):
                self.add("arguments", a, d, two + between + one)

    def statements(self, first, last):
        t = self.tokens
        i = first + 1
        while i < last:
            before = t[i - 1]
            opens = before.text in ("{", "}", ";", "else", "do") or before.text == ":" and self.is_label(i - 1) or \
                before.text == ")" and before.mate > 0 and t[before.mate - 1].text in CONTROL
            if opens and t[i].kind != "number" and not self.in_brackets(i, first):
                end = i
                while end < last and t[end].text not in (";", "{", "}"):
                    end = t[end].mate + 1 if t[end].text in "([" and t[end].mate > end else end + 1
                if end < last and t[end].text == ";" and self.can_go(i, end):
                    kept = re.sub(r"[^\n]", "", self.text[t[i].at:t[end].at])
                    # The lines stay, and so do their numbers.
                    self.add("statement", t[i].at, t[end].end, ";" + kept)
            i += 1

    def in_brackets(self, i, first):
        """Is token i inside the head of a for, or an initialiser?"""
        t = self.tokens
        j = i - 1
        while j > first:
            if t[j].text in ")]}" and t[j].mate >= 0:
                j = t[j].mate
            elif t[j].text in "([":
                return True
            elif t[j].text == "{":
                return t[j - 1].text in ("=", "{", ",", "(")
            j -= 1
        return False

    def is_label(self, i):
        t = self.tokens
        while i > 0 and t[i].text not in (";", "{", "}", "?", "case", "default"):
            i -= 1
        return t[i].text in ("case", "default")

    def can_go(self, i, end):
        t = self.tokens
        if end == i or t[i].skip or self.is_declaration(i):
            return False
        if t[i].text in ("break", "continue"):
            return True
        if t[i].kind == "name" and t[i].text in KEYWORDS:
            return False
        if t[i].text == "(" and t[i + 1].text == "void":
            return False
        return any(t[k].text == "(" or t[k].text in ("++", "--") or re.fullmatch(r"[-+*/%&|^]?=|<<=|>>=", t[k].text)
                   for k in range(i, end))


# ---- faults ------------------------------------------------------------------------------------

KINDS = {"sign": 4, "constant": 4, "comparison": 4, "index": 3, "statement": 4, "arguments": 2, "logic": 3, "product": 3}


class Module:
    """The sources of a module, and an endless row of faults in them that the seed alone decides."""

    def __init__(self, name, folder, tree, seed):
        self.name, self.sources = name, []
        for path in sorted(glob.glob(f"{folder}/**/*.[ch]", root_dir=tree, recursive=True)):
            with open(os.path.join(tree, path), encoding="utf-8") as f:
                source = Source(path, f.read())
            if source.faults:
                self.sources.append(source)
        self.lines = sum(len(source.lines) for source in self.sources)
        self.random = random.Random(f"{seed}/{name}")
        self.taken = set()

    def draw(self):
        """The next fault: a file by its lines, a kind, a place; never twice the same line."""
        for _ in range(10000):
            source = self.random.choices(self.sources, [len(s.lines) for s in self.sources])[0]
            kinds = [kind for kind in KINDS if kind in source.faults]
            kind = self.random.choices(kinds, [KINDS[k] for k in kinds])[0]
            at, end, text = self.random.choice(source.faults[kind])
            first, last = source.line_at(at), source.line_at(max(at, end - 1))
            if (source.path, first) in self.taken:
                continue
            self.taken.add((source.path, first))
            a = source.starts[first - 1]
            b = source.starts[last] if last < len(source.starts) else len(source.text)
            old = source.text[a:b]
            new = source.text[a:at] + text + source.text[end:b]
            return {"module": self.name, "file": source.path, "line": first, "kind": kind, "old": old, "new": new}
        return None


def modules_of(tree, seed):
    folders = [(name, f"src/{name}") for name in sorted(os.listdir(os.path.join(tree, "src")))]
    folders = [(n, f) for n, f in folders if os.path.isdir(os.path.join(tree, f))] + [("cli", "cli")]
    modules = [Module(name, folder, tree, seed) for name, folder in folders]
    return [module for module in modules if module.sources]


def shares(modules, count):
    """Two for every module, where there are enough, the rest by the square root of its lines."""
    least = min(2, count // len(modules))
    rest = count - least * len(modules)
    total = sum(module.lines ** 0.5 for module in modules)
    exact = [rest * module.lines ** 0.5 / total for module in modules]
    got = [int(x) for x in exact]
    by_rest = sorted(range(len(modules)), key=lambda i: (got[i] - exact[i], i))
    for i in by_rest[:rest - sum(got)]:
        got[i] += 1
    return [least + n for n in got]


# ---- the copy of the tree ----------------------------------------------------------------------

class Stop(Exception):
    """Said to the user as it is."""


def limit_child():
    """A fault may ask for all memory, or write without end. Module for the stacks of 4096 threads must be."""
    memory = max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), 1 << 36)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
            f.write("1000")  # the first to go where memory runs out
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 32, 1 << 32))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, log, limited=False):
    """Exit status; what it prints goes to a file. Interrupted, it takes its children with it."""
    with open(log, "ab") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                 start_new_session=True, preexec_fn=limit_child if limited else None)
        try:
            return child.wait()
        except BaseException:
            for sent, patience in ((signal.SIGINT, 10), (signal.SIGKILL, None)):
                try:
                    os.killpg(child.pid, sent)
                    child.wait(timeout=patience)
                    break
                except ProcessLookupError:
                    break
                except subprocess.TimeoutExpired:
                    pass
            raise


def git_files(tree):
    done = subprocess.run(["git", "-C", tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          stdout=subprocess.PIPE, check=True)
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [name for name in names if os.path.lexists(os.path.join(tree, name))]


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def copy_tree(tree, to):
    """Writes what differs only, so that what was built there stays good."""
    names = git_files(tree)
    keep = set(names)
    for folder, _, files in os.walk(to):
        for file in files:
            path = os.path.join(folder, file)
            if os.path.relpath(path, to) not in keep:
                os.unlink(path)
    for name in names:
        a, b = os.path.join(tree, name), os.path.join(to, name)
        if os.path.islink(a) or not os.path.isfile(a):
            continue
        if not os.path.isfile(b) or read_bytes(a) != read_bytes(b):
            os.makedirs(os.path.dirname(b), exist_ok=True)
            shutil.copyfile(a, b)
        if os.stat(a).st_mode != os.stat(b).st_mode:
            shutil.copymode(a, b)


class Tree:
    """The copy, its build and its tests."""

    def __init__(self, source, work, jobs):
        self.source, self.work, self.jobs = source, work, jobs
        self.tree, self.build = os.path.join(work, "tree"), os.path.join(work, "build")
        self.log = os.path.join(work, "log.txt")
        self.side = os.path.join(work, "ctest")  # the tests again, with time limits of our own
        os.makedirs(self.side, exist_ok=True)
        self.lock = open(os.path.join(work, "lock"), "wb")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Stop(f"another one is at work in {work}") from None
        open(self.log, "wb").close()
        copy_tree(source, self.tree)
        configure = ["cmake", "-S", self.tree, "-B", self.build, "-D", "FINETTI_WERROR=ON"]
        if shutil.which("ninja") and not os.path.exists(os.path.join(self.build, "CMakeCache.txt")):
            configure += ["-G", "Ninja"]
        if run(configure, self.log):
            raise Stop(f"cmake failed; see {self.log}")
        listing = subprocess.run(["cmake", "--build", self.build, "--target", "help"], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, check=False).stdout
        self.targets = set(re.findall(r"^(?:\.\.\. )?([\w.+-]+)(?::| |$)", listing, re.M))
        self.read_tests()
        self.objects = {}   # path -> hash of its code, without a fault
        self.seconds = {}   # test -> how long it takes without a fault
        self.clean_targets = set()

    def read_tests(self):
        shown = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=True).stdout
        self.tests = {}
        for test in json.loads(shown)["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            if "lean" in properties.get("LABELS", []):
                self.tests[test["name"]] = (test.get("command") or [""], properties.get("TIMEOUT", 300))

    def tests_of(self, module):
        prefix = ("cli_", "test_cli_") if module == "cli" else f"test_{module}_"
        return [name for name in self.tests if name.startswith(prefix)]

    def targets_of(self, tests):
        """What has to be built to run them: their programs, or all."""
        targets = set()
        for name in tests:
            program = self.tests[name][0][0]
            base = os.path.basename(program)
            if not program: # ctest does not say, as long as it is not built
                module = "_".join(name.split("_")[:2])
                base = name if name in self.targets else module
                program = os.path.join(self.build, base)
            if os.path.realpath(program).startswith(os.path.realpath(self.build) + os.sep) and base in self.targets:
                targets.add(base)
            elif name.startswith("cli_") and {"product", "examples"} <= self.targets:
                targets |= {"product", "examples"}
            else:
                return ["tests"]
        return sorted(targets)

    def make(self, targets):
        return run(["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *targets], self.log) == 0

    def object_files(self):
        for folder, _, files in os.walk(self.build):
            for file in files:
                if file.endswith(".o"):
                    yield os.path.join(folder, file)

    def code_of(self, path):
        """A hash of an object file without what is for the debugger."""
        bare = os.path.join(self.work, "bare.o")
        if subprocess.run(["objcopy", "--strip-debug", path, bare], stderr=subprocess.DEVNULL, check=False).returncode:
            shutil.copyfile(path, bare)
        return hashlib.sha256(read_bytes(bare)).hexdigest()

    def make_clean(self, targets, again=False):
        """Builds targets without a fault and remembers their code; again: they may have the last fault in them."""
        if set(targets) <= self.clean_targets and not again:
            return
        if not self.make(targets):
            raise Stop(f"the tree does not build as it is; see {self.log}")
        self.clean_targets |= set(targets)
        self.read_tests()
        for path in self.object_files():
            stamp = os.stat(path).st_mtime_ns
            if self.objects.get(path, (0, 0))[0] != stamp:
                self.objects[path] = (stamp, self.code_of(path))

    def stamp(self):
        """The time, as the file system has it."""
        path = os.path.join(self.work, "stamp")
        open(path, "wb").close()
        return os.stat(path).st_mtime_ns

    def is_changed(self, since):
        """Is any code that was built since then other than without a fault?"""
        return any(os.stat(path).st_mtime_ns >= since and self.code_of(path) != self.objects[path][1]
                   for path in self.object_files() if path in self.objects)

    def time_limit(self, name):
        return min(self.tests[name][1], max(60, 10 * self.seconds.get(name, 1e9)))

    def ctest(self, names):
        """Runs tests until one fails. (test that failed or None, {test: seconds})"""
        with open(os.path.join(self.side, "CTestTestfile.cmake"), "w", encoding="utf-8") as f:
            f.write(f'include("{self.build}/CTestTestfile.cmake")\n')
            for name in names:
                f.write(f"set_tests_properties([=[{name}]=] PROPERTIES TIMEOUT {self.time_limit(name):.0f})\n")
        junit = os.path.join(self.side, "junit.xml")
        if os.path.exists(junit):
            os.unlink(junit)
        wanted = "^(" + "|".join(re.escape(name) for name in names) + ")$"
        run(["ctest", "--test-dir", self.side, "-R", wanted, "-L", "^lean$", "--stop-on-failure",
             "--output-on-failure", "-j", str(self.jobs), "--output-junit", junit], self.log, limited=True)
        if not os.path.exists(junit):
            raise Stop(f"ctest gave no result; see {self.log}")
        failed, seconds, missing = None, {}, []
        for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
            name = case.get("name")
            if case.get("status") == "fail":
                failed = failed or name
            elif case.get("status") == "run":
                seconds[name] = float(case.get("time") or 0)
            else:
                skipped = case.find("skipped")
                if skipped is not None and "Unable to find executable" in (skipped.get("message") or ""):
                    missing.append(name)
                seconds[name] = 0.0
        if missing and not failed:
            raise Stop(f"not built: {', '.join(missing)}; see {self.log}")
        return failed, seconds

    def time_tests(self, names):
        """The tests must pass as they are; how long they take then is the measure."""
        names = [name for name in names if name not in self.seconds]
        if not names:
            return
        failed, seconds = self.ctest(names)
        if failed:
            raise Stop(f"{failed} fails without a fault; see {self.log}")
        self.seconds.update(seconds)

    # ---- one fault ----

    def find(self, fault):
        """(text, from, to) of the lines a fault replaces: where it says, or the nearest like them."""
        path = os.path.join(self.tree, fault["file"])
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as f:
            text = f.read()
        starts = [0] + [m.end() for m in re.finditer("\n", text)]
        found = [i for i, at in enumerate(starts) if text.startswith(fault["old"], at)]
        if not found:
            return None
        at = starts[min(found, key=lambda i: abs(i + 1 - fault["line"]))]
        return text, at, at + len(fault["old"])

    def try_fault(self, fault, stage, tell):
        """Fills in verdict, by, stage and seconds of a fault."""
        began = time.monotonic()
        place = self.find(fault)
        path = os.path.join(self.tree, fault["file"])
        fault.pop("by", None)
        if not place:
            fault["verdict"] = "not here"
            return
        text, at, end = place
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text[:at] + fault["new"] + text[end:])
            fault["verdict"] = self.judge(fault, stage, tell)
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        fault["seconds"] = round(time.monotonic() - began, 1)

    def judge(self, fault, stage, tell):
        module = self.tests_of(fault["module"])
        hints = [name for name in fault.get("hints", []) if name in self.tests]
        steps = [("hint", [name]) for name in hints]
        steps.append(("module", [name for name in module if name not in hints]))
        if stage == "lean":
            steps.append(("lean", [name for name in self.tests if name not in module and name not in hints]))
        if stage == "hints":
            steps = [step for step in steps if step[0] == "hint"]
        first = [t for t in ("finetti_objects", "finetti_cli") if t in self.targets] or ["tests"]
        tell("builds")
        since = self.stamp()
        if not self.make(first):
            return "does not compile"
        if not self.is_changed(since):
            return "equivalent"
        if stage == "build":
            return "to try"
        for name, tests in steps:
            if not tests:
                continue
            tell(f"builds the tests ({name})")
            if not self.make(self.targets_of(tests)):
                return "does not compile"
            tell(f"is tested ({tests[0] if name == 'hint' else name})")
            failed, _ = self.ctest(tests)
            if failed:
                fault["by"], fault["stage"] = failed, name
                return "killed"
        fault["stage"] = stage
        return "survived"


# ---- the report --------------------------------------------------------------------------------

def lines_of(fault):
    """The old and the new lines, those that differ only."""
    old, new = fault["old"].rstrip("\n").split("\n"), fault["new"].rstrip("\n").split("\n")
    both = [(a, b) for a, b in zip(old, new) if a != b] or list(zip(old, new))
    return [a.strip() for a, _ in both], [b.strip() for _, b in both]


def describe(fault, out):
    old, new = lines_of(fault)
    print(f"{fault['number']:4}  {fault['file']}:{fault['line']}  {fault['kind']}", file=out)
    for line in old:
        print(f"        - {line}", file=out)
    for line in new:
        if line:
            print(f"        + {line}", file=out)


def report(faults, out):
    rows = {}
    for fault in faults:
        row = rows.setdefault(fault["module"], {"killed": 0, "survived": 0, "equivalent": 0, "other": 0})
        verdict = fault.get("verdict")
        row[verdict if verdict in row else "other"] += 1
    for verdict, head in (("killed", "Killed"), ("survived", "Survived"), ("equivalent", "The same code"),
                          ("not here", "Not in this tree")):
        some = [fault for fault in faults if fault.get("verdict") == verdict]
        if some:
            print(f"\n{head}:", file=out)
        for fault in some:
            if verdict == "killed":
                print(f"{fault['number']:4}  {fault['file']}:{fault['line']}  {fault['kind']}: {fault['by']}", file=out)
            else:
                describe(fault, out)
    print(f"\n{'module':<12}{'killed':>8}{'survived':>10}{'same code':>11}", file=out)
    for name, row in list(rows.items()) + [("all", {k: sum(r[k] for r in rows.values()) for k in
                                                    ("killed", "survived", "equivalent", "other")})]:
        print(f"{name:<12}{row['killed']:>8}{row['survived']:>10}{row['equivalent']:>11}", file=out)
    killed = sum(row["killed"] for row in rows.values())
    counted = killed + sum(row["survived"] for row in rows.values())
    if counted:
        print(f"\n{killed} of {counted} faults were found ({100 * killed / counted:.0f} %).", file=out)


class Progress:
    def __init__(self, total):
        self.total, self.done, self.began = total, 0, time.monotonic()
        self.shown = sys.stderr.isatty()

    def tell(self, fault, what):
        if not self.shown:
            return
        left = ""
        if self.done:
            seconds = (time.monotonic() - self.began) / self.done * (self.total - self.done)
            left = f", about {seconds / 60:.0f} min left"
        line = f"{self.done} of {self.total}{left}: {fault['file']}:{fault['line']} {what}"
        sys.stderr.write("\r\x1b[K" + line[:shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()

    def say(self, line):
        if self.shown:
            sys.stderr.write("\r\x1b[K")
        print(line, flush=True)


def save(path, options, faults):
    if not path:
        return
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump({"seed": options.seed, "stage": options.stage, "faults": faults}, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


# ---- what is asked for -------------------------------------------------------------------------

def numbers_of(text):
    """"3,7-9" -> {3, 7, 8, 9}"""
    found = set()
    for part in text.split(","):
        a, _, b = part.partition("-")
        found.update(range(int(a), int(b or a) + 1))
    return found


def options_of():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", type=int, default=60, metavar="N", help="how many faults (60)")
    p.add_argument("--seed", type=int, default=1, help="which faults (1)")
    p.add_argument("--stage", choices=("build", "hints", "module", "lean"), default="lean",
                   help="how far to go: build it, the tests named in hints, those of the module, all lean ones (lean)")
    p.add_argument("--list", action="store_true", help="only list the faults, with --json FILE also there")
    p.add_argument("--replay", metavar="FILE", help="the faults of an earlier --json FILE; what killed a fault then, and "
                   "the tests that its \"hints\" name, are tried first")
    p.add_argument("--only", type=numbers_of, metavar="NUMBERS", help="these alone, such as 3,7-9")
    p.add_argument("--json", metavar="FILE", help="write what was done here too")
    p.add_argument("--tree", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."),
                   help="the tree to judge (the one this file is in)")
    p.add_argument("--work", help="where the copy is made (TREE/build-mutants)")
    p.add_argument("--jobs", type=int, default=2, help="how many things at a time (2)")
    options = p.parse_args()
    if options.n < 1 or options.jobs < 1:
        p.error("-n and --jobs are at least 1")
    options.tree = os.path.realpath(options.tree)
    options.work = os.path.abspath(options.work or os.path.join(options.tree, "build-mutants"))
    return options


def replayed(options):
    with open(options.replay, encoding="utf-8") as f:
        faults = json.load(f)["faults"]
    for fault in faults:
        by = fault.pop("by", None)
        hints = fault.get("hints", [])
        fault["hints"] = ([by] if by and by not in hints else []) + hints
        fault["was"] = fault.pop("verdict", None)
    return [fault for fault in faults if not options.only or fault["number"] in options.only]


def queue_of(options):
    """[(fault, module to draw from if it does not count, or None)]"""
    if options.replay:
        return [(fault, None) for fault in replayed(options)]
    modules = modules_of(options.tree, options.seed)
    queue = []
    for module, count in zip(modules, shares(modules, options.n)):
        for _ in range(count):
            fault = module.draw()
            if fault:
                queue.append((fault, module))
    for number, (fault, _) in enumerate(queue, 1):
        fault["number"] = number
    return [(f, module) for f, module in queue if not options.only or f["number"] in options.only]


def work(options):
    queue = queue_of(options)
    faults = [fault for fault, _ in queue]
    if options.list:
        for fault in faults:
            describe(fault, sys.stdout)
        save(options.json, options, faults)
        return
    tree = Tree(options.tree, options.work, options.jobs)
    progress = Progress(len(queue))
    done, number = [], max([fault["number"] for fault in faults], default=0)
    try:
        for fault, module in queue:
            while fault:
                tree.make_clean([t for t in ("finetti_objects", "finetti_cli") if t in tree.targets] or ["tests"])
                if options.stage != "build":
                    tests = [name for name in fault.get("hints", []) if name in tree.tests]
                    if options.stage != "hints":
                        tests += tree.tests_of(fault["module"])
                    if options.stage == "lean" and not fault.get("hints"):
                        tests = list(tree.tests)
                    missing = [name for name in tests if name not in tree.seconds]
                    if missing:
                        progress.tell(fault, "waits for its tests to run without it")
                        before = time.monotonic()
                        tree.make_clean(tree.targets_of(missing), again=True)
                        tree.time_tests(missing)
                        progress.began += time.monotonic() - before  # this is done once
                tree.try_fault(fault, options.stage, lambda what: progress.tell(fault, what))
                verdict = fault["verdict"]
                progress.say(f"{fault['number']:4}  {fault['file']}:{fault['line']}  {fault['kind']}: {verdict}"
                             + (f" by {fault['by']}" if "by" in fault else ""))
                if verdict != "does not compile" or not module:
                    done.append(fault)
                save(options.json, options, done)
                if not module or verdict not in ("does not compile", "equivalent"):
                    break
                if verdict == "equivalent": # it keeps its number
                    number += 1
                    mine = number
                else:
                    mine = fault["number"]
                fault = module.draw()
                if fault:
                    fault["number"] = mine
            progress.done += 1
    except KeyboardInterrupt:
        progress.say(f"interrupted after {progress.done} of {progress.total}")
    progress.say("")
    save(options.json, options, done)
    report(done, sys.stdout)


def main():
    options = options_of()
    for sent in (signal.SIGINT, signal.SIGTERM):  # one that was started in the background ignores the first
        signal.signal(sent, signal.default_int_handler)
    try:
        work(options)
    except Stop as stop:
        sys.exit(f"mutants.py: {stop}")


if __name__ == "__main__":
    main()
