"""How every kernel is compiled: cached on disk, without the GIL, and never with the flags that break -inf or NaN."""

from __future__ import annotations

from numba import njit

#: Flags that let sums be vectorised and keep infinities and NaN exact.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}

kernel = njit(cache=True, nogil=True)
sum_kernel = njit(cache=True, nogil=True, fastmath=REASSOCIATE)
