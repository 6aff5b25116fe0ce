"""Bags: every way to say what a bag is means the same tokens, without copies, and nonsense is refused in a sentence."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from finetti import Bags

RNG = np.random.default_rng(0)
SIZES = [3, 1, 4, 2]


def some(sizes=SIZES, d=3, dtype=float):
    return [RNG.normal(size=(n, d)).astype(dtype) for n in sizes]


def same(bags, arrays):
    return len(bags) == len(arrays) and all(np.array_equal(a, b) for a, b in zip(bags, arrays))


# ---- ways to say it -------------------------------------------------------------------------------

def test_all_layouts_are_the_same_bags():
    arrays = some()
    flat = np.concatenate(arrays)
    cube = np.full((4, 5, 3), np.nan)
    for i, a in enumerate(arrays):
        cube[i, :len(a)] = a
    groups = np.repeat(["d", "b", "c", "a"], SIZES)
    for bags in (Bags(arrays), Bags(tuple(arrays)), Bags([a.tolist() for a in arrays]), Bags(flat, lengths=SIZES),
                 Bags(flat, groups=groups), Bags(cube, lengths=SIZES), Bags((flat, SIZES)), Bags((flat, groups)),
                 Bags((cube, SIZES)), Bags(Bags(arrays)), Bags(np.array(arrays, dtype=object))):
        assert same(bags, arrays) and bags.lengths.tolist() == SIZES and bags.shape == (4,)
        assert bags.tokens.flags.c_contiguous and bags.dtype == np.float64 and bags.offsets.dtype == np.int64


def test_rows_of_a_group_need_not_be_neighbours():
    X = RNG.normal(size=(7, 2))
    groups = [5, 2, 5, "x", 2, 5, 0]
    bags = Bags(X, groups=np.array(groups, dtype=object))
    assert list(bags.names) == [5, 2, "x", 0]
    assert same(bags, [X[[0, 2, 5]], X[[1, 4]], X[[3]], X[[6]]])
    assert np.array_equal(X[bags.rows], bags.tokens)
    assert np.array_equal(bags._as_given(bags.tokens[:, 0]), X[:, 0])


def test_tokens_of_a_group_keep_their_order():
    X, groups = np.arange(400.0).reshape(400, 1), RNG.integers(0, 3, 400)
    for names in (groups, groups.astype(str), groups.astype(object)):
        assert all((np.diff(bag[:, 0]) > 0).all() for bag in Bags(X, groups=names))


def test_groups_are_not_merged():
    for groups in ([1, "1", 2], [2**53, 2**53 + 1, 0.5], [2**63, 2**63 + 1, -1], ["a", b"a", "b"],
                   [(1, 2), (1, 3), (2,)]):
        bags = Bags(np.eye(3), groups=groups)
        assert bags.names.tolist() == groups and bags.lengths.tolist() == [1, 1, 1]
        assert Bags((np.eye(3), np.array([*groups, None], object)[:3])).names.tolist() == groups
    assert Bags(np.eye(3), groups=[(1, 2), (2, 1), (1, 2)]).names.tolist() == [(1, 2), (2, 1)]


@pytest.mark.parametrize("groups", [[True, False, True], [1.5, -2, 1.5], ["b", "a", "b"], [b"b", b"a", b"b"],
                                    np.array(["2020-01-02", "2020-01-01", "2020-01-02"], "M8[D]")])
def test_groups_of_any_type(groups):
    bags = Bags(np.eye(3), groups=groups)
    assert bags.lengths.tolist() == [2, 1] and list(bags.names) == list(np.asarray(groups)[:2])


def test_two_dimensions_alone_are_bags_of_one():
    X = RNG.normal(size=(5, 2))
    assert same(Bags(X), [X[i:i + 1] for i in range(5)])
    assert same(Bags(X.tolist()), [X[i:i + 1] for i in range(5)])
    assert same(Bags(list(X)), [X[i:i + 1] for i in range(5)])


def test_a_tuple_that_could_be_both_is_refused():
    with pytest.raises(ValueError, match="lengths=.*groups="):
        Bags((np.eye(3), [1, 1, 1]))
    with pytest.raises(ValueError, match="lengths=.*groups="):
        Bags((np.eye(4), [0, 0, 1, 3]))
    with pytest.raises(ValueError, match="neither lengths.*nor groups"):
        Bags((np.eye(3), [1, 1]))
    assert len(Bags((np.eye(3), [7, 7, 7]))) == 1  # only groups are possible
    assert len(Bags((np.eye(2), np.eye(2)))) == 2  # two bags
    assert len(Bags((np.eye(1), [1]))) == 1
    with pytest.raises(ValueError, match="the list alone"):
        Bags((some(), [1, 2, 3, 4]))


# ---- no copies ------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contiguous_tokens_are_not_copied(dtype):
    X = RNG.normal(size=(6, 4)).astype(dtype)
    X3 = X.reshape(3, 2, 4)
    for bags in (Bags(X), Bags(X, lengths=[4, 2]), Bags(X, groups=[1, 1, 0, 0, 0, 5]), Bags(X3), Bags([X]),
                 Bags(X3, lengths=[2, 2, 2]), Bags(Bags(X)), Bags((X, [4, 2]))):
        assert bags.tokens.ctypes.data == X.ctypes.data and bags.dtype == dtype
    part = Bags(X, lengths=[2, 3, 1])[1:]
    assert part.tokens.ctypes.data == X[2:].ctypes.data and part.offsets.tolist() == [0, 3, 4]


def test_read_only_and_mapped_arrays_are_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", RNG.normal(size=(5, 2)))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert Bags(X).tokens.ctypes.data == X.ctypes.data


@pytest.mark.parametrize("convert, dtype", [
    (np.asfortranarray, "f8"), (lambda X: X[:, ::-1], "f8"), (lambda X: X.astype(">f8"), "f8"),
    (lambda X: X.astype(">f4"), "f4"), (lambda X: X.astype("f2"), "f4"), (lambda X: X.astype(np.longdouble), "f8"),
    (lambda X: X.astype("i8"), "f8"), (lambda X: X.astype("u1"), "f4"), (lambda X: X > 0, "f8"),
    (lambda X: X.astype(object), "f8")])
def test_other_numbers_are_converted(convert, dtype):
    X = convert(np.arange(12.0).reshape(4, 3))
    bags = Bags(X)
    assert bags.dtype == np.dtype(dtype) and bags.tokens.dtype.isnative and bags.tokens.flags.c_contiguous
    assert np.array_equal(bags.tokens, np.asarray(X).astype(float))


def test_mixed_types_of_a_list_become_the_wider():
    assert Bags(some(dtype="f4")).dtype == np.float32
    assert Bags(some(dtype="f4") + some(dtype="f8")).dtype == np.float64
    assert Bags([np.ones((2, 2), "f2"), np.ones((1, 2), "i4")]).dtype == np.float64


def test_what_c_reads_by_cannot_be_altered():
    bags = Bags(some())
    for part in (bags, bags[1:], bags[[0, 2]], Bags(np.eye(2)), Bags(np.zeros((2, 2, 2))),
                 Bags(np.eye(2), groups=[1, 0])):
        with pytest.raises(ValueError, match="read-only"):
            part.offsets[0] = 1
        with pytest.raises(AttributeError):
            part.offsets = np.array([0, 1000000])
        with pytest.raises(AttributeError):
            part.tokens = np.zeros((1, 1))


# ---- as a sequence --------------------------------------------------------------------------------

def test_indexing_is_that_of_a_list():
    arrays = some([2, 5, 1, 3, 4])
    bags = Bags(arrays)
    assert np.array_equal(bags[-1], arrays[-1]) and np.array_equal(bags[np.int32(1)], arrays[1])
    assert bags[2].base is not None
    for key in (slice(None), slice(1, 3), slice(3, 1), slice(None, None, -2), slice(-2, None)):
        assert same(bags[key], arrays[key])
    for index in ([4, 0, 0], [-1, 1], [], np.array([], int), np.array([3], np.uint8)):
        assert same(bags[index], [arrays[i] for i in index])
    assert same(bags[[True, False, True, False, True]], [arrays[0], arrays[2], arrays[4]])
    assert same(bags[1:][[2, 0]], [arrays[3], arrays[1]])


@pytest.mark.parametrize("key", [5, -6, [5], "a", 1.0, (0, 1), [[0]], np.array([True]), [0.5], None])
def test_bad_index(key):
    with pytest.raises(IndexError):
        Bags(some([1] * 5))[key]


def test_names_and_rows_follow_an_index():
    X = np.arange(12.0).reshape(6, 2)
    bags = Bags(X, groups=list("abacbb"))
    part = bags[[2, 0]]
    assert list(part.names) == ["c", "a"] and part.rows.tolist() == [3, 0, 2]
    assert np.array_equal(X[part.rows], part.tokens)


def test_scikit_learn_indexes_bags():
    from sklearn.model_selection import KFold, train_test_split
    arrays = some([1, 2, 3, 4, 5, 6])
    bags, y = Bags(arrays), np.arange(6)
    train, test, y_train, y_test = train_test_split(bags, y, random_state=0)
    assert same(train, [arrays[i] for i in y_train]) and same(test, [arrays[i] for i in y_test])
    for into, out in KFold(3).split(bags):
        assert same(bags[out], [arrays[i] for i in out])


def test_scikit_learn_of_all_versions_indexes_bags():
    arrays = some([1, 2, 3])
    bags = Bags(arrays)
    assert same(bags[np.array([2, 0]), ...], [arrays[2], arrays[0]])  # from 1.4 on
    assert same(bags[[True, False, True], ...], [arrays[0], arrays[2]])
    assert np.array_equal(bags[1, ...], arrays[1])


def test_a_damaged_pickle_is_refused():
    bags = Bags(some())
    for part in (pickle.loads(pickle.dumps(bags)), copy.deepcopy(bags), copy.copy(bags)):
        assert same(part, list(bags)) and not part.offsets.flags.writeable
    for name, value in {"_offsets": bags.offsets * 2, "_tokens": bags.tokens[:-1], "tokens": 0}.items():
        with pytest.raises(ValueError, match="do not go together"):
            Bags.__new__(Bags).__setstate__({**bags.__dict__, name: value} if name[0] == "_" else {name: value})
    for value in (bags.offsets[1:], bags.offsets[::-1], bags.offsets[:0], bags.offsets.astype(np.int32)):
        with pytest.raises(ValueError, match="do not go together"):
            Bags.__new__(Bags).__setstate__({**bags.__dict__, "_offsets": value})
    for value in (bags.tokens.astype("f2"), np.asfortranarray(bags.tokens), bags.tokens.astype(">f8"), bags.tokens[0]):
        with pytest.raises(ValueError, match="do not go together"):
            Bags.__new__(Bags).__setstate__({**bags.__dict__, "_tokens": value})


def test_pickle_and_repr():
    bags = Bags(np.eye(4, dtype="f4"), groups=[1, 2, 1, 2])
    again = pickle.loads(pickle.dumps(bags))
    assert same(again, list(bags)) and repr(again) == "Bags(2 bags, 4 tokens, 4 columns, float32)"
    with pytest.raises(TypeError, match="bags.tokens"):
        np.asarray(bags)


def test_values_of_tokens_come_back_as_they_were_laid_out():
    arrays = some()
    values = np.arange(10.0)
    assert [v.tolist() for v in Bags(arrays)._as_given(values)] == [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9]]
    padded = Bags(np.zeros((4, 5, 2)), lengths=SIZES)._as_given(values)
    assert padded.tolist() == [[0, 1, 2, 0, 0], [3, 0, 0, 0, 0], [4, 5, 6, 7, 0], [8, 9, 0, 0, 0]]
    assert Bags(np.zeros((5, 2, 1)))._as_given(values).shape == (5, 2)


def test_replace():
    bags = Bags(np.arange(8.0).reshape(4, 2), groups=list("abab"))
    other = bags.replace(bags.tokens.astype("f4")[:, :1])
    assert same(other, [[[0], [4]], [[2], [6]]]) and list(other.names) == ["a", "b"]
    with pytest.raises(ValueError, match="4 of them"):
        bags.replace(np.zeros((3, 2)))


# ---- data frames ----------------------------------------------------------------------------------

def test_data_frames():
    frame = pd.DataFrame({"b": [1.0, 2, 3], "a": [4, 5, 6]}, index=[9, 9, 7])
    bags = Bags(frame, groups=pd.Series(["x", "y", "x"], index=[9, 9, 7]))
    assert bags.feature_names.tolist() == ["b", "a"] and same(bags, [[[1, 4], [3, 6]], [[2, 5]]])
    assert same(Bags([frame, frame[:1]]), [frame.to_numpy(), frame[:1].to_numpy()])
    assert np.isnan(Bags(pd.DataFrame({"a": pd.array([1, None], "Int64")})).tokens[1, 0])
    assert Bags(pd.DataFrame([[1.0, 2]])).feature_names is None
    assert same(Bags(pd.Series([np.eye(2), np.ones((1, 2))])), [np.eye(2), np.ones((1, 2))])
    assert Bags(frame, lengths=pd.Series([2, 1], dtype="Int64")).lengths.tolist() == [2, 1]
    assert Bags(frame, groups=pd.Categorical(["x", "y", "x"])).names.tolist() == ["x", "y"]
    with pytest.raises(TypeError, match="string names, but 3 is none"):
        Bags(frame.rename(columns={"a": 3}))
    with pytest.raises(ValueError, match="columns of time: when"):
        Bags(frame.assign(when=pd.to_datetime(["2020", "2021", "2022"])))
    with pytest.raises(ValueError, match="row 1 has no group"):
        Bags(frame, groups=pd.Categorical(["x", None, "x"]))
    with pytest.raises(ValueError, match="bag 1 has other columns"):
        Bags([frame, frame[["a", "b"]]])
    with pytest.raises(ValueError, match="columns of text: town"):
        Bags(frame.assign(town=["A", "B", "C"]))


# ---- refused --------------------------------------------------------------------------------------

@pytest.mark.parametrize("X, more, problem, words", [
    ([], {}, ValueError, "empty list"),
    ([np.zeros((2, 3)), np.zeros((0, 3))], {}, ValueError, "bag 1 is empty"),
    ([np.zeros((2, 3)), []], {}, ValueError, "bag 1 is empty"),
    ([np.zeros((2, 3)), np.zeros((2, 4))], {}, ValueError, "bag 1 has 4 columns, bag 0 has 3"),
    ([np.zeros((2, 3)), np.zeros(3)], {}, ValueError, "bag 1 has 1 axes"),
    ([[1, 2], [3]], {}, ValueError, "different lengths"),
    ([[1, 2], ["a", 4]], {}, ValueError, "text"),
    ([np.zeros((2, 3))], {"lengths": [2]}, ValueError, "list of bags"),
    (np.zeros(3), {}, ValueError, "Reshape your data"),
    (np.float64(3), {}, ValueError, "Reshape your data"),
    (np.zeros((2, 2, 2, 2)), {}, ValueError, "reshape"),
    (np.zeros((3, 0)), {}, ValueError, "0 feature"),
    (np.zeros((3, 2)), {"lengths": [1, 1]}, ValueError, "sum to 2, and X has 3 rows"),
    (np.zeros((3, 2)), {"lengths": [2**62, 2**62, 2**62, 2**62, 3]}, ValueError, "sum to"),
    (np.zeros((3, 2)), {"lengths": [3, 0]}, ValueError, "bag 1 is empty"),
    (np.zeros((3, 2)), {"lengths": [4, -1]}, ValueError, "bag 1 is empty"),
    (np.zeros((3, 2)), {"lengths": [1.5, 1.5]}, TypeError, "whole numbers"),
    (np.zeros((3, 2)), {"lengths": [[3]]}, ValueError, "1 axis"),
    (np.zeros((3, 2)), {"lengths": [3], "groups": [1, 1, 1]}, ValueError, "give one of them"),
    (np.zeros((3, 2)), {"groups": [1, 1]}, ValueError, "3 rows"),
    (np.zeros((3, 2)), {"groups": [1, np.nan, 1]}, ValueError, "row 1 has no group"),
    (np.zeros((3, 2)), {"groups": ["a", "a", None]}, ValueError, "row 2 has no group"),
    (np.zeros((3, 2)), {"groups": ["a", np.nan, "b"]}, ValueError, "row 1 has no group"),
    (np.zeros((3, 2)), {"groups": np.ma.masked_array([1, 2, 3], [0, 1, 0])}, TypeError, "masked"),
    (np.zeros((3, 2)), {"groups": np.array([[1], [1, 2], [1]], dtype=object)}, TypeError, "told apart"),
    (np.zeros((3, 2)), {"lengths": np.ma.masked_array([2, 1], [0, 1])}, TypeError, "masked"),
    (np.zeros((2, 3, 2)), {"lengths": [3, 0]}, ValueError, "bag 1 is empty"),
    (np.zeros((2, 3, 2)), {"lengths": [3, 4]}, ValueError, r"lengths\[1\] is 4"),
    (np.zeros((2, 3, 2)), {"lengths": [3]}, ValueError, "1 lengths for 2 bags"),
    (np.zeros((2, 3, 2)), {"groups": [3, 1]}, ValueError, "2-D"),
    (np.zeros((2, 0, 2)), {}, ValueError, "without tokens"),
    (Bags(np.eye(2)), {"lengths": [2]}, ValueError, "Bags already"),
    (np.zeros((2, 2), complex), {}, ValueError, "Complex data not supported"),
    (np.array([["a", "b"]]), {}, ValueError, "text"),
    (np.array([["a", 1]], dtype=object), {}, ValueError, "text 'a'"),
    (np.array([[{}, 1]], dtype=object), {}, TypeError, "argument must be a string.* number"),
    (np.array([[10**400, 1]], dtype=object), {}, ValueError, "too large"),
    (np.ma.masked_array(np.zeros((2, 2)), True), {}, TypeError, "masked"),
    (np.zeros((2, 2), "M8[D]"), {}, ValueError, "no number"),
    (iter([np.zeros((2, 2))]), {}, TypeError, "list of 2-D arrays"),
    ("tokens.npy", {}, TypeError, "list of 2-D arrays"),
    (None, {}, TypeError, "list of 2-D arrays"),
])
def test_refused(X, more, problem, words):
    with pytest.raises(problem, match=words):
        Bags(X, **more)


def test_sparse_is_refused():
    with pytest.raises(TypeError, match="sparse.*toarray"):
        Bags(scipy.sparse.eye(3).tocsr())
