"""Tagged text for terminals: a colour per type of label, and how sure the model is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

# Backgrounds of the 256-colour palette on which black text is easy to read; O stays plain.
_COLORS = (117, 150, 222, 183, 216, 123, 191, 218, 152, 186, 147, 209)
_RESET = "\x1b[0m"


def wants_color() -> bool:
    """Whether standard output is a terminal whose user has not set ``NO_COLOR``."""
    return not os.environ.get("NO_COLOR") and sys.stdout is not None and sys.stdout.isatty()


def label_types(labels: Iterable[str]) -> tuple[str, ...]:
    """The types in labels such as ``B-CITY`` or ``NOUN``, sorted, without ``O``."""
    return tuple(sorted({_type(label) for label in labels} - {"O"}))


def render_tagged(
    tokens: Sequence[str],
    labels: Sequence[str],
    probabilities: Sequence[float] | None = None,
    color: bool | None = True,
    types: Sequence[str] | None = None,
) -> str:
    """One line of text with its labels.

    Parameters
    ----------
    tokens, labels : sequences of str, of one length
    probabilities : sequence of float, optional
        The marginal probability of each label, shown in percent behind the token.
    color : bool or None
        With colour, the background tells the type and the label is left out; without, it is written behind the token.
        ``None`` asks `wants_color`.
    types : sequence of str, optional
        All types, so that a type has one colour in many lines (see `label_types`). Those of this line by default.

    Examples
    --------
    >>> render_tagged(["in", "Paris"], ["O", "B-CITY"], [0.99, 0.874], color=False)
    'in(99) Paris/B-CITY(87)'
    """
    if len(tokens) != len(labels):
        raise ValueError(f"labels has {len(labels)} entries for {len(tokens)} tokens: expected as many")
    if probabilities is not None and len(probabilities) != len(tokens):
        raise ValueError(f"probabilities has {len(probabilities)} entries for {len(tokens)} tokens: expected as many")
    color = wants_color() if color is None else color
    codes = _codes(label_types(labels) if types is None else types)
    sure = [""] * len(tokens) if probabilities is None else [f"{100 * float(p):.0f}" for p in probabilities]
    words = [token.replace("\n", "\\n") for token in tokens]
    if not color:
        texts = [word if label == "O" else f"{word}/{label}" for word, label in zip(words, labels, strict=True)]
        return " ".join(f"{text}({p})" if p else text for text, p in zip(texts, sure, strict=True))
    line, previous = "", "O"
    for word, label, percent in zip(words, labels, sure, strict=True):
        style = codes.get(_type(label), "")
        joined = label.startswith(("I-", "E-")) and _type(label) == _type(previous)
        shown = f"{word}\x1b[2m {percent}" if percent else word
        line += (f"{style} {shown}" if joined else f" {style}{shown}") + (_RESET if style or percent else "")
        previous = label
    return line[1:]


def render_legend(types: Sequence[str], color: bool | None = True) -> str:
    """The types in their colours, on one line."""
    color = wants_color() if color is None else color
    return " ".join(f"{style} {name} {_RESET}" if color else name for name, style in _codes(types).items())


def _type(label: str) -> str:
    return label.partition("-")[2] or label


def _codes(types: Sequence[str]) -> dict[str, str]:
    return {name: f"\x1b[30;48;5;{_COLORS[i % len(_COLORS)]}m" for i, name in enumerate(types)}
