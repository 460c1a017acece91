from __future__ import annotations

import collections
import dataclasses
import sqlite3
import types

import numpy as np
import pytest

from partita.chain.features.records import Frame, as_record
from partita.features import AttributeVectorizer

NAMES = ["word:May", "next:x"]


@dataclasses.dataclass
class Token:
    word: str
    next: str


def rows():
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    named = collections.namedtuple("Row", ["word", "next"])
    made = {
        "dict": {"word": "May", "next": "x"},
        "mapping": types.MappingProxyType({"word": "May", "next": "x"}),
        "user dict": collections.UserDict(word="May", next="x"),
        "named tuple": named("May", "x"),
        "dataclass": Token("May", "x"),
        "sqlite": database.execute("select 'May' as word, 'x' as next").fetchone(),
        "record": np.array([("May", "x")], dtype=[("word", "U3"), ("next", "U3")])[0],
    }
    return made


@pytest.mark.parametrize("kind", rows())
def test_rows_with_names_are_dicts(kind):
    vectorizer = AttributeVectorizer()
    vectorizer.fit_transform([[rows()[kind]]])
    assert vectorizer.attributes_ == NAMES


def test_rows_of_frames_are_dicts():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"word": ["May"], "next": ["x"]})
    table = pa.Table.from_pandas(frame)
    struct = pa.array([{"word": "May", "next": "x"}])[0]
    for sequence in (frame, table, [frame.iloc[0]], list(frame.itertuples()), [struct], frame.to_records(index=False)):
        vectorizer = AttributeVectorizer()
        vectorizer.fit_transform([sequence])
        assert sorted(vectorizer.attributes_) == sorted(NAMES)  # older pyarrow sorts the fields of a struct made of dicts
    assert as_record(pd.Series(["a", "b"])) is None  # no names: a list of attributes, as before
    with pytest.raises(ValueError, match="different names, got 'a' twice"):
        Frame.of(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(
        ValueError, match=r"position 1: the value of attribute 'n' must be .* got nan .*leave out what is not"
    ):
        AttributeVectorizer().fit_transform([pd.DataFrame({"w": ["a", "b"], "n": [1.0, None]})])


def test_names_of_words_are_not_lost():
    """The word May is not the same as the next word May."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"word": ["May", "x"], "next": ["x", "May"]})
    vectorizer = AttributeVectorizer()
    vectorizer.fit_transform([[row for _, row in frame.iterrows()]])
    assert vectorizer.attributes_ == ["word:May", "next:x", "word:x", "next:May"]


def test_other_things_are_no_records():
    for thing in ([1], (1, 2), {"a"}, "abc", 1.0, np.zeros(3), None, Token):
        assert as_record(thing) is None
        assert Frame.of(thing) is None
