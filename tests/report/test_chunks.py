"""Chunk scores against conlleval's printed text and against a plain reading of the rules, row by row."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.metrics import chunk_scores

# What conlleval.pl (2004-01-26) prints for these pairs of labellings, one line per sequence: true | predicted.
OFFICIAL = {
    "I after O starts a chunk": (
        "O I-NP I-NP O|O B-NP I-NP O",
        """\
processed 4 tokens with 1 phrases; found: 1 phrases; correct: 1.
accuracy:  75.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00
               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1""",
    ),
    "a change of type starts a chunk": (
        "B-NP I-VP I-VP O|B-NP B-VP I-VP O",
        """\
processed 4 tokens with 2 phrases; found: 2 phrases; correct: 2.
accuracy:  75.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00
               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
               VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1""",
    ),
    "B after B": (
        "B-NP B-NP I-NP|B-NP I-NP I-NP",
        """\
processed 3 tokens with 2 phrases; found: 1 phrases; correct: 0.
accuracy:  66.67%; precision:   0.00%; recall:   0.00%; FB1:   0.00
               NP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1""",
    ),
    "sequences end chunks": (
        "B-NP I-NP|B-NP I-NP\nI-NP O|I-NP I-NP\nI-NP|I-NP",
        """\
processed 5 tokens with 3 phrases; found: 3 phrases; correct: 2.
accuracy:  80.00%; precision:  66.67%; recall:  66.67%; FB1:  66.67
               NP: precision:  66.67%; recall:  66.67%; FB1:  66.67  3""",
    ),
    "E starts after E and ends before I; S is unknown to it": (
        "I-NP E-NP E-NP I-NP S-NP S-NP O S-VP|I-NP E-NP I-NP I-NP S-NP S-NP O S-NP",
        """\
processed 8 tokens with 4 phrases; found: 3 phrases; correct: 1.
accuracy:  75.00%; precision:  33.33%; recall:  25.00%; FB1:  28.57
               NP: precision:  33.33%; recall:  33.33%; FB1:  33.33  3
               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0""",
    ),
    "brackets are chunks of one position": (
        "[-NP ]-NP O [-NP|[-NP ]-NP O B-NP",
        """\
processed 4 tokens with 3 phrases; found: 3 phrases; correct: 3.
accuracy:  75.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00
               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  3""",
    ),
    "the type follows the first dash": (
        "B-a-b I-a-b I-a O|B-a-b I-a-b O I-b",
        """\
processed 4 tokens with 2 phrases; found: 2 phrases; correct: 1.
accuracy:  50.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                a: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
              a-b: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
                b: precision:   0.00%; recall:   0.00%; FB1:   0.00  1""",
    ),
    "O only": (
        "O O|O O",
        """\
processed 2 tokens with 0 phrases; found: 0 phrases; correct: 0.
accuracy: 100.00%; precision:   0.00%; recall:   0.00%; FB1:   0.00""",
    ),
    "nothing": ("|", "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0."),
}


def _read(text):
    pairs = [line.split("|") for line in text.split("\n")]
    return [true.split() for true, _ in pairs], [pred.split() for _, pred in pairs]


@pytest.mark.parametrize("case", OFFICIAL)
def test_the_text_of_conlleval(case):
    pairs, text = OFFICIAL[case]
    assert str(chunk_scores(*_read(pairs))) == text


def _split(label):
    tag, _, kind = label.partition("-")
    return tag, kind


def _starts(before, after):
    (tag0, kind0), (tag1, kind1) = before, after
    pairs = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
    return (
        (len(tag0 + tag1) == 2 and tag0 + tag1 in pairs) or tag1 in ("[", "]") or (tag1 not in ("O", ".") and kind0 != kind1)
    )


def _ends(before, after):
    (tag0, kind0), (tag1, kind1) = before, after
    pairs = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
    return (
        (len(tag0 + tag1) == 2 and tag0 + tag1 in pairs) or tag0 in ("[", "]") or (tag0 not in ("O", ".") and kind0 != kind1)
    )


def _row_by_row(y_true, y_pred):
    """Counters of correct, found and true chunks by type, by reading on with one bit of memory."""
    correct, found, true = Counter(), Counter(), Counter()
    last_t = last_p = ("O", "")
    agreed = False
    for labels_t, labels_p in zip(y_true, y_pred, strict=True):
        for t, p in zip([*map(_split, labels_t), ("O", "")], [*map(_split, labels_p), ("O", "")], strict=True):
            ends = _ends(last_t, t), _ends(last_p, p)
            if agreed and all(ends):
                correct[last_t[1]] += 1
                agreed = False
            elif any(ends) or t[1] != p[1]:
                agreed = False
            starts = _starts(last_t, t), _starts(last_p, p)
            agreed = agreed or (all(starts) and t[1] == p[1])
            true[t[1]] += starts[0]
            found[p[1]] += starts[1]
            last_t, last_p = t, p
    if agreed:
        correct[last_t[1]] += 1
    return correct, found, true


def _labellings(labels):
    """Pairs of labellings in which the second mostly repeats the first."""
    label = st.sampled_from(labels)
    position = st.tuples(label, label, st.integers(0, 3)).map(lambda t: (t[0], t[1] if t[2] == 0 else t[0]))
    return st.lists(st.lists(position, max_size=8), max_size=5).map(
        lambda data: ([[a for a, _ in row] for row in data], [[b for _, b in row] for row in data])
    )


LABELS = ["O", "B-X", "I-X", "E-X", "S-X", "[-X", "]-X", "B-Y", "I-Y", "E-Y", "B", "I", ".", "NN", "O-X", ".-X", "B-X-Y"]


@given(_labellings(LABELS) | _labellings(LABELS[:3] + LABELS[7:9]) | _labellings(["O", "B", "I", "E", "NN", ".", "B-X"]))
def test_lenient_chunks_row_by_row(pair):
    scores = chunk_scores(*pair)
    correct, found, true = _row_by_row(*pair)
    expected = {kind: (correct[kind], found[kind], true[kind]) for kind in {*correct, *found, *true}}
    expected = {kind: counts for kind, counts in expected.items() if any(counts)}
    assert {kind: (c.correct, c.found, c.true) for kind, c in scores.by_type.items()} == expected
    assert scores.overall.true == sum(true.values())
    assert list(scores.by_type) == sorted(scores.by_type)


def _strict_chunks(labels, closed):
    """All well-formed chunks of one sequence, by trying every interval."""
    chunks = set()
    for i in range(len(labels)):
        for j in range(i + 1, len(labels) + 1):
            tags, kinds = zip(*map(_split, labels[i:j]), strict=True)
            if len(set(kinds)) > 1:
                continue
            text = "".join(tags)
            if closed:
                well_formed = text == "S" or (text[0] == "B" and text[-1] == "E" and set(text[1:-1]) <= {"I"} and j > i + 1)
            else:
                goes_on = j < len(labels) and labels[j] == ("I-" + kinds[0] if kinds[0] else "I")
                well_formed = text[0] == "B" and set(text[1:]) <= {"I"} and not goes_on
            if well_formed:
                chunks.add((i, j, kinds[0]))
    return chunks


@pytest.mark.parametrize(("scheme", "letters"), [("iob2", "BI"), ("iobes", "BIES")])
@given(data=st.data())
def test_strict_chunks_by_trying_every_interval(scheme, letters, data):
    y_true, y_pred = data.draw(_labellings(["O", *(f"{letter}{kind}" for letter in letters for kind in ("-X", "-Y", ""))]))
    true, found, correct = Counter(), Counter(), Counter()
    for labels_t, labels_p in zip(y_true, y_pred, strict=True):
        chunks_t, chunks_p = (_strict_chunks(labels, scheme == "iobes") for labels in (labels_t, labels_p))
        for counter, chunks in ((true, chunks_t), (found, chunks_p), (correct, chunks_t & chunks_p)):
            counter.update(kind for _, _, kind in chunks)
    scores = chunk_scores(y_true, y_pred, scheme=scheme)
    assert {kind: (c.correct, c.found, c.true) for kind, c in scores.by_type.items()} == {
        kind: (correct[kind], found[kind], true[kind]) for kind in {*true, *found}
    }


@pytest.mark.parametrize(
    ("labels", "lenient", "iob2"),
    [
        ("O I-X I-X", 1, 0),
        ("B-X I-Y", 2, 1),
        ("B-X B-X", 2, 2),
        ("B-X I-Y I-X", 3, 1),
        ("I-X B-X", 2, 1),
        ("O I I O B", 2, 1),
    ],
)
def test_where_lenient_and_strict_differ(labels, lenient, iob2):
    y = [labels.split()]
    assert chunk_scores(y, y).overall.true == lenient
    assert chunk_scores(y, y, scheme="iob2").overall.true == iob2


@pytest.mark.parametrize(
    ("labels", "lenient", "iobes"),
    [("S-X S-X", 1, 2), ("B-X E-X B-X E-X", 1, 2), ("B-X I-X O", 1, 0), ("O E-X", 1, 0), ("B-X B-X E-X S-Y", 3, 2)],
)
def test_iobes_counts_closed_chunks_only(labels, lenient, iobes):
    y = [labels.split()]
    assert chunk_scores(y, y).overall.true == lenient
    assert chunk_scores(y, y, scheme="iobes").overall.true == iobes


def test_numbers_are_shares():
    scores = chunk_scores([["B-X", "O", "B-Y", "B-Y"]], [["B-X", "B-X", "O", "B-Y"]])
    assert (scores.precision, scores.recall, scores.accuracy) == (2 / 3, 2 / 3, 0.5)
    assert scores.f1 == pytest.approx(2 / 3)
    assert (scores.by_type["X"].precision, scores.by_type["X"].recall) == (0.5, 1.0)
    empty = chunk_scores([], [])
    assert (empty.precision, empty.recall, empty.f1, empty.accuracy) == (0.0, 0.0, 0.0, 0.0)


def test_arrays_and_empty_sequences():
    y = [np.array(["B-X", "I-X"]), np.array([], str), np.array(["I-X"])]
    assert chunk_scores(y, [list(labels) for labels in y]).overall.correct == 2


@pytest.mark.parametrize(
    ("y_true", "y_pred", "scheme", "message"),
    [
        ([["O"]], [["O"]], "iob1", "scheme must be one of 'conlleval', 'iob2', 'iobes', not 'iob1'"),
        ([["O"], ["O"]], [["O"], ["O", "O"]], "iob2", "sequence 1 .* 1 labels in y_true and 2 in y_pred"),
        ([["O"]], [["O"], ["O"]], "iob2", "y_true has 1 sequences, y_pred 2"),
        (["O", "B-X"], ["O", "B-X"], "iob2", "y_true must be a list of sequences of labels, but its entry 0 is 'O'"),
        (
            [["O"]],
            [["E-X"]],
            "iob2",
            r"y_pred has the label 'E-X', which scheme 'iob2' does not know: expected O, .*I-<type>",
        ),
        ([["O-X"]], [["O"]], "iobes", "y_true has the label 'O-X'"),
        ([["BI-X"]], [["O"]], "iob2", "y_true has the label 'BI-X'"),
        ([[""]], [["O"]], "iob2", "y_true has the label ''"),
        ([[1]], [[2]], "conlleval", "labels must be strings .* got 1"),
        ([[1]], [["O"]], "conlleval", "labels of one type"),
    ],
)
def test_bad_input_is_named(y_true, y_pred, scheme, message):
    with pytest.raises(ValueError, match=message):
        chunk_scores(y_true, y_pred, scheme=scheme)


def test_large_inputs_are_fast():
    rng = np.random.default_rng(0)
    labels = ["O", *(f"{letter}-{kind}" for kind in "ABCDEFGHIJ" for letter in "BI")]
    y = [rng.choice(labels, 25).tolist() for _ in range(2000)]
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        chunk_scores(y, y)
        best = min(best, time.perf_counter() - start)
    assert best < 0.25  # 0.02 s measured; a loop over tokens takes longer than this
