"""Files in and out."""

from .model_file import read_model, write_model

__all__ = ["read_model", "write_model"]
