from __future__ import annotations

import re
import sys

import pytest

from partita.report import label_types, render_legend, render_tagged, wants_color

TOKENS, LABELS = ["at", "Main", "Street", "Paris", "\n"], ["O", "B-STREET", "I-STREET", "B-CITY", "O"]


def _plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_colour_changes_nothing_but_colour():
    text = render_tagged(TOKENS, LABELS, [1.0, 0.5, 0.25, 0.999, 1.0])
    assert _plain(text) == "at 100 Main 50 Street 25 Paris 100 \\n 100"
    assert _plain(render_tagged(TOKENS, LABELS)) == "at Main Street Paris \\n"
    assert text.count("\x1b[0m") == len(TOKENS)


def test_a_chunk_is_one_block():
    text = render_tagged(TOKENS, LABELS)
    (street,) = {*re.findall(r"\x1b\[30;48;5;(\d+)m ?(?:Main|Street)", text)}
    assert f"Main\x1b[0m\x1b[30;48;5;{street}m Street" in text
    assert f"\x1b[30;48;5;{street}mParis" not in text
    assert "\x1b" not in render_tagged(["a"], ["O"])


def test_types_keep_their_colours():
    types = label_types(["O", "B-A", "I-A", "B-STREET", "B-CITY", "NOUN"])
    assert types == ("A", "CITY", "NOUN", "STREET")
    legend = render_legend(types)
    assert _plain(legend).split() == list(types)
    style = re.search(r"(\x1b\[[0-9;]*m) CITY ", legend).group(1)
    assert f"{style}Paris" in render_tagged(TOKENS, LABELS, types=types)
    assert f"{style}Paris" not in render_tagged(TOKENS, LABELS)
    assert render_legend(types, color=False) == "A CITY NOUN STREET"


def test_colour_only_where_it_is_welcome(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert wants_color()
    assert "\x1b" in render_tagged(TOKENS, LABELS, color=None)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color()
    assert render_tagged(TOKENS, LABELS, color=None) == "at Main/B-STREET Street/I-STREET Paris/B-CITY \\n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert not wants_color()


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="labels has 1 entries for 2 tokens"):
        render_tagged(["a", "b"], ["O"])
    with pytest.raises(ValueError, match="probabilities has 1 entries for 2 tokens"):
        render_tagged(["a", "b"], ["O", "O"], [0.5])
