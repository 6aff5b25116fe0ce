"""TextEncoder: pretrained encoders of text, from folders as people have them; texts to tokens."""

import numpy as np

from ._core import ArgumentError, Watch, check, encoded, error, ffi, lib, text


class Embedded:
    """Texts as bags of tokens, one a piece: what TextEncoder.embed returns.

    Attributes
    ----------
    tokens : array (pieces, width) of float32
    offsets : array (texts + 1) of int64; text i has tokens[offsets[i]:offsets[i + 1]]
    pieces : list of str, what a token is of its text, or what stands around it ([CLS])
    begin, end : arrays (pieces) of int64, characters of the text
    pooled : array (texts, width of the end) of float32: the mean of a text's last states (use-lite: its own, of length 1)
    left_out : array (texts) of int64, pieces that were one too many
    """

    def __init__(self, **arrays):
        self.__dict__.update(arrays)

    def __repr__(self):
        return f"Embedded({len(self.offsets) - 1} texts, {len(self.tokens)} pieces, {self.tokens.shape[1]} columns)"

    @property
    def bags(self):
        """The tokens as Bags, for estimators."""
        from ._bags import Bags
        return Bags(self.tokens, lengths=np.diff(self.offsets))


class TextEncoder:
    """A pretrained encoder of text; Encoder.from_folder opens one.

    Attributes
    ----------
    kind : str, 'bert', 'distilbert' or 'use-lite'
    layers, heads, width, hidden, longest, vocabulary : int

    >>> import finetti
    >>> try:
    ...     finetti.Encoder.from_folder("no-such-folder")
    ... except OSError as error:
    ...     print("not there")
    not there
    """

    def __init__(self, pointer):
        self._pointer = ffi.gc(pointer, lib.fin_text_encoder_destroy)
        shape = lib.fin_text_encoder_shape(pointer)
        self.kind = text(shape.kind)
        self.layers, self.heads, self.width, self.hidden, self.longest, self.vocabulary = (
            shape.layers, shape.heads, shape.width, shape.hidden, shape.longest, shape.vocabulary)

    def __repr__(self):
        return f"TextEncoder({self.kind!r}, {self.layers} layers, width {self.width})"

    @classmethod
    def from_folder(cls, path):
        """Opens a folder with config.json, model.safetensors and vocab.txt or tokenizer.json."""
        out, err = ffi.new("fin_text_encoder **"), error()
        check(lib.fin_text_encoder_open(out, encoded(path), err), err)
        return cls(out[0])

    def embed(self, texts, layer=None, longest=0, progress=None):
        """States of all pieces of texts. Those of a text depend on that text alone, not on threads or the texts beside it.

        Parameters
        ----------
        texts : list of str
        layer : int, default=None
            States after so many layers; 0 is the embedding, None the last.
        longest : int, default=0
            Pieces of a text, with those around it; 0: as many as the encoder takes.
        progress : bool or callable, default=None

        Returns
        -------
        Embedded
        """
        if isinstance(texts, str):
            raise TypeError("texts must be a list of str, not one str")
        texts = list(texts)
        for i, one in enumerate(texts):
            if not isinstance(one, str):
                raise TypeError(f"texts[{i}] must be a str, not {type(one).__name__}")
        layer = self.layers if layer is None else layer
        if isinstance(layer, bool) or not isinstance(layer, (int, np.integer)) or not 0 <= layer <= self.layers:
            raise ArgumentError(f"layer must be a whole number from 0 to {self.layers}, not {layer!r}")
        blocks = [ffi.from_buffer(one.encode("utf-8", "replace")) for one in texts]
        sizes = np.array([len(block) for block in blocks], np.int64)
        out, err = ffi.new("fin_text_pieces **"), error()
        check(lib.fin_text_pieces_cut(out, self._pointer, len(texts), ffi.new("const char *[]", blocks),
                                      ffi.cast("int64_t *", sizes.ctypes.data), longest, err), err)
        pieces = ffi.gc(out[0], lib.fin_text_pieces_destroy)
        return self._run(texts, pieces, int(layer), progress)

    def _run(self, texts, pieces, layer, progress):
        offsets = _array(lib.fin_text_pieces_offsets(pieces), len(texts) + 1)
        count = int(offsets[-1])
        tokens = np.empty((count, lib.fin_text_encoder_width(self._pointer, layer)), np.float32)
        pooled = np.empty((len(texts), self.width), np.float32)
        states = ffi.new("float *[]", self.layers + 1)
        states[layer] = ffi.cast("float *", tokens.ctypes.data)
        request = ffi.new("fin_text_pass *", {"states": states, "pooled": ffi.cast("float *", pooled.ctypes.data)})
        with Watch(progress) as watch:
            watch.check(lib.fin_text_encoder_run(self._pointer, pieces, request, watch.pointer, watch.err))
        begin, end = (_array(call(pieces), count) for call in (lib.fin_text_pieces_begin, lib.fin_text_pieces_end))
        ids = lib.fin_text_pieces_ids(pieces)
        names = []
        for i, one in enumerate(texts):
            places = _places(one.encode("utf-8", "replace"))
            for t in range(offsets[i], offsets[i + 1]):
                empty = begin[t] == end[t]
                begin[t], end[t] = places[begin[t]], places[end[t]]
                names.append(text(lib.fin_text_encoder_piece(self._pointer, ids[t])) if empty else one[begin[t]:end[t]])
        return Embedded(tokens=tokens, offsets=offsets, pieces=names, begin=begin, end=end, pooled=pooled,
                        left_out=_array(lib.fin_text_pieces_left_out(pieces), len(texts)))


def _array(pointer, count):
    return np.frombuffer(ffi.buffer(pointer, 8 * count), np.int64).copy() if count else np.empty(0, np.int64)


def _places(bytes_):
    """For every byte of a text, and its end, the characters before it."""
    starts = (np.frombuffer(bytes_, np.uint8) & 0xC0) != 0x80
    return np.concatenate([[0], np.cumsum(starts)]) if bytes_ else np.zeros(1, np.int64)
