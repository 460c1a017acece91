"""How every kernel is compiled: cached on disk, without the GIL, and never with the flags that break -inf or NaN."""

from __future__ import annotations

from numba import njit

#: Flags that let sums be vectorised and keep infinities and NaN exact.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}

#: Division by zero gives inf or NaN as in numpy: kernels never raise.
kernel = njit(cache=True, nogil=True, error_model="numpy")
sum_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath=REASSOCIATE)
#: For functions that are called once per example: numba puts their code where they are called.
inlined = njit(cache=True, nogil=True, error_model="numpy", fastmath=REASSOCIATE, inline="always")
