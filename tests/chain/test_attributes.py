from __future__ import annotations

import collections
import copy
import decimal
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.exceptions import NotFittedError

from partita.chain.features import attributes as module
from partita.core.arrays.strings import pack_strings, unpack_strings
from partita.features import AttributeVectorizer


def rows(X, attributes):
    assert X.indices.dtype == np.int32
    assert X.data.dtype == np.float64
    found = []
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        assert np.all(np.diff(X.indices[lo:hi]) > 0)
        found.append({attributes[j]: value for j, value in zip(X.indices[lo:hi], X.data[lo:hi].tolist(), strict=True)})
    return found


def naive(token):
    """The documented rules, by recursion; repeated attributes added up."""
    total = collections.defaultdict(float)

    def visit(prefix, item):
        if isinstance(item, dict):
            for key, value in item.items():
                name = prefix + (key.decode() if isinstance(key, bytes) else key)
                if isinstance(value, dict | list | set):
                    visit(name + ":", value)
                elif isinstance(value, str | bytes):
                    total[f"{name}:{value.decode() if isinstance(value, bytes) else value}"] += 1.0
                else:
                    total[name] += float(value)
        else:
            for key in item:
                total[prefix + (key.decode() if isinstance(key, bytes) else key)] += 1.0

    visit("", token)
    return dict(total)


names = st.sampled_from(["a", "b", "a:b", "", "é", b"a", "Ã©", "é".encode()])
numbers = st.sampled_from(
    [0.0, 1.0, -1, -2, 2, True, False, 0.5, 2.0**61, 1 + 2**61, np.float32(0.25), np.int64(3), np.True_]
)
inner = st.recursive(
    st.one_of(names, numbers, st.lists(names, max_size=3), st.sets(names, max_size=3)),
    lambda value: st.dictionaries(names, value, max_size=3),
    max_leaves=6,
)
tokens = st.one_of(
    st.dictionaries(names, inner, max_size=4),
    st.dictionaries(names, st.one_of(names, numbers), max_size=4),
    st.lists(names, max_size=4),
    st.lists(names, max_size=4).map(tuple),
    st.sets(names, max_size=4),
    st.frozensets(names, max_size=4),
)
data = st.lists(st.lists(tokens, max_size=4), max_size=4)


@given(data, data, st.sampled_from([1, 5, 50_000]))
def test_rules(train, test, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ENTRIES", block)
        vectorizer = AttributeVectorizer()
        X, offsets = vectorizer.fit_transform(train)
        assert offsets.dtype == np.int64
        assert np.diff(offsets).tolist() == [len(sequence) for sequence in train]
        assert rows(X, vectorizer.attributes_) == [naive(token) for sequence in train for token in sequence]
        known = set(vectorizer.attributes_)
        assert len(known) == len(vectorizer.attributes_) == X.shape[1]
        expected = [{k: v for k, v in naive(token).items() if k in known} for sequence in test for token in sequence]
        for made in (vectorizer, AttributeVectorizer.from_state(*vectorizer.to_state())):
            Y, _ = made.transform(test)
            assert rows(Y, made.attributes_) == expected
            assert Y.shape[1] == X.shape[1]


CASES = [
    {"a": 1.5, "b": True, "c": False, "d": 2, "e": -1, "f": -2},
    {"a": "b", "c": b"d", b"e": 1, "": "", "g": "x:y", "h": "1.5"},
    {"a": np.float32(1.5), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("e"), "f": np.array(2.5)},
    {"a": decimal.Decimal("1.5"), "b": "é"},
    {"a": {"b": 1, "c": "d", "e": {"f": ["x", "y"], "g": False}}, "h": {"x"}, "i": [], "j": {}, "k": {b"l": b"m"}},
    collections.OrderedDict(b=1, a="x"),
    collections.Counter("aab"),
    collections.defaultdict(dict, a=2),
    {},
    [],
    ["a", b"b"],
    ("a", "b"),
    {"a"},
    frozenset("ab"),
    np.array(["a", "b"]),
]
REFUSED = [
    ({"a": None}, "the value of attribute 'a' must be a finite number.*got None"),
    ({"a": ("x", "y")}, r"got \('x', 'y'\) \(tuple\)"),
    ({"a": frozenset("x")}, "frozenset"),
    ({"a": 1j}, "complex"),
    ({"a": 10**400}, "attribute 'a' must be a finite number"),
    ({"a": np.zeros(1)[None]}, "ndarray"),
    ({"a": bytearray(b"x")}, "bytearray"),
    ({1: 2}, r"attribute names must be strings, got 1 \(int\)"),
    ({b"\xe9": 2}, "attribute names must be UTF-8"),
    ({"a": [1]}, r"attribute names must be strings, got 1 \(int\)"),
    ({"a": [["b"]]}, r"attribute names must be strings, got \['b'\]"),
    ({"a": [{"b": 1}]}, "attribute names must be strings"),
    ([1], "attribute names must be strings, got 1"),
    ([("a", 1.0)], "attribute names must be strings"),
    ([["a"]], "attribute names must be strings"),
    (None, r"a token must be a dict or a list of strings, got None \(NoneType\)"),
    (3, "a token must be a dict or a list"),
    (b"abc", "a token must be a dict or a list"),
    (iter(["a"]), "a token must be a dict or a list"),
]


@pytest.mark.parametrize("token", CASES, ids=lambda value: type(value).__name__)
def test_same_attributes_as_python_crfsuite(token):
    crfsuite = pytest.importorskip("pycrfsuite")
    sequence = crfsuite.ItemSequence([token])
    vectorizer = AttributeVectorizer()
    X, _ = vectorizer.fit_transform([[token]])
    assert rows(X, vectorizer.attributes_) == sequence.items()
    Y, offsets = vectorizer.transform([sequence])
    assert rows(Y, vectorizer.attributes_) == sequence.items()
    assert offsets.tolist() == [0, 1]


@pytest.mark.parametrize(("token", "message"), REFUSED, ids=lambda value: type(value).__name__)
def test_refused_with_its_place(token, message):
    for before in (["x"], {"x": "y"}, {"x": ["y"]}):
        with pytest.raises(ValueError, match="^X, sequence 2, position 1: .*" + message):
            AttributeVectorizer().fit_transform([[before, before], [], [before, token], [before]])
    crfsuite = pytest.importorskip("pycrfsuite")
    # Older NumPy makes numbers of arrays with one entry, and warns.
    with warnings.catch_warnings(action="error"), pytest.raises((SystemError, UnicodeDecodeError, DeprecationWarning)):
        crfsuite.ItemSequence([token]).items()


@pytest.mark.parametrize("token", ["abc", {"a": float("nan")}, {"a": {"b": np.inf}}], ids=repr)
def test_refused_although_python_crfsuite_takes_them(token):
    with pytest.raises(ValueError, match=r"^X, sequence 0, position 1: "):
        AttributeVectorizer().fit_transform([[["a"], token]])


@pytest.mark.parametrize("X", ["abc", 3, None, {"a": 1}, ["abc"], [{"a": 1}], [3]], ids=repr)
def test_refused_as_sequences(X):
    with pytest.raises(ValueError, match="must be a list of"):
        AttributeVectorizer().fit_transform(X)


def test_repeated_attributes_count_twice_as_in_crfsuite(tmp_path):
    crfsuite = pytest.importorskip("pycrfsuite")
    trainer = crfsuite.Trainer(verbose=False, params={"max_iterations": 5})
    trainer.append([["a"], ["b"], ["a"]], ["x", "y", "x"])
    trainer.train(str(tmp_path / "model"))
    with crfsuite.Tagger().open(str(tmp_path / "model")) as tagger:
        chances = []
        for token in (["a", "a"], {"a": 2.0}, ["a"]):
            tagger.set([token])
            chances.append(tagger.marginal("x", 0))
    assert chances[0] == chances[1] != chances[2]
    X, _ = AttributeVectorizer().fit_transform([[["a", "a"]]])
    assert X.toarray().tolist() == [[2.0]]


def test_weights_of_zero_stay_and_order_is_that_of_first_occurrence():
    vectorizer = AttributeVectorizer()
    X, _ = vectorizer.fit_transform([[{"b": 0.0, "a": "x"}], [["c", "b"]]])
    assert vectorizer.attributes_ == ["b", "a:x", "c"]
    assert X.nnz == 4


def test_minimum_frequency_counts_tokens():
    vectorizer = AttributeVectorizer(min_frequency=2)
    X, _ = vectorizer.fit_transform([[["a", "a"], ["b"], {"b": 0.5}, ["c"]]])
    assert vectorizer.attributes_ == ["b"]
    assert X.toarray().tolist() == [[0.0], [1.0], [0.5], [0.0]]
    assert vectorizer.transform([[["c", "b"]]])[0].toarray().tolist() == [[1.0]]


def test_a_failed_fit_leaves_the_old_one():
    vectorizer = AttributeVectorizer()
    vectorizer.fit_transform([[["a"]]])
    with pytest.raises(ValueError, match="sequence 0, position 1"):
        vectorizer.fit_transform([[["b"], [1]]])
    assert vectorizer.attributes_ == ["a"]
    assert vectorizer.transform([[["new"]]])[0].shape == (1, 1)
    assert vectorizer.attributes_ == ["a"]


def test_unfitted():
    made = AttributeVectorizer()
    for use in (lambda: made.transform([[["a"]]]), lambda: made.attributes_, made.to_state):
        with pytest.raises(NotFittedError, match="AttributeVectorizer has no attributes yet: fit it first"):
            use()


def test_hashing_is_stable_and_keeps_nothing():
    made = AttributeVectorizer(hashing=1000)
    X, _ = made.transform([[["a", "é"], {"w": "b", "x": 0.5}]])
    # CRC-32 of "a", "é", "w:b" and "x", modulo 1000
    expected = np.zeros((2, 1000))
    expected[0, [0xE8B7BE43 % 1000, 235179326 % 1000]] = 1.0
    expected[1, [686455242 % 1000, 2363233923 % 1000]] = 1.0, 0.5
    assert made.attributes_ == []
    assert np.array_equal(X.toarray(), expected)
    copy = AttributeVectorizer.from_state(*made.to_state())
    assert (copy.fit_transform([[["a", "é"], {"w": "b", "x": 0.5}]])[0] != X).nnz == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_frequency": -1}, "min_frequency must be an integer >= 0"),
        ({"hashing": 0}, "hashing must be an integer >= 1"),
        ({"hashing": 2**32}, r"hashing must be at most 2\*\*31"),
        ({"hashing": 8, "min_frequency": 2}, "min_frequency needs a table"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        AttributeVectorizer(**options)


@given(st.lists(st.text(max_size=5), max_size=6))
def test_string_tables(strings):
    content, offsets = pack_strings(strings)
    assert (content.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert unpack_strings(content, offsets) == strings


def test_damaged_string_tables():
    content, offsets = pack_strings(["ab", "c"])
    for wrong in (offsets[1:], offsets[:-1], offsets[[0, 2, 1]], offsets[:0]):
        with pytest.raises(ValueError, match="offsets of a string table"):
            unpack_strings(content, wrong)


def test_copies_number_names_as_the_original_does():
    X = [[{"w": "a"}, {"w": "b"}], [{"w": "c"}]]
    vectorizer = AttributeVectorizer()
    expected = vectorizer.fit_transform(X)[0]
    for twin in (pickle.loads(pickle.dumps(vectorizer)), copy.deepcopy(vectorizer)):
        assert twin.attributes_ == vectorizer.attributes_
        assert (twin.transform(X)[0] != expected).nnz == 0
