"""Makes the first inputs of the corpus: small good files and a few that are bad in a known way.
python3 corpus.py FOLDER (of the corpus); numpy is needed. Models are made by `finetti fit`,
encoders by `finetti pretrain`."""
import io, os, struct, sys, zipfile
import numpy as np

root = sys.argv[1]

def put(reader, name, data):
    os.makedirs(os.path.join(root, reader), exist_ok=True)
    with open(os.path.join(root, reader, name), 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())

def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array))
    return buffer.getvalue()

def npz(compressed=False, **arrays):
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()

# tables
put('table', 'plain', 'x,y,label\n1,2.5,0\n-3e2,.5,1\n')
put('table', 'quoted', '\ufeff"a,b" ,"c""d"\r\n " 1 ", nan \r\n"2",-inf\r\n\r\n')
put('table', 'digits', 'a\n12345678901234567890.12345e-5\n0.30000000000000004\n1e-320\n9007199254740993\n')
put('table', 'ragged', 'a,b\n1,2\n3\n')
put('table', 'open', 'a,b\n1,"2\n')
put('table', 'text', 'a,b\n1,red\n')

# bags: the first byte says how they are read
long = 'bag,label,x,z,t\na,0,1,2,u\na,0,3,4,v\nb,1,5,6,w\nc,0,7,8,\nb,1,9,10,w\n'
for bits in (0, 1, 2, 4, 5, 8 + 16 + 1, 16, 32, 32 + 64):
    put('bags', 'long%d' % bits, bytes([bits]) + long.encode())
put('bags', 'quoted', b'\x00"bag","y",x\r\n"a\n""b""",yes,1\r\n" c",no,2\r\n')
put('bags', 'missing', b'\x11bag,x,z,label\nu,1,2,\nv,3,4,nan\nw,5,6,1.0\nq,7,8,a\n')
put('bags', 'numbers', b'\x01bag,y,x\n1,0.5,1\n2,1.5,2\n3,2.5,3e-30\n')
put('bags', 'differs', b'\x00bag,label,x\na,0,1\na,1,2\nb,1,3\n')
put('bags', 'groups', b'\x80bag,label,g,x\na,0,p,1\na,0,p,2\nb,1,"q",3\nc,1,p,4\n')
put('bags', 'semicolons', b'\x02bag;label;x;t\r\na;0;1,5;p,"q\r\nb;1;-,5e2; "r";\r\n')
put('bags', 'tabs', b'\x00\tbag\tlabel\tx\n0\ta\t0\t1,5\n1\tb\t1\t2,25\n')
put('bags', 'mixed', b'\x00bag;label;x\na;0;1.5\nb;1;2,5\n')
put('bags', 'extras', b'\x02bag,label,id,x,z,t,n\na,0,1,1,2,"u ""v"" \xff\x01",\na,0,99999999999999999,3,4,,7\nb,1,3,5,6,w,8\n')
put('bags', 'split', b'\x80bag,label,x,g\na,0,1,p\nb,1,2,q\na,0,3,r\n')
put('bags', 'right', b'\x00x,z,label,bag\n1,2,0,a\n3,4,0,a\n5,6,1,b\n')

# folds
put('folds', 'good', 'bag_id,r0,r1\n1,0,1\nb,1,0\n"c""d",0,0\n4,1,1\nother,5,5\n')
put('folds', 'missing', 'bag_id,r0\n1,0\nb,1\n')
put('folds', 'text', 'bag_id,r0\n1,0\nb,x\n"c""d",0\n4,1\n')

# arrays
def files(bits, *arrays):
    data = bytes([bits])
    for a in arrays:
        one = b'' if a is None else a if isinstance(a, bytes) else npy(a)
        data += struct.pack('<H', len(one)) + one
    return data

tokens = np.arange(12.0).reshape(6, 2)
offsets, bag, y = [0, 1, 4, 6], [3, 3, 7, 3, 9, 9], [0, 1, 0]
put('arrays', 'f8', files(0, tokens, offsets, None, np.array(y)))
put('arrays', 'f4', files(4, tokens.astype('f4'), np.array(offsets, 'i4'), None, np.array(y, 'f4')))
put('arrays', 'u1', files(32, np.arange(24, dtype='u1').reshape(6, 2, 2), None, bag, np.array(y, 'u1')))
put('arrays', 'i8', files(17, tokens.astype('i8'), None, bag, np.array([0, 0, 1, 0, 0, 0])))
put('arrays', 'i4', files(24, tokens.astype('i4'), offsets, None, None))
put('arrays', 'nan', files(0, tokens * np.nan, offsets, None, np.array(y)))
put('arrays', 'empty', files(0, tokens, [0, 1, 1, 6], None, np.array(y)))
put('arrays', 'short', files(0, npy(tokens)[:-3], offsets, None, np.array(y)))
put('arrays', 'fortran', files(0, np.asfortranarray(tokens), offsets, None, np.array(y)))
put('arrays', 'half', files(2, np.asfortranarray(tokens.astype('f2')), offsets, None, np.array(y), np.array(list('abcdé') + ['😀f'])))
put('arrays', 'short_integers', files(2, tokens.astype('u2'), offsets, None, np.array(y, 'i1'), np.array([b'a', b'bc', b'\xff', b'', b'x', b'y'])))

# archives
put('npz', 'good', npz(tokens=tokens, offsets=np.array(offsets), y=np.array(y)))
put('npz', 'bag', npz(True, tokens=tokens.astype('f4'), bag=np.array(bag), y=np.array(y)))
put('npz', 'names', npz(tokens=tokens, offsets=np.array(offsets), y=np.array(y),
                        features=np.array(['x', 'zed'], 'S').view('u1').reshape(2, -1)))
put('npz', 'extras', npz(tokens=tokens, offsets=np.array(offsets), y=np.array(y), text=np.array(list('abcdef')), xy=tokens.astype('f2'),
                        id=np.arange(6) + 2**60, wide=np.zeros((6, 17), 'u1'), raw=np.array([[b'a', b'bc']] * 6, order='F')))
put('npz', 'other', npz(a=np.zeros((0, 3)), b=np.float64(3), c=np.arange(3)))
put('npz', 'cut', npz(tokens=tokens)[:-30])
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, 'w') as z:
    z.writestr('tokens.npy', b'\x93NUMPY\x01\x00\x46\x00' + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9), }  \n")
put('npz', 'claims', buffer.getvalue())

# folders of encoders of text: the first byte says which file
put('encoder', 'config', b'\0' + b'{"model_type":"bert","hidden_size":2,"num_hidden_layers":1,"num_attention_heads":2,'
    b'"intermediate_size":3,"hidden_act":"gelu_new","max_position_embeddings":8,"vocab_size":6,"type_vocab_size":0,'
    b'"layer_norm_eps":1e-5}')
put('encoder', 'config_other', b'\0' + b'{"model_type":"distilbert","dim":2,"n_layers":1,"n_heads":1,"hidden_dim":3,'
    b'"activation":"relu","max_position_embeddings":8,"vocab_size":6}')
put('encoder', 'vocabulary', b'\1' + '[SEP]\r\n[CLS]\n[UNK]\nA\n##é\n'.encode())
put('encoder', 'tokenizer', b'\2' + b'{"normalizer":{"type":"BertNormalizer","lowercase":false,"strip_accents":true},'
    b'"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","unk_token":"?","max_input_chars_per_word":3,'
    b'"vocab":{"?":0,"[CLS]":2,"[SEP]":1,"b":3}}}')
put('encoder', 'unigram', b'\2' + b'{"model":{"type":"Unigram","unk_id":0,"vocab":[["a",0],["b",-1]]}}')
put('encoder', 'switches', b'\3' + b'{"do_lower_case":false,"strip_accents":null,"tokenize_chinese_chars":false}')
put('encoder', 'weights', b'\4' + struct.pack('<Q', 100) + b'{"embeddings.word_embeddings.weight":{"dtype":"F16","shape":[6,2],'
    b'"data_offsets":[0,24]}}            ' + bytes(24))
put('encoder', 'text', b'\5' + 'aB, ab\u00e9\u535a\ud55c\u0130\x00\x85 '.encode() + b'\xff\xed\xa0\x80' + b'a' * 200)
put('encoder', 'text_unigram', b'\6' + 'ab  ba\u3000\uff41\u00a0x\x01'.encode() + b'\xc3' + b'ab' * 100)

# HDF5: the first byte says how it is read
try:
    import h5py
except ImportError:
    h5py = None

def hdf5(bits, *chunks, **sets):
    buffer = io.BytesIO()
    with h5py.File(buffer, 'w', libver='latest') as h:
        for name, value in sets.items():
            h.create_dataset(name, data=value, chunks=chunks or None, compression='gzip' if chunks else None)
    return bytes([bits]) + buffer.getvalue()

if h5py:
    halves = np.arange(20).reshape(1, 10, 2).astype('f2')
    put('hdf5', 'bag', hdf5(8 + 2, features=halves, coords=np.arange(20).reshape(10, 2)))
    put('hdf5', 'chunks', hdf5(8, 3, 1, features=np.arange(20.).reshape(10, 2)))
    put('hdf5', 'file', hdf5(2, tokens=tokens.astype('>f4'), offsets=offsets, y=y, coords=np.arange(6) * 1.5))
    put('hdf5', 'rows', hdf5(0, tokens=tokens.astype('f2'), bag=bag, label=[0, 0, 1, 0, 0, 0], g=bag))
    put('hdf5', 'integers', hdf5(32, tokens=tokens.astype('u1'), bag=bag, label=[0, 0, 1, 0, 0, 0]))
    put('hdf5', 'text', hdf5(8, features=[b'a', b'b']))
    put('hdf5', 'cut', hdf5(8, features=halves)[:-40])

# tensors
def tensors(header, data=b''):
    text = header.encode()
    return struct.pack('<Q', len(text)) + text + data

put('tensors', 'plain', tensors('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
                                '"b":{"dtype":"I64","shape":[1,1],"data_offsets":[8,16]}}', bytes(16)))
put('tensors', 'metadata', tensors('{"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[3],'
                                   '"data_offsets":[0,3]}}  ', b'abc'))
put('tensors', 'ours', tensors('{"__metadata__":{"checksum":"0000000000000000","finetti":"tensors",'
                               '"version":"1"},"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}',
                               bytes(8)))
put('tensors', 'overlap', tensors('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
                                  '"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}', bytes(12)))
put('tensors', 'huge', struct.pack('<Q', 2**63) + b'{}')

# images and bags as tokens: the first byte says how they are read
images = 'a,b,c,d,y\n' + ''.join('%d,%d,%d,%d,%d\n' % (i, i * i % 7, 3, -i, i % 2) for i in range(8))
for bits in (0, 1, 1 + 32, 2 + 32, 2 + 8 + 32, 1 + 4 + 32 + 64, 128 + 1 + 32, 16):
    put('images', 'table%d' % bits, bytes([bits]) + images.encode())
put('images', 'bags', b'\x50bag,label,x,z\nu,p,1,2\nu,p,3,4\nv,q,5,6\nw,,7,8\n')
put('images', 'none', b'\x01a,b,c,d\n1,2,3,4\n5,6,7,8\n')
put('images', 'far', b'\x01a,b,c,d\n1e300,2,3,4\n-1e300,6,7,8\n')

# studies: the first byte has the sizes (1: full) and twice the number of changes, the first lines
study = """study: tour
title: How the risk grows
about: >
  Some text,
  folded.
runs:
  - id: grid
    command: risk
    set: {form: erf, eps: 0.1, show: "risk, linear"}
    axes:
      L: [2, 10]
      lam: {from: 0.01, to: 3, count: 4, spacing: log}
    full: {axes: {L: [2, 10, 100]}, set: {eps: 0}}
  - id: random
    command: risk
    draws: 3
    axes:
      kappa: {uniform: [0, 1]}
      lam: {loguniform: [0.01, 3]}
      L: {integers: [2, 100]}
      eps: {normal: [0.5, 0.1]}
      gamma: {choice: [0.5, 1]}
    seed: 7
  - {id: runs, command: train, set: {init: manifold, steps: 20, lam_schedule: "0:1,10:0.5"}, seeds: 2}
"""
claims = """claims:
  - id: limit
    statement: It tends to eps^2.
    where: {L: 10, lam: [">=", 0.1]}
    take: linear
    reduce: last
    expect: {equal: 0.51, tolerance: 0.005}
    kind: paper
    fails_if: it is larger
    figure: risk-by-lam
  - id: two
    statement: Both cost the same.
    values:
      small: {take: seconds, where: {L: [2, 10]}, reduce: min}
      large: {from: random, take: log(risk) - error(risk), reduce: max}
    quantity: large / small
    expect: {at_most: 5}
  - {id: rate, statement: It grows., take: log(risk), against: log(L - 1), reduce: slope, expect: {between: [1, 2]}}
"""
figures = """figures:
  - id: risk-by-lam
    title: Risk
    kind: lines
    where: {L: 10}
    x: {take: lam, label: lambda, scale: log, limits: [0.01, 1]}
    y: {label: risk, scale: log}
    lines:
      - {take: risk, label: erf, split: L, band: true}
      - {take: linear, style: dashed, fit: true, average: true, from: grid}
    reference: [{y: 0.5, label: limit}]
  - {id: h, kind: heat, x: {take: L}, y: {take: lam}, take: risk, value: {label: r}}
  - {id: b, kind: bars, x: {take: L}, lines: [{take: risk}]}
  - {id: c, kind: calibration, x: {take: risk}, y: {take: check}, split: L, diagonal: equal}
  - {id: t, kind: training, from: runs}
  - {id: s, kind: series, from: runs, x: {take: step}, lines: [{take: excess}]}
"""
put('study', 'runs', b'\x00' + study.encode())
put('study', 'full', b'\x01' + study.encode())
put('study', 'claims', b'\x00' + (study + claims + figures).encode())
put('study', 'changes', b'\x06grid.seeds=[1, 2]\ntitle=Other words\nruns.grid.set.lam=0.2\n' + study.encode())
put('study', 'law', b"""\x00study: a
runs:
  - {command: law, set: {init: overlaps, kappa: 0.5}}
  - {command: landscape, axes: {lam: [0.1]}}
figures:
  - {id: q, kind: quantiles, from: law, of: [kappa, nu]}
  - {id: p, kind: portrait, from: landscape, value: {scale: log}}
""")
put('study', 'latent', b"""\x00study: a
runs:
  - {command: latent, set: {family: process, show: "risk,bayes"}, axes: {L: [1, 2]}}
  - {command: regret, set: {family: concepts}}
  - {command: encoder, set: {family: concept, lengths: "4,8", width: 8, heads: 2}}
  - {command: pretrain}
  - {command: fit}
  - {command: identity, set: {which: merge}}
""")
put('study', 'anchor', b'\x00study: &a x\nruns: *a\n')

# short texts: the first byte says what they are
for i, (kind, text) in enumerate([
        (0, '-2^-(x+1)*3.5e-1/max(y, abs(z))'), (0, 'error(risk) >= sqrt(pi) - inf'), (1, '((((1))))<x'),
        (2, 'lam = 0.1'), (2, 'form!=erf|softmax'), (2, 'lengths=5:0.2,10:0.8'),
        (3, 'AA12'), (3, 'BBinf'), (3, 'CAauto'), (3, 'DC1e-3'),
        (4, '5:0.2,10:0.8'), (4, '4, 8,16'), (4, 'risk, bayes,risk'), (4, '0:1,+1:1e400'),
        (5, 'Ptask=spiked\nform=softmax\nL=5\nlam=0.2'), (5, 'Qinit=manifold\nlam_schedule=0:1,9:0.5'),
        (5, 'Wfamily=concepts\nshow=risk'), (5, 'bfamily=concept\nlengths=4,8\nwidth=8'),
        (6, '{"command":"risk","revision":1,"settings":{"L":10,"form":"e\\"rf","lam":"inf"}}'),
        (7, 'x*,2:'), (7, 'x:x2,-3'), (7, '"x"'), (7, '5,4'), (7, '*'),
        (8, '-123456789012345678901234567890e-17'), (8, '.30000000000000004'), (8, 'nan'), (8, '1e-320'),
        (9, 'kapa \u00fc\u0085'), (9, '0123456789abcdef0123456789abcdef')]):
    put('text', '%d-%02d' % (kind, i), bytes([kind]) + text.encode())

# finished runs as bytes
def done(state, result, reason=b'', scalars=(), series=(), position=3, version=1):
    body = struct.pack('<qIId', position, state, result, 0.5) + struct.pack('<I', len(reason)) + reason
    body += struct.pack('<II', len(scalars), len(series))
    for name, how, samples, value, error in scalars:
        body += bytes([len(name)]) + name + struct.pack('<Bqdd', how, samples, value, error)
    for name, dtype, array in series:
        body += bytes([len(name)]) + name + struct.pack('<BB', dtype, array.ndim)
        body += struct.pack('<%dq' % array.ndim, *array.shape) + array.tobytes()
    return b'FINR' + struct.pack('<IQ', version, len(body) + 16) + body

numbers = [(b'risk', 0, 0, 0.5, 0.0), (b'check', 2, 100, float('nan'), 0.1), (b'share', 3, 8, -0.0, float('inf'))]
arrays = [(b'step', 3, np.arange(3)), (b'curve', 1, tokens), (b'bytes', 4, np.zeros((1, 0, 2, 3), 'u1')),
          (b'small', 0, np.ones(1, 'f4')), (b'whole', 2, np.ones((2, 2, 1), 'i4'))]
put('result', 'failed', done(2, 0, b'no such thing'))
put('result', 'empty', done(1, 1))
put('result', 'scalars', done(1, 1, scalars=numbers))
put('result', 'series', done(1, 1, b'', numbers[:1], arrays))
put('result', 'twice', done(1, 1, scalars=numbers[:1] * 2))
put('result', 'version', done(1, 1, version=2))
put('result', 'claims', done(1, 1, scalars=numbers)[:52] + b'\xff\xff\xff\xff')

# stores: what to ask, then harm to a store that the harness makes (see fuzz_store.c)
def store(ask, *harms):
    return bytes([ask]) + b''.join(harms)

def change(place, data):
    return struct.pack('<BHB', 0, place, len(data)) + data

def cell(column, row, kind, data=b'', start=0, cut=0):
    return struct.pack('<BBBHHH', 64 + column, row, kind, start, cut, len(data)) + data

TEXT, BLOB, WHOLE, REAL, NULL, PACKED, SPLICE = range(7)
ASKS = ['all', 'where', 'lists', 'check', 'csv', 'npz', 'lines', 'bars', 'heat', 'calibration', 'training', 'portrait',
        'quantiles', 'series', 'plot', 'report', 'diff', 'merge', 'take', 'judge', 'plan', 'gc']
ask = {name: number for number, name in enumerate(ASKS)}
for name in ASKS:
    put('store', 'good-' + name, store(ask[name]))
put('store', 'header', store(ask['all'], change(20, b'\x40')))
put('store', 'page', store(ask['all'], change(512 * 20, b'\x0d\x00\x00\xff\xff\x00')))
put('store', 'type', store(ask['check'], change(512 * 25, b'\x02')))
put('store', 'figure', store(ask['lines'], cell(0, 1, SPLICE, b'scale: log', 1620, 4)))
put('store', 'settings', store(ask['where'], cell(13, 2, TEXT, b'{"command":"risk","settings":{"L":"x","lam":')))
put('store', 'shape', store(ask['npz'], cell(29, 2, TEXT, b'9,9,9'), cell(28, 3, TEXT, b'|u1')))
put('store', 'packed', store(ask['training'], cell(30, 5, PACKED, bytes(32)), cell(22, 1, REAL, struct.pack('<d', float('inf')))))
put('store', 'empty', store(ask['all'], cell(29, 5, TEXT, b'0'), cell(30, 5, BLOB)))
put('store', 'rows', store(ask['series'], cell(29, 8, TEXT, b'999999999999,0'), cell(30, 8, PACKED)))
put('store', 'plan', store(ask['plan'], cell(9, 1, TEXT, b'0' * 32), cell(7, 2, WHOLE, struct.pack('<q', -1))))
put('store', 'again', store(ask['plan'], cell(11, 1, TEXT, b'0' * 32), cell(15, 4, WHOLE, b'\x02')))
put('store', 'failed', store(ask['report'], cell(15, 2, WHOLE, b'\x02'), cell(16, 2, TEXT, b'it failed')))
put('store', 'name', store(ask['merge'], cell(21, 2, TEXT, b'a b'), cell(22, 1, REAL, struct.pack('<d', 2))))
put('store', 'taken', store(ask['take'], cell(29, 8, TEXT, b'24'), cell(33, 1, TEXT, b'\xc3\xa4')))
put('store', 'changes', store(ask['judge'], cell(4, 1, TEXT, b'grid.L=[3, 4]\ntitle=<b>'), cell(5, 1, WHOLE, b'\x01')))

# the tool: tables with text, points and columns, words of a command (by its first letter), short ones
put('cli', 'table', '\0a,b,c\n1,x,\n2,"y ""z""",NA\n3,x,4\n')
put('cli', 'numbers', '\0a,b\n1,nan\n2,3\n')
put('cli', 'open', '\0a,"b\n1,"x\n')
put('cli', 'points', '\1x=1,y=2;x=3,y=4e-1\nx,2')
put('cli', 'pattern', '\1x1=1,x2=2,z=3\nx*,z:z,1:2')
for letter, name, words in [('Q', 'sweep', ['--sweep', 'lam=0.1:1:3log', '--sweep', 'd=100,200']),
                            ('Q', 'lengths', ['--lengths', '5:0.2,10:0.8', '--form=softmax', '--show', 'risk,bayes']),
                            ('Q', 'range', ['--task', 'spiked', '--sweep', 'L=2:1000000:7']),
                            ('S', 'train', ['--init', 'manifold', '--lam-schedule=0:1,9:0.5', '--steps', '20', '--json']),
                            ('U', 'fit', ['x.csv', '--model', 'max', '--cv', '5x2', '--features', 'x*,2:']),
                            ('X', 'attend', ['x.csv', '--key', 'x', '--value=y', '--prior', 'inf']),
                            ('[', 'study', ['x.yaml', '--set', 'a.b=[1]', '--shard', '3/10', '--store', 'x.db']),
                            ('e', 'pretrain', ['--family', 'concept', '--width', '8', '--lengths', '4,8,16'])]:
    put('cli', name, '\2' + letter + '\n'.join(words))
put('cli', 'model', '\3max+rbf x4')
put('cli', 'folds', '\00310x5')
put('cli', 'list', '\0034,8,16')
