"""Pieces of sequences: labels that come late, and pieces of one label."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

from partita import ChainCRF, DataWarning, SequenceData
from partita.chain.data import memory as chain_memory


def pieces(kind, rng, count, labels):
    """Sequences whose attributes hardly tell (words), tell by size (numbers), or tell well (matrix)."""
    X, y = [], []
    for _ in range(count):
        row = [str(rng.choice(list(labels))) for _ in range(6)]
        codes = np.array(["ABC".index(label) for label in row])
        if kind == "words":
            X.append(
                [["bias", f"w:{k % 2}{rng.integers(5)}", f"n:{rng.integers(9)}", f"m:{rng.integers(9)}"] for k in codes]
            )
        elif kind == "numbers":
            X.append([{"bias": 1.0, "x": float(k + 0.1 * rng.normal())} for k in codes])
        else:
            X.append(3.0 * np.eye(3)[codes] + rng.normal(0, 0.5, (6, 3)) + 20.0)
        y.append(row)
    return X, y


@pytest.mark.parametrize("kind", ["words", "numbers", "matrix"])
@pytest.mark.parametrize(("first", "fixed"), [("partial_fit", False), ("partial_fit", True), ("fit", False)])
def test_a_new_label_does_not_unlearn_the_old_ones(kind, first, fixed):
    rng = np.random.default_rng(0)
    old, new, more, test = (pieces(kind, rng, n, z) for n, z in ((300, "AB"), (5, "C"), (60, "ABC"), (60, "ABC")))
    model = ChainCRF(l2=0.1)
    getattr(model, first)(*old, **({"classes": ["A", "B", "C"]} if fixed else {}))
    before = model.score(*old)
    with pytest.warns(DataWarning, match="all 30 positions of this piece have the label 'C', one of 3 known ones"):
        model.partial_fit(*new)
    assert before == 1.0
    assert model.score(*old) >= 0.95
    assert model.score(*new) == 1.0
    assert model.n_seen_ == 305
    model.partial_fit(*more)
    refit = ChainCRF(l2=0.1).fit(old[0] + new[0] + more[0], old[1] + new[1] + more[1])
    assert model.score(*test) >= refit.score(*test) - 0.1  # learned after one more piece


def test_what_is_known_keeps_its_precision_when_a_label_comes():
    rng = np.random.default_rng(0)
    old, new = pieces("words", rng, 300, "AB"), pieces("words", rng, 5, "ABC")
    model = ChainCRF().partial_fit(*old)
    before = dict(zip(model.state_features_, model.precision_, strict=False))
    after = dict(zip(model.partial_fit(*new).state_features_, model.precision_, strict=False))
    ratio = [after[key] / value for key, value in before.items()]
    assert min(ratio) >= 1.0 - 1e-6
    assert max(ratio) < 1.3


def test_copies_and_files_keep_no_sequences_and_say_so(tmp_path):
    rng = np.random.default_rng(0)
    old, new = pieces("words", rng, 300, "AB"), pieces("words", rng, 5, "ABC")
    model = ChainCRF().fit(*old)
    assert b"_kept_sequences" not in pickle.dumps(model)
    model.save(tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), ChainCRF.load(tmp_path / "model")):
        with pytest.warns(
            DataWarning, match="the new label 'C' to a model that was copied or read from a file.* 300 sequences"
        ):
            copy.partial_fit(*new)
        assert copy.score(*old) >= 0.95
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            copy.partial_fit(*new)


def test_the_memory_is_a_sample_of_bounded_size(monkeypatch):
    monkeypatch.setattr(chain_memory, "KEPT_SEQUENCES", 20)
    kept, seen, every = None, 0, []
    for i in range(30):
        data = SequenceData.from_tokens([[[f"piece{i}"]]] * 10)
        kept, seen = chain_memory.remembered(kept, seen, data), seen + 10
        every.append(len(kept))
    assert max(every) == 20 == every[-1]
    monkeypatch.setattr(chain_memory, "KEPT_POSITIONS", 30)
    assert len(chain_memory.remembered(None, 0, SequenceData.from_tokens([[["a"]] * 10] * 10))) == 3


def test_pieces_of_one_label_warn():
    X, y = [[["a"], ["b"]]], [["A", "A"]]
    model = ChainCRF()
    with pytest.warns(DataWarning, match="all 2 positions of this piece have the label 'A', one of 2 known ones"):
        model.partial_fit(X, y, classes=["A", "B"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ChainCRF().partial_fit(X, y)
        model.partial_fit(X, [["A", "B"]])
