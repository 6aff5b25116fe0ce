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

# archives
put('npz', 'good', npz(tokens=tokens, offsets=np.array(offsets), y=np.array(y)))
put('npz', 'bag', npz(True, tokens=tokens.astype('f4'), bag=np.array(bag), y=np.array(y)))
put('npz', 'names', npz(tokens=tokens, offsets=np.array(offsets), y=np.array(y),
                        features=np.array(['x', 'zed'], 'S').view('u1').reshape(2, -1)))
put('npz', 'other', npz(a=np.zeros((0, 3)), b=np.float64(3), c=np.arange(3)))
put('npz', 'cut', npz(tokens=tokens)[:-30])
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, 'w') as z:
    z.writestr('tokens.npy', b'\x93NUMPY\x01\x00\x46\x00' + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9), }  \n")
put('npz', 'claims', buffer.getvalue())

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
