"""The generator of addresses that the demo trains on."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from partita.metrics import chunk_scores

_PATH = Path(__file__).resolve().parents[2] / "examples" / "addresses.py"
_SPEC = importlib.util.spec_from_file_location("addresses", _PATH)
addresses = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(addresses)

TYPES = {"NAME", "COMPANY", "STREET", "NUMBER", "UNIT", "POBOX", "DISTRICT", "POSTCODE", "CITY", "REGION", "COUNTRY"}


def test_a_seed_gives_the_same_addresses():
    first = addresses.make_addresses(40, random_state=3)
    assert first == addresses.make_addresses(40, random_state=3)
    assert first != addresses.make_addresses(40, random_state=4)
    assert [part[:10] for part in first] == list(addresses.make_addresses(10, random_state=3))


@pytest.mark.parametrize("missing", [0.1, 0.9, 1.0])
def test_labels_are_well_formed(missing):
    tokens, labels = addresses.make_addresses(400, missing=missing)
    assert [len(row) for row in tokens] == [len(row) for row in labels]
    assert all(row and all(token.strip() == token != "" for token in row) for row in tokens)
    strict, lenient = chunk_scores(labels, labels, scheme="iob2"), chunk_scores(labels, labels)
    assert strict.overall == lenient.overall
    assert sum(label[0] == "B" for row in labels for label in row) == strict.overall.true > 0
    assert set(strict.by_type) <= TYPES


def test_every_country_and_part_occurs():
    tokens, labels = addresses.make_addresses(600)
    assert set(chunk_scores(labels, labels).by_type) == TYPES
    words = {token for row in tokens for token in row}
    assert words >= {"USA", "UK", "Deutschland", "FR", "Nederland", "España", "Italia", "Japan", "Brasil", "Polska"}


def test_new_addresses_have_new_words():
    tokens, _ = addresses.make_addresses(1200)
    seen = {token for row in tokens[:1000] for token in row}
    new = [token not in seen for row in tokens[1000:] for token in row]
    assert 0.1 < sum(new) / len(new) < 0.5


def test_typos_and_missing_parts_are_as_frequent_as_asked():
    clean, labels = addresses.make_addresses(300, typos=0.0, missing=0.0)
    _, fewer = addresses.make_addresses(300, typos=0.0, missing=0.5)
    known = {token for row in clean for token in row}
    typed, _ = addresses.make_addresses(300, typos=1.0, missing=0.0)
    assert sum(token in known for row in typed for token in row) < 0.6 * sum(map(len, clean))
    parts, left = (chunk_scores(y, y).overall.true for y in (labels, fewer))
    assert 0.4 < left / parts < 0.6


def test_features_see_the_neighbours():
    rows = addresses.address_features(["12", "Main", "St."])
    assert [row["word"] for row in rows] == ["12", "main", "st."]
    assert (rows[0]["shape"], rows[1]["shape"], rows[2]["shape"]) == ("99", "Xx", "Xx.")
    assert (rows[1]["-1:word"], rows[1]["+1:word"], rows[0]["+2:word"]) == ("12", "st.", "st.")
    assert "BOS" in rows[0]
    assert "EOS" in rows[2]
    assert "-1:word" not in rows[0]


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="n must not be negative, got -1"):
        addresses.make_addresses(-1)
    with pytest.raises(ValueError, match="typos must be between 0 and 1, got 2"):
        addresses.make_addresses(1, typos=2)
