"""Numbers for keys, in the order in which they first come."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel


@kernel
def number_keys(keys, count, slots, known, codes, first):
    """Give equal keys one code, a negative key -1; return how many codes there are now.

    `known` holds the keys of the first `count` codes and gets the new ones, and `slots` is their hash table: a power of two
    long, more than all keys, -1 where free. ``first[k]`` is the row of the k-th new code.
    """
    mask = np.uint64(slots.shape[0] - 1)
    one = np.uint64(1)
    before = count
    for i in range(keys.shape[0]):
        key = keys[i]
        if key < 0:
            codes[i] = -1
            continue
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        at = (mixed ^ (mixed >> np.uint64(32))) & mask
        while True:
            code = slots[at]
            if code < 0:
                slots[at] = count
                known[count] = key
                first[count - before] = i
                codes[i] = count
                count += 1
                break
            if known[code] == key:
                codes[i] = code
                break
            at = (at + one) & mask
    return count
