from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.exceptions import NotFittedError

from partita.chain.features import templates as module
from partita.chain.features.templates import FUNCTIONS, Field, Template
from partita.features import Templates
from partita.io import read_columns


def table(*sequences):
    """Columns of sequences of rows of words."""
    return read_columns(io.BytesIO("\n\n".join("\n".join(map(" ".join, rows)) for rows in sequences).encode()))


def naive(templates, sequences, boundary):
    """The attributes of every token, by a loop over everything."""
    found = []
    for rows in sequences:
        for i in range(len(rows)):
            names = []
            for template in templates:
                name = template.texts[0]
                for field, text in zip(template.fields, template.texts[1:], strict=True):
                    at = i + field.offset
                    if 0 <= at < len(rows):
                        value = FUNCTIONS[field.function](rows[at][field.column])
                    elif boundary == "drop":
                        value = None
                    else:
                        value = f"_B{at}" if at < 0 else f"_B+{at - len(rows) + 1}"
                    if value is None:
                        break
                    name += value + text
                else:
                    names.append(name)
            if boundary == "drop":
                names += ["__BOS__"] * (i == 0) + ["__EOS__"] * (i == len(rows) - 1)
            found.append(sorted(names))
    return found


def expanded(X, attributes):
    """The attributes of every row, as often as their entries say."""
    assert X.indices.dtype == np.int32
    assert X.data.dtype == np.float64
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        assert np.all(np.diff(X.indices[lo:hi]) > 0)
    return [
        sorted(name for k in range(lo, hi) for name in [attributes[X.indices[k]]] * int(X.data[k]))
        for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]


words = st.sampled_from(["a", "b", "A/b", "b/a", "a/", "/", "x1", "12", "_B-1", "_B+1", "Zoë"])
data = st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=5), min_size=1, max_size=4)
fields = st.builds(Field, st.integers(-3, 3), st.integers(0, 1), st.sampled_from(sorted(FUNCTIONS)))


@st.composite
def template_sets(draw):
    made = []
    for _ in range(draw(st.integers(1, 4))):
        chosen = tuple(draw(st.lists(fields, max_size=4)))
        texts = st.sampled_from(["", "/", "U:", "V="])
        made.append(Template(tuple(draw(texts) for _ in range(len(chosen) + 1)), chosen))
    return made


@given(template_sets(), data, data, st.sampled_from(["token", "drop"]), st.integers(0, 3))
def test_expansion_is_that_of_a_loop(made, train, test, boundary, minimum):
    templates = Templates(made, boundary=boundary, min_frequency=minimum)
    X, attributes = templates.fit(table(*train))
    expected = naive(made, train, boundary)
    names, counts = np.unique([name for names in expected for name in set(names)], return_counts=True)
    kept = {str(name) for name, count in zip(names, counts, strict=True) if count >= minimum}
    assert sorted(attributes) == sorted(kept)
    assert expanded(X, attributes) == [[name for name in names if name in kept] for names in expected]
    unseen = [[name for name in names if name in kept] for names in naive(made, test, boundary)]
    assert expanded(templates.transform(table(*test)), attributes) == unseen
    copy = Templates.from_state(*templates.to_state())
    assert copy.attributes_ == attributes
    assert expanded(copy.transform(table(*test)), attributes) == unseen


def test_keys_too_large_for_an_integer_are_numbered_in_between(rng, monkeypatch):
    sequences = [[(f"w{k}", "t") for k in rng.integers(0, 9, 30)] for _ in range(5)]
    made = Templates.parse("U:%x[-2,0]/%x[-1,0]/%x[0,0]/%x[1,0]/%x[2,0]", boundary="drop")
    X, attributes = made.fit(table(*sequences))
    monkeypatch.setattr(module, "LARGEST_KEY", 100)
    Y, again = made.fit(table(*sequences))
    assert again == attributes
    assert (X != Y).nnz == 0
    assert expanded(Y, again) == naive(made.templates, sequences, "drop")
    wide = Templates([Template(("",) * 41, (Field(0, 0),) * 40)])
    assert expanded(*wide.fit(table(*sequences))) == naive(wide.templates, sequences, "token")


def test_parse_as_in_the_manual_of_crfpp():
    text = "# Unigram\nU00:%x[-2,0]\nU05:%x[-1,0]/%x[0,0]\n\n  U09:%x[ +1 , 1 ]x\nU\n# Bigram\nB\n"
    made = Templates.parse(text)
    assert made.transitions
    assert made.n_columns == 2
    X, attributes = made.fit(table([("He", "PRP"), ("reckons", "VBZ")]))
    assert attributes == ["U00:_B-2", "U00:_B-1", "U05:_B-1/He", "U05:He/reckons", "U09:VBZx", "U09:_B+1x", "U"]
    assert X.toarray().tolist() == [[1, 0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1]]
    assert not Templates.parse("u:%x[0,0]").transitions


def test_templates_without_a_name_of_their_own_are_a_bag_of_words():
    X, attributes = Templates.parse("U:%x[-1,0]\nU:%x[0,0]").fit(table([("a", "x"), ("a", "x"), ("b", "x")]))
    assert attributes == ["U:_B-1", "U:a", "U:b"]
    assert X.toarray().tolist() == [[1, 1, 0], [0, 2, 0], [0, 1, 1]]


def test_functions_of_words():
    text = "U1:%lower[0,0]\nU2:%shape[0,0]\nU3:%suffix3[0,0]\nU4%isdigit[0,0]\nU5%istitle[-1,0]"
    X, attributes = Templates.parse(text, boundary="drop").fit(table([("McDonald's-77",), ("77",), ("It",), ("...",)]))
    rows = expanded(X, attributes)
    assert rows[0] == ["U1:mcdonald's-77", "U2:XxXx'x-d", "U3:-77", "__BOS__"]
    assert rows[1] == ["U1:77", "U2:d", "U4"]
    assert rows[3] == ["U1:...", "U2:.", "U3:...", "U5", "__EOS__"]


def test_builtin_chunking_has_the_names_of_crfsuite():
    sequences = [[("He", "PRP"), ("sees", "VBZ"), ("it", "PRP")], [("Go", "VB")]]
    X, attributes = Templates.builtin("chunking").fit(table(*sequences))
    rows = expanded(X, attributes)
    single = {"w[-1]=He", "w[0]=sees", "w[1]=it", "pos[-1]=PRP", "pos[0]=VBZ", "pos[1]=PRP"}
    joined = {"w[-1]|w[0]=He|sees", "w[0]|w[1]=sees|it", "pos[-1]|pos[0]=PRP|VBZ", "pos[0]|pos[1]=VBZ|PRP"}
    assert set(rows[1]) == single | joined | {"pos[-1]|pos[0]|pos[1]=PRP|VBZ|PRP"}
    assert rows[3] == ["__BOS__", "__EOS__", "pos[0]=VB", "w[0]=Go"]


@pytest.mark.parametrize("name", ["word", "ner"])
def test_builtin_sets(name):
    sequences = [[("He", "PRP"), ("saw", "VBD"), ("42", "CD")], [("NATO", "NNP")]]
    made = Templates.builtin(name)
    X, attributes = made.fit(table(*sequences))
    assert expanded(X, attributes) == naive(made.templates, sequences, "drop")
    assert {"lower[0]=nato", "isupper[0]", "prefix3[0]=NAT", "w[0]=NATO", "shape[0]=X"} <= set(expanded(X, attributes)[3])
    assert ("pos[0]=CD" in attributes) == (name == "ner")


def test_hashing_needs_no_fit_and_keeps_no_names():
    made = Templates.parse("U00:%x[0,0]\nU01:%x[0,0]", hashing=64)
    X = made.transform(table([("a",), ("b",)]))
    assert X.shape == (2, 64)
    assert X.sum() == 4
    Y, attributes = made.fit(table([("b",), ("a",)]))
    assert attributes == []
    assert np.array_equal(X.toarray()[::-1], Y.toarray())
    copy = Templates.from_state(*made.to_state())
    assert (copy.transform(table([("a",), ("b",)])) != X).nnz == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U00:%x[0,0]\nB01:%x[0,0]", r"template line 2, 'B01:%x\[0,0\]': pairs of labels with fields are not implemented"),
        ("*:%x[0,0]", r"template line 1, .* lines must begin with U .*; write a U line and a B line"),
        ("x[0,0]", "lines must begin with U"),
        ("U00:%x[0]", r"a field must look like %x\[-1,0\]"),
        ("U00:%x[0,-1]", r"a field must look like %x\[-1,0\]"),
        ('U00:%t[0,0,"x"]', r"a field must look like %x\[-1,0\]"),
        ("U00:%m[0,0]", "%m is unknown; fields are %x, %lower"),
        ("# nothing\nB", "at least one line that begins with U"),
    ],
)
def test_wrong_templates(text, message):
    with pytest.raises(ValueError, match=message):
        Templates.parse(text)


def test_wrong_options():
    with pytest.raises(NotFittedError, match="Templates has no attributes yet"):
        Templates.builtin("word").transform(table([("a",)]))
    with pytest.raises(ValueError, match="the templates need 3 columns, but <stream> has 2"):
        Templates.parse("U:%x[0,2]").fit(table([("a", "b")]))
    with pytest.raises(ValueError, match="boundary must be one of 'token', 'drop'"):
        Templates.parse("U", boundary="keep")
    with pytest.raises(ValueError, match="name must be one of 'chunking', 'word', 'ner'"):
        Templates.builtin("parsing")
    with pytest.raises(ValueError, match="min_frequency needs a table"):
        Templates.builtin("word", hashing=8, min_frequency=2)
    with pytest.raises(ValueError, match=r"function must be one of x, lower.*'eval'"):
        Templates([Template(("", ""), (Field(0, 0, "eval"),))])


@pytest.mark.data
def test_the_counts_of_crfsuite_on_chunking(data_dir):
    train = read_columns(data_dir / "conll2000" / "train.txt.gz")
    X, attributes = Templates.builtin("chunking").fit(train)
    assert len(attributes) == len(set(attributes)) == 335_674
    assert X.shape == (211_727, 335_674)
    assert X.nnz == 3_808_439
    labels = np.repeat(train.codes[:, 2], np.diff(X.indptr))
    assert len(np.unique(X.indices.astype(np.int64) * 22 + labels)) == 452_610


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U00:%x[-1000000000,0]", "looks at most 10,000 tokens back or ahead, got -1,000,000,000"),
        ("U00:%x[-" + "9" * 5000 + ",0]", "looks at most 10,000 tokens"),
        ("U00:%x[0,1000000000]", "column is below 10,000, got 1,000,000,000"),
        ("U00:" + "%x[0,0]" * 1001, "at most 1,000 fields, got 1,001"),
        ("#" * 10_000_001, "at most 10,000,000 characters, got 10,000,001"),
    ],
    ids=["far", "farther", "wide", "long", "large"],
)
def test_templates_without_measure_are_refused_at_once(text, message):
    with pytest.raises(ValueError, match=message):
        Templates.parse(text)


def test_fields_made_by_hand_are_checked_too():
    with pytest.raises(ValueError, match="at most 10,000 tokens"):
        Templates([Template(("U", ""), (Field(-(10**9), 0),))])
    with pytest.raises(ValueError, match="column must be an integer >= 0, got -1"):
        Templates([Template(("U", ""), (Field(0, -1),))])
    with pytest.raises(ValueError, match="one text more than fields"):
        Templates([Template(("U",), (Field(0, 0),))])


def test_too_many_templates_for_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr("partita.core.memory.available_memory", lambda: 1e6)
    columns = read_columns(io.BytesIO(b"a\n" * 1000))
    templates = Templates.parse("\n".join(f"U{i}:%x[0,0]" for i in range(2000)))
    with pytest.raises(ValueError, match=r"2000 templates with 1 different fields, of 1000 tokens, needs 64.1 MB"):
        templates.fit(columns)


def test_fields_far_outside_cost_what_can_occur():
    columns = read_columns(io.BytesIO(b"a\nb\n"))
    assert Templates.parse("U:%x[-10000,0]").fit(columns)[1] == ["U:_B-10000", "U:_B-9999"]
