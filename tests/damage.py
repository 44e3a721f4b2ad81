"""Files as they arrive from elsewhere: cut short, mistyped, in the wrong encoding, under the wrong name."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from random import Random

WORDS = (
    b"", b"nan", b"inf", b"-inf", b"-1", b"0", b"1e400", b"1e-400", b"99999999999999999999", b"9" * 5000, b"null", b"true", b"[]", b"{}",
    b'""', b"[[[[1]]]]", b'{"a": 1}', b"<script>", b"../../../etc/passwd", b"%s%n", b"=1+1", b"\x00",
    b"\x1b[31m", b"\xff\xfe", b"\xed\xa0\x80",
    b"\xe2\x80\xae", b"\xf0\x9f\x92\xa3", b"[red]", b"\\u0000", b"\\ud800", b"2026-13-45", b"00:00", b"NA", b"#REF!", b"1,5", b'"',
)  # fmt: skip
SIGNS = b",;\t\n\r\"'{}[]:<>=\x00 "
HUGE = 200_000
DEEP = 100_000


def damaged(content: bytes, chance: Random) -> bytes:
    """`content` after one to three accidents."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        content = chance.choice(ACCIDENTS)(content, chance)
    return content


def _place(content: bytes, chance: Random) -> int:
    """Somewhere; more often near the beginning, where headers are."""
    return chance.randint(0, min(len(content), chance.choice((64, 1024, len(content)))))


def cut_short(content: bytes, chance: Random) -> bytes:
    return content[: _place(content, chance)]


def beginning_lost(content: bytes, chance: Random) -> bytes:
    return content[_place(content, chance) :]


def bits_flipped(content: bytes, chance: Random) -> bytes:
    flipped = bytearray(content)
    for _ in range(chance.choice((1, 4, 32)) if content else 0):
        flipped[min(_place(content, chance), len(flipped) - 1)] ^= 1 << chance.randint(0, 7)
    return bytes(flipped)


def piece_lost(content: bytes, chance: Random) -> bytes:
    start = _place(content, chance)
    return content[:start] + content[start + chance.randint(1, 200) :]


def piece_twice(content: bytes, chance: Random) -> bytes:
    start = _place(content, chance)
    end = start + chance.randint(1, 400)
    return content[:end] + content[start:end] + content[end:]


def word_changed(content: bytes, chance: Random) -> bytes:
    """A number, a name or a string becomes another word."""
    words = list(re.finditer(rb"[\w.+-]+", content[:20_000]))
    if not words:
        return chance.choice(WORDS)
    start, end = chance.choice(words).span()
    return content[:start] + chance.choice(WORDS) + content[end:]


def sign_changed(content: bytes, chance: Random) -> bytes:
    places = [place for place, byte in enumerate(content[:20_000]) if byte in SIGNS]
    if not places:
        return content + b"\n"
    place = chance.choice(places)
    other = chance.choice(SIGNS)
    return content[:place] + bytes([other]) + content[place + 1 :]


def huge_field(content: bytes, chance: Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + chance.choice((b"x", b"9", b'"', b" ", b"\xc3\xa9")) * HUGE + content[place:]


def nested(content: bytes, chance: Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + chance.choice((b"[", b'{"a":', b"(")) * DEEP + content[place:]


def nul_bytes(content: bytes, chance: Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + b"\x00" * chance.choice((1, 4096)) + content[place:]


def other_encoding(content: bytes, chance: Random) -> bytes:
    text = content.decode("latin-1")
    return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8", "utf-8-sig", "utf-7")))


def other_line_ends(content: bytes, chance: Random) -> bytes:
    return content.replace(b"\n", chance.choice((b"\r", b"\r\n", b"\n\n", b"\x85", b"\x0c")))


def lines_shuffled(content: bytes, chance: Random) -> bytes:
    lines = content.split(b"\n")
    chance.shuffle(lines)
    return b"\n".join(lines)


def lines_lost(content: bytes, chance: Random) -> bytes:
    lines = content.split(b"\n")
    return b"\n".join(lines[: chance.randint(1, 3)])


def only_blanks(content: bytes, chance: Random) -> bytes:
    return chance.choice((b"", b"\n", b" " * 100, b"\n" * 10_000, b"\xef\xbb\xbf"))


def in_gzip(content: bytes, chance: Random) -> bytes:
    """Compressed, whole or broken, under a name that does not say so."""
    packed = gzip.compress(content, mtime=0)
    return chance.choice((packed, packed[: len(packed) // 2], packed[:-4], packed + b"junk", packed + packed))


ACCIDENTS: tuple[Callable[[bytes, Random], bytes], ...] = (
    cut_short, cut_short, beginning_lost, bits_flipped, bits_flipped, piece_lost, piece_twice, word_changed, word_changed, word_changed,
    sign_changed, sign_changed, huge_field, nested, nul_bytes, other_encoding, other_line_ends, lines_shuffled, lines_lost, only_blanks,
    in_gzip,
)  # fmt: skip
