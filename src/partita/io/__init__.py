"""Files in and out. Readers of graphical models are imported when first used: they need the structures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_names
from .atomic import replacing
from .columns import iter_columns, read_columns, read_conllu
from .model_file import open_model, read_model, write_model

if TYPE_CHECKING:
    from .bif import DiscreteNetwork, read_bif, write_bif
    from .uai import (
        read_evidence,
        read_marginals,
        read_partition,
        read_states,
        read_uai,
        write_evidence,
        write_marginals,
        write_partition,
        write_states,
        write_uai,
    )

_HOME = dict.fromkeys(("DiscreteNetwork", "read_bif", "write_bif"), "bif") | {
    f"{verb}_{noun}": "uai" for verb in ("read", "write") for noun in ("evidence", "marginals", "partition", "states", "uai")
}

__all__ = [
    "DiscreteNetwork",
    "iter_columns",
    "open_model",
    "read_bif",
    "read_columns",
    "read_conllu",
    "read_evidence",
    "read_marginals",
    "read_model",
    "read_partition",
    "read_states",
    "read_uai",
    "replacing",
    "write_bif",
    "write_evidence",
    "write_marginals",
    "write_model",
    "write_partition",
    "write_states",
    "write_uai",
]

__getattr__, __dir__ = lazy_names(globals(), _HOME)
