"""Where the sentences of a text begin and end: a splitter that needs no model, for windows and passages.

A sentence ends at . ! ? … (with closing quotes and brackets) before a space and anything but a lower-case letter, at 。！？,
at a blank line, and before an item of a list. Initials, numbers of a list and common abbreviations end none.
"""

from __future__ import annotations

import re

# A full stop, a CJK stop, or a break in the layout; the text of a sentence runs to the end of the match.
_END = re.compile(
    r"""(?P<stop>[.!?…]+["'”’)\]»]*)(?=\s+[^\sa-z])"""
    r"""|[。！？]+["」』”’)]*"""
    r"""|(?P<layout>\s*\n(?:[ \t]*\n|(?=[ \t]*(?:[-*•#]|\d+[.)])\s)))"""
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Gen|Col|Capt|Lt|Sgt|Rev|Hon|No|Nos|Vol|Fig|Eq|vs|cf|ca|etc"
    r"|approx|e\.g|i\.e|[A-Z]\.(?:[A-Z]\.)*[A-Z])\.$"
)
_LONGEST_ABBREVIATION = 16


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Character offsets (start, end) of the sentences, in order, without the white space between them.

    Examples
    --------
    >>> text = "Dr. Ada L. Byron was born in 1815. She wrote!"
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. Ada L. Byron was born in 1815.', 'She wrote!']
    """
    spans, start = [], 0
    for end in [*(match.end() for match in _END.finditer(text) if _ends(text, match)), len(text)]:
        piece = text[start:end]
        if piece.strip():
            begin = start + len(piece) - len(piece.lstrip())
            spans.append((begin, begin + len(piece.strip())))
        start = end
    return spans


def _ends(text: str, match: re.Match[str]) -> bool:
    if match["stop"] != ".":
        return True
    before = text[max(0, match.end() - _LONGEST_ABBREVIATION) : match.end()]
    number = re.search(r"(?:^|\s)\d+\.$", before)
    if number:
        # "1. First" numbers an item; "born in 1815. She" ends a sentence.
        return bool(text[: match.start()].rpartition("\n")[2].strip(" \t0123456789"))
    return not _ABBREVIATION.search(before)
