"""The user's own files of answers, read one prompt at a time, so that a file may be larger than memory.

What a file is, is told from its content, never from its name:

    JSON Lines     {"id": ..., "prompt": ..., "responses": ["...", ...], "factuality": optional share or list of shares,
                   "logprobs": optional list of lists}; without an id a prompt is named by its place: "line 3", "element 3"
    SegmentScore   {"entity": ..., "responses": [{"response": ..., "statements": [{"class": 0 or 1}, ...]}, ...]}; class 1 marks
                   a statement that is supported, and the factuality of an answer is the mean of its marks
    JSON           a list of such objects, or one object
    CSV            id,prompt,response[,factuality]: one answer a row, the rows of one id together
    folder         <id>/*.txt: one answer a file, and the prompt, if it is known, in <id>/prompt.txt

Files may be compressed (gzip, xz), begin with a byte order mark, and end their lines either way.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from hashlib import blake2b
from io import BufferedReader
from itertools import chain, groupby
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from upheld.isotropy.data.responses import Responses

BOM = b"\xef\xbb\xbf"
GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
BLANK = b" \t\r\n"
OBJECT_BYTES = 1 << 26  # the largest JSON object: what is not closed by then is taken for broken
CHUNK = 1 << 16
COLUMNS = ("id", "prompt", "response")

Numbered = tuple[int, str]
Found = tuple[str, Responses]
"""Where it was found ("line 3 of answers.jsonl"), and the answers."""


def read_responses(path: str | Path) -> Iterator[Responses]:
    """The answers of a file or folder, prompt by prompt, in its order.

    Memory holds one prompt, and 12 bytes of each id seen.

    Parameters
    ----------
    path : a file or folder in one of the formats above

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        On anything that is no such format, on missing or wrong fields, on fewer than 2 answers to a prompt, on an empty answer,
        and on an id that was there before; names the file, the line and the field. Raised when the reader gets there: what came
        before was sound.

    Examples
    --------
    >>> for answers in read_responses("answers.jsonl"):            # doctest: +SKIP
    ...     print(answers.id, len(answers.responses))
    """
    path = Path(path)
    if path.is_dir():
        found = _read_folder(path)
    elif path.is_file():
        found = _read_file(path)
    elif path.exists():
        raise ValueError(f"{path} is a pipe or a device, and answers are read twice; write them to a file first")
    else:
        raise FileNotFoundError(f"there is no file or folder {path}; check the path")
    return _unique(found, path)


def write_responses(path: str | Path, items: Iterable[Responses]) -> int:
    """Write JSON Lines that `read_responses` reads; compressed if `path` ends in ``.gz`` or ``.xz``. Returns their number.

    The factuality of each answer is written where it is known, else the prompt's.
    """
    path = Path(path)
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    written = 0
    with cast(TextIO, openers.get(path.suffix, open)(path, "wt", encoding="utf-8", newline="\n")) as file:
        for item in items:
            file.write(json.dumps(_record(item), ensure_ascii=False, allow_nan=False) + "\n")
            written += 1
    return written


def _record(item: Responses) -> dict[str, object]:
    record: dict[str, object] = {"id": item.id, "prompt": item.prompt, "responses": item.responses}
    if item.factualities is not None:
        record["factuality"] = item.factualities
    elif item.factuality is not None:
        record["factuality"] = item.factuality
    if item.logprobs is not None:
        record["logprobs"] = item.logprobs
    return record


def _unique(found: Iterable[Found], path: Path) -> Iterator[Responses]:
    seen: set[bytes] = set()
    for where, item in found:
        digest = blake2b(item.id.encode(), digest_size=12).digest()
        if digest in seen:
            raise ValueError(
                f"{where}: the id {item.id!r} was there before; give each prompt an id of its own, and in a CSV file keep the rows of "
                "an id together (sort it by id)"
            )
        seen.add(digest)
        yield item
    if not seen:
        raise ValueError(f"{path} holds no answers; it needs at least one prompt with 2")


# Files


def _read_file(path: Path) -> Iterator[Found]:
    try:
        with _opened(path) as file:
            blank = _skip_blank(file)
            start = file.peek(1)[:1]
            if not start:
                raise ValueError(f"{path} is empty; it needs at least one prompt with 2 answers")
            if start == b"[":
                found = _read_array(file, path)
            elif start == b"{":
                found = _read_objects(file, path, blank)
            else:
                found = _read_csv(file, path, blank)
            yield from found
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is cut short or badly compressed ({error}); compress it again") from None


def _opened(path: Path) -> BufferedReader:
    """The file's bytes, decompressed, behind the byte order mark."""
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(GZIP):
        stream = cast(BinaryIO, gzip.open(path, "rb"))  # noqa: SIM115 - the caller closes it
    elif magic == XZ:
        stream = cast(BinaryIO, lzma.open(path, "rb"))  # noqa: SIM115
    else:
        stream = cast(BinaryIO, path.open("rb", buffering=0))
    file = BufferedReader(stream, CHUNK)  # type: ignore[arg-type]
    start = file.peek(3)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        file.close()
        raise ValueError(f"{path} is text in UTF-16; save it as UTF-8")
    if start.startswith(BOM):
        file.read(3)
    return file


def _skip_blank(file: BufferedReader) -> int:
    """Read on to the first sign that is not blank, and count the lines that end before it."""
    lines = 0
    while (start := file.peek(1)[:1]) and start in BLANK:
        lines += file.read(1) == b"\n"
    return lines


def _numbered_lines(file: BufferedReader, path: Path, blank: int) -> Iterator[Numbered]:
    """Lines with their numbers, the first of which stands behind `blank` others."""
    for number, line in enumerate(file, start=blank + 1):
        yield number, _decoded(line, f"line {number} of {path}")


def _decoded(line: bytes, where: str) -> str:
    if b"\x00" in line:
        raise ValueError(f"{where} holds a NUL byte, so this is no text; name a file in UTF-8")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where} is no text in UTF-8 (byte {error.start + 1} of it); save the file as UTF-8"
        ) from None


# JSON


def _read_objects(file: BufferedReader, path: Path, blank: int) -> Iterator[Found]:
    """JSON Lines; or one object over several lines, known by its first line, which no object fits."""
    lines = _numbered_lines(file, path, blank)
    first = next(lines)
    if first[1].strip() == "{":
        text = "".join(line for _, line in chain([first], lines))
        where = f"the object of {path}"
        yield where, _from_object(_parsed(text, where), where, "the object")
        return
    for number, line in chain([first], lines):
        if line.strip():
            where = f"line {number} of {path}"
            yield where, _from_object(_parsed(line, where), where, f"line {number}")


def _parsed(text: str, where: str) -> object:
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is no JSON: {_reason(error)}; mend or drop it") from None
    except (ValueError, RecursionError) as error:  # integers of thousands of digits, thousands of brackets
        raise ValueError(
            f"{where} cannot be read as JSON ({str(error).splitlines()[0][:80]}); mend or drop it"
        ) from None


def _reason(error: json.JSONDecodeError) -> str:
    return f"{error.msg.lower().removesuffix(' at')} at character {error.pos + 1}"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a field that is there twice would hide the first one's answers."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r:.60} occurs twice in one object")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _read_array(file: BufferedReader, path: Path) -> Iterator[Found]:
    """The objects of a JSON list, one at a time."""
    for number, element in enumerate(_elements(file, path), start=1):
        where = f"element {number} of {path}"
        yield where, _from_object(element, where, f"element {number}")


def _elements(file: BufferedReader, path: Path) -> Iterator[object]:
    decode = DECODER.raw_decode
    text = _Text(file, path)
    text.skip(1)
    number = 1
    if text.next_sign() == "]":
        return
    while True:
        where = f"element {number} of {path}"
        text.next_sign()
        yield text.element(decode, where)
        sign = text.next_sign()
        text.skip(1)
        if sign == "]":
            break
        if sign != ",":
            raise ValueError(
                f"{where} is followed by {sign!r} instead of a comma or the end of the list; mend the file"
            )
        number += 1
    if text.next_sign():
        raise ValueError(f"{path} goes on after the end of its list; keep the list alone")


class _Text:
    """What is still to be read of a file, with as much of it in memory as the next element takes."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._held = ""
        self._ended = False

    def skip(self, signs: int) -> None:
        self.next_sign()
        self._held = self._held[signs:]

    def next_sign(self) -> str:
        """The next sign that is not blank, which stays; empty at the end."""
        self._held = self._held.lstrip(" \t\r\n")
        while not self._held and not self._ended:
            self._read(CHUNK)
            self._held = self._held.lstrip(" \t\r\n")
        return self._held[:1]

    def element(self, decode: Callable[[str], tuple[object, int]], where: str) -> object:
        """Decode and consume the next value; twice as much is held each time that what is held does not do."""
        while True:
            try:
                value, end = decode(self._held)
                if end < len(self._held) or self._ended:  # else a number may go on
                    self._held = self._held[end:]
                    return value
            except json.JSONDecodeError as error:
                if self._ended or len(self._held) > OBJECT_BYTES:
                    raise ValueError(f"{where} is no JSON: {_reason(error)} of it; mend or drop it") from None
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{where} cannot be read as JSON ({str(error).splitlines()[0][:80]}); mend or drop it"
                ) from None
            self._read(max(CHUNK, len(self._held)))

    def _read(self, size: int) -> None:
        block = self._file.read(size)
        self._ended = not block
        try:
            self._held += self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            near = self._file.tell() - len(block) + error.start
            raise ValueError(f"{self._path} is no text in UTF-8 (near byte {near}); save the file as UTF-8") from None


def _from_object(record: object, where: str, place: str) -> Responses:
    if not isinstance(record, dict):
        raise ValueError(f"{where} is a JSON {_kind(record)}, no object with id, prompt and responses; mend or drop it")
    try:
        return _from_segments(record) if "entity" in record else _from_fields(record, place)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _from_fields(record: dict[str, Any], place: str) -> Responses:
    """Without an id, the answers of that place; one that is misspelled is told."""
    label = record.get("factuality")
    each = isinstance(label, list)
    named = "id" in record or bool(get_close_matches("id", record, 1))
    return Responses(
        id=_id(_field(record, "id")) if named else place,
        prompt=_field(record, "prompt"),
        responses=_field(record, "responses"),
        factuality=None if each else label,
        factualities=label if each else None,
        logprobs=record.get("logprobs"),
    )


def _from_segments(record: dict[str, Any]) -> Responses:
    """SegmentScore: the mark of each statement of each answer."""
    entity = record["entity"]
    answers = _field(record, "responses")
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        raise TypeError("'responses' must be a list of objects with response and statements")
    occurrence = [str(record[key]) for key in ("index", "idx_cat") if isinstance(record.get(key), int | str)]
    logprobs = [answer.get("logprobs") for answer in answers]
    return Responses(
        id=" ".join([_id(entity), *(f"[{'-'.join(occurrence)}]" for _ in occurrence[:1])]),
        prompt=record.get("prompt", entity),
        responses=[_field(answer, "response") for answer in answers],  # type: ignore[arg-type]
        factualities=[_mean_mark(answer, i) for i, answer in enumerate(answers, start=1)],  # type: ignore[arg-type]
        logprobs=logprobs if logprobs and all(logprobs) else None,  # type: ignore[arg-type]
    )


def _mean_mark(answer: dict[str, Any], i: int) -> float | None:
    statements = answer.get("statements")
    if statements is None or statements == []:
        return None
    if not isinstance(statements, list) or not all(isinstance(statement, dict) for statement in statements):
        raise TypeError(f"'statements' of answer {i} must be a list of objects with class")
    marks = [_field(statement, "class") for statement in statements]
    for mark in marks:
        if mark not in (0, 1) or not isinstance(mark, int | float):
            raise ValueError(f"answer {i} has a statement of class {mark!r:.40}; a class is 1 (supported) or 0")
    return float(sum(marks) / len(marks))


def _field(record: dict[str, Any], name: str) -> Any:
    if name not in record:
        near = get_close_matches(name, record, 1)
        has = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, list(record)[:8])) or 'none'}"
        raise ValueError(f"there is no field {name!r}; {has}")
    return record[name]


def _id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"the id must be text or a whole number, got {_kind(value)}")
    return value


def _kind(value: object) -> str:
    kinds = {dict: "object", list: "list", str: "text", bool: "true or false", int: "number", float: "number"}
    return kinds.get(type(value), "null")


# CSV


def _read_csv(file: BufferedReader, path: Path, blank: int) -> Iterator[Found]:
    reader = csv.reader((line for _, line in _numbered_lines(file, path, blank)), strict=True)
    header = _next_row(reader, path, blank) or []
    place = _columns(header, path)
    rows = (row for row in iter(partial(_next_row, reader, path, blank), None) if row)
    numbered = ((n, _cells(row, place, len(header), n, path)) for row in rows if (n := blank + reader.line_num))
    for id_, group in groupby(numbered, key=lambda row: row[1][0]):
        yield _from_rows(id_, list(group), path)


def _next_row(reader: Any, path: Path, blank: int) -> list[str] | None:
    """The next row; empty for a blank line, None at the end."""
    try:
        return next(reader, None)
    except csv.Error as error:
        reason = str(error)
        if "new-line character" in reason:
            raise ValueError(f"{path} ends its lines with a carriage return alone; save it with line feeds") from None
        hint = "close its quotes, or use JSON Lines for answers that long" if "larger" in reason else "close its quotes"
        raise ValueError(
            f"line {blank + reader.line_num} of {path} is not well-formed CSV ({reason}); {hint}"
        ) from None


def _columns(header: list[str], path: Path) -> tuple[int, int, int, int | None]:
    names = [name.strip().lower() for name in header]
    other = next((sign for sign in ";\t|" if len(names) == 1 and sign in names[0]), None)
    if other:
        raise ValueError(f"{path} is separated by {other!r}; save it as CSV, with commas and decimal points")
    for name in (*COLUMNS, "factuality"):
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} occurs {names.count(name)} times in {path}; rename or drop the others")
    for name in COLUMNS:
        if name not in names:
            near = get_close_matches(name, names, 1)
            has = f"did you mean {near[0]!r}?" if near else f"its first line is {','.join(header)[:80]!r}"
            raise ValueError(
                f"{path} is neither JSON nor CSV with columns id, prompt and response: it has no column {name!r}; {has}"
            )
    places = [names.index(name) for name in COLUMNS]
    return places[0], places[1], places[2], names.index("factuality") if "factuality" in names else None


Cells = tuple[str, str, str, float | None]


def _cells(row: list[str], place: tuple[int, int, int, int | None], columns: int, number: int, path: Path) -> Cells:
    id_, prompt, response, label = place
    if any(cell.strip() for cell in row[columns:]):
        raise ValueError(
            f"line {number} of {path} has {len(row)} cells, more than its header; put a text that holds a comma into quotes"
        )
    if len(row) <= max(id_, prompt, response, label or 0):
        raise ValueError(
            f"line {number} of {path} has {len(row)} cells, fewer than its header; fill the row or drop it"
        )
    if not response < len(row) or not row[response].strip():
        raise ValueError(f"line {number} of {path}: the response of {row[id_]!r} is empty; fill it or drop the row")
    written = "" if label is None else row[label].strip()
    try:
        factuality = float(written.replace("_", " ")) if written else None  # to Python, 0_1 is 1
    except ValueError:
        raise ValueError(
            f"line {number} of {path}: the factuality {written!r:.40} is no number; correct it or leave it empty"
        ) from None
    return row[id_], row[prompt], row[response], factuality


def _from_rows(id_: str, rows: list[tuple[int, Cells]], path: Path) -> Found:
    first, prompt = rows[0][0], rows[0][1][1]
    for number, cells in rows:
        if cells[1] != prompt:
            raise ValueError(
                f"line {number} of {path}: the prompt of {id_!r} is not that of line {first}; one id has one prompt"
            )
    lines = f"line {first}" if len(rows) == 1 else f"lines {first} to {rows[-1][0]}"
    where = f"{lines} of {path}"
    try:
        item = Responses(id_, prompt, tuple(row[2] for _, row in rows), factualities=tuple(row[3] for _, row in rows))
    except ValueError as error:
        together = "" if len(rows) > 1 else "; the rows of an id must stand together (sort the file by id)"
        raise ValueError(f"{where}: {error}{together}") from None
    return where, item


# Folders


def _read_folder(path: Path) -> Iterator[Found]:
    folders = _visible(entry for entry in path.iterdir() if entry.is_dir())
    if not folders:
        raise ValueError(f"the folder {path} holds no folders; it needs one a prompt, with one .txt file an answer")
    for folder in folders:
        files = _visible(entry for entry in folder.iterdir() if entry.suffix == ".txt" and not entry.is_dir())
        prompts = [file for file in files if file.name == "prompt.txt"]
        try:
            yield (
                f"the folder {folder}",
                Responses(
                    folder.name,
                    _text(prompts[0]).strip() if prompts else "",
                    tuple(_answer(file) for file in files if file not in prompts),
                ),
            )
        except ValueError as error:
            raise ValueError(f"the folder {folder}: {error}") from None


def _visible(entries: Iterable[Path]) -> list[Path]:
    """In the order that people give them: 2.txt before 10.txt, for answers are called by their place."""

    def key(entry: Path) -> list[tuple[bool, int, str]]:
        parts = re.findall(r"[0-9]{1,18}|[0-9]+|[^0-9]+", entry.name)
        return [(True, int(part), part) if part.isdecimal() else (False, 0, part) for part in parts]

    return sorted((entry for entry in entries if not entry.name.startswith(".")), key=key)


def _answer(file: Path) -> str:
    text = _text(file)
    if not text.strip():
        raise ValueError(f"the answer {file.name} is empty; fill it or take it away")
    return text


def _text(file: Path) -> str:
    return _decoded(file.read_bytes().removeprefix(BOM), file.name).replace("\r\n", "\n").strip()
