"""How every kernel is compiled: cached on disk, without the GIL, and never with the flags that break -inf or NaN.

numba caches beside the source or in the user's cache folder, and refuses to define a function where it can write to
neither. Here the cache is then a private folder among the temporary files, and if that cannot be either, there is none.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

from numba import config, njit

#: Flags that let sums be vectorised and keep infinities and NaN exact.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


def compiled(**options: Any) -> Callable[[Any], Any]:
    """A decorator for kernels. Division by zero gives inf or NaN as in numpy: kernels never raise."""
    options |= {"nogil": True, "error_model": "numpy"}
    cached, plain = njit(cache=True, **options), njit(**options)

    def decorate(function: Any) -> Any:
        try:
            kernel = cached(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            kernel = _cached_elsewhere(cached, plain, function)
        if getattr(kernel, "_cache", None) is not None and hasattr(kernel._cache, "save_overload"):
            kernel._cache.save_overload = functools.partial(_save, kernel._cache, kernel._cache.save_overload)
            kernel._cache.load_overload = functools.partial(_load, kernel._cache, kernel._cache.load_overload)
        return kernel

    return decorate


def _cached_elsewhere(cached: Any, plain: Any, function: Any) -> Any:
    """The kernel with a cache in a folder of our own, or without one."""
    folder, before = _private_folder(), config.CACHE_DIR  # type: ignore[attr-defined]
    if folder is not None:
        config.CACHE_DIR = folder  # type: ignore[attr-defined]
        try:
            return cached(function)
        except RuntimeError:  # there neither
            pass
        finally:
            config.CACHE_DIR = before  # type: ignore[attr-defined]
    _warn()
    return plain(function)


@functools.cache
def _private_folder() -> str | None:
    """A folder that nobody else can write to: what lies in a cache is executed."""
    try:
        user = os.getuid() if hasattr(os, "getuid") else None
        folder = os.path.join(tempfile.gettempdir(), "partita-kernels" if user is None else f"partita-kernels-{user}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        about = os.lstat(folder)
    except OSError:
        return None
    ours = user is None or (about.st_uid == user and not about.st_mode & 0o077)
    return folder if ours and stat.S_ISDIR(about.st_mode) else None


@functools.cache
def _warn() -> None:
    warnings.warn(
        "compiled kernels cannot be cached: the folders of the package, of the user's cache and of temporary files are "
        "write-protected or full. Every process compiles them anew, which takes seconds to a minute. Set NUMBA_CACHE_DIR to "
        "a folder with room that can be written to",
        stacklevel=3,
    )


def _load(cache: Any, load: Callable[..., Any], *arguments: Any) -> Any:
    """A compiled kernel from the cache. One of another version, whose types have moved, is as good as none: begin anew."""
    try:
        return load(*arguments)
    except (ImportError, AttributeError):
        cache.flush()
        return None


def _save(cache: Any, save: Callable[..., None], *arguments: Any) -> None:
    """Keep a compiled kernel; if there is no room for it, go on without."""
    try:
        save(*arguments)
    except OSError:
        cache.disable()
        _warn()


kernel = compiled()
sum_kernel = compiled(fastmath=REASSOCIATE)
#: For kernels that make no arrays: they borrow those that they are given, and count no references. Where a small function
#: takes tuples of arrays and is called often, counting would take longer than its work. numba refuses a new array here.
in_place = compiled(_nrt=False)
sum_in_place = compiled(fastmath=REASSOCIATE, _nrt=False)
#: The same for the steps of such kernels: their code goes where they are called, because a call copies all that a tuple has.
step = compiled(_nrt=False, forceinline=True)
#: For functions that are called once per example: numba puts their code where they are called.
inlined = compiled(fastmath=REASSOCIATE, inline="always")
