"""Bytes that were whole once: what a stranger's parser, disk or malice makes of them."""

from hypothesis import strategies as st


def with_flipped_bit(data: bytes, bit: int) -> bytes:
    """The bytes with one bit changed, counted from the lowest of the first byte."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes cut, with a byte changed, or with others put in: they nearly parse."""
    position = draw(st.integers(0, len(whole)))
    replaced = draw(st.integers(0, 4))
    return whole[:position] + draw(st.binary(max_size=4)) + whole[position + replaced :]
