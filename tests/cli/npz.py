"""NPZ without numpy: load(path) gives name -> (shape, flat tuple, struct code); save(path, arrays) takes the same."""
import ast, math, struct, zipfile

CODES = {"<f4": "f", "<f8": "d", "<i8": "q", "|u1": "B"}


def load(path):
    out = {}
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        for name in z.namelist():
            b = z.read(name)
            assert b[:6] == b"\x93NUMPY"
            n, = struct.unpack("<H", b[8:10])
            head = ast.literal_eval(b[10:10 + n].decode())
            assert not head["fortran_order"]
            code = CODES[head["descr"]]
            count = (len(b) - 10 - n) // struct.calcsize("<" + code)
            out[name[:-4]] = (head["shape"], struct.unpack("<%d%s" % (count, code), b[10 + n:]), code)
    return out


def save(path, arrays):
    with zipfile.ZipFile(path, "w") as z:
        for name, (shape, flat, code) in arrays.items():
            assert math.prod(shape) == len(flat)
            descr = {c: d for d, c in CODES.items()}[code]
            head = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)}).encode()
            head += b" " * (-(len(head) + 11) % 64) + b"\n"
            z.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head +
                       struct.pack("<%d%s" % (len(flat), code), *flat))
