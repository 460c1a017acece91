"""Buffers come back when their owner dies, and only then, and only if nobody holds them."""

from __future__ import annotations

from partita.core.buffers import Buffers, Owner


def test_reuse():
    buffers = Buffers((3, 2))
    owner = Owner()
    array = buffers.lend(owner)
    assert array.shape == (3, 2)
    other = buffers.lend(owner)
    assert other is not array
    first = id(array)
    del array, other
    assert len(buffers._free) == 0
    del owner
    assert first in [id(a) for a in buffers._free]


def test_an_array_that_is_still_held_is_not_reused():
    buffers = Buffers((2,))
    owner = Owner()
    kept = buffers.lend(owner)
    view = buffers.lend(owner)[:1]
    del owner
    assert buffers._free == []
    assert kept.shape == (2,)
    assert view.shape == (1,)
