"""What users give to chains, and what comes back: names for the types in public signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from ...core.types import MatrixLike

#: A label as it comes back: a string, an integer or a boolean, as it was given.
Label: TypeAlias = Any
#: The attributes of a position, with the meaning they have to python-crfsuite.
Token: TypeAlias = Mapping[str, object] | Iterable[str]
#: One sequence: its tokens, or a matrix or a data frame with a row per position.
SequenceLike: TypeAlias = Iterable[Token] | MatrixLike
#: The labels of every sequence: strings or integers, None for unknown ones, or sets of labels. None if X has them.
LabelSequences: TypeAlias = Sequence[object] | ArrayLike | None
#: The number of positions of each sequence, where X is one stacked matrix.
Lengths: TypeAlias = ArrayLike | None
