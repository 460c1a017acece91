"""Files in and out."""

from .atomic import replacing
from .columns import iter_columns, read_columns, read_conllu
from .model_file import read_model, write_model

__all__ = ["iter_columns", "read_columns", "read_conllu", "read_model", "replacing", "write_model"]
