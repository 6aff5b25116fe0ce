#!/usr/bin/env python3
"""Makes tests/data/normals.csv: standard normals as finetti defines them, in 30-digit arithmetic.

Needs mpmath. Run from the root of the repository: tools/make_known_answers.py > tests/data/normals.csv

A number is Box-Muller on the words of Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011), key = seed,
counter = (block, stream, sample):
  f64  block b has u = ((w1:w0 >> 12) + 1/2) / 2^52 and t = (w3:w2 >> 12) / 2^52; of group g (8
       blocks) number i is sqrt(-2 log u) cos(2 pi t), number 8 + i the sine
  f32  block b has two pairs, (w0, w1) and (w2, w3), each with u = ((w >> 1) + 1/2) / 2^31 rounded to
       float as the kernel does it and t = w' / 2^32; of group g (16 blocks) numbers i, 16 + i, 32 + i,
       48 + i are cosine and sine of the first and of the second pair
"""
import struct
from mpmath import mp, mpf, sqrt, log, cospi, sinpi, nstr

mp.dps = 40
MASK = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


# Random123's known answers: the generator above is the right one.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def words(seed, stream, sample, block):
    return philox([block, stream, sample & MASK, sample >> 32], [seed & MASK, seed >> 32])


def to_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def pair(u, turn):
    r = sqrt(-2 * log(mpf(u)))
    return r * cospi(2 * turn), r * sinpi(2 * turn)


def normal_f64(seed, stream, sample, index):
    group, at = divmod(index, 16)
    w = words(seed, stream, sample, 8 * group + at % 8)
    u = (mpf((w[1] << 32 | w[0]) >> 12) + mpf(1) / 2) / 2**52
    t = mpf((w[3] << 32 | w[2]) >> 12) / 2**52
    return pair(u, t)[at // 8]


def normal_f32(seed, stream, sample, index):
    group, at = divmod(index, 64)
    w = words(seed, stream, sample, 16 * group + at % 16)[2 * (at // 32):]
    u = to_float(to_float(float(w[0] >> 1)) * 2.0**-31 + 2.0**-32)  # the sum is exact in double
    return pair(u, mpf(w[1]) / 2**32)[at // 16 % 2]


PI = (0x299F31D0A4093822, 0x85A308D3, 0x0370734413198A2E)
KEYS = [
    (0, 0, 0),
    (2**64 - 1, MASK, 2**64 - 1),
    PI,
    (1, 4, 2**32),
    (0x0123456789ABCDEF, 1024, 2**32 + 7),
    (2**32, 0x80000003, 2**63),
]
LIMIT = 2**33  # FIN_NORMALS_MAX

print("type,seed,stream,sample,index,value")
for seed, stream, sample in KEYS:
    for name, normal, size in (("f32", normal_f32, 64), ("f64", normal_f64, 16)):
        places = set(range(0, size)) | {size + 1, 1000, 99999, LIMIT - 1, LIMIT - size // 2 - 1, LIMIT // 2 + 5}
        if (seed, stream, sample) == PI and name == "f64":  # block 0x243f6a88: the known answer
            places |= {0x243F6A88 // 8 * 16, 0x243F6A88 // 8 * 16 + 8}
        for index in sorted(places):
            print(f"{name},{seed},{stream},{sample},{index},{nstr(normal(seed, stream, sample, index), 21)}")
