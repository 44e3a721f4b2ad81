"""The text that tokens spell, while they come."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

UNFINISHED = "\N{REPLACEMENT CHARACTER}"


class Transcript:
    """Text of an answer, token by token, ended by the first stop string.

    Attributes
    ----------
    pieces : what each token added. A character of several tokens comes with the last of them, so that the pieces joined are
        the text.
    text : all pieces; without the stop string and what follows
    stopped : whether a stop string came
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stop: Sequence[str] = ()) -> None:
        self.pieces: list[str] = []
        self.text = ""
        self.stopped = False
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._tokens: list[int] = []
        # A token is decoded behind those of the piece before it: some tokenizers drop the space that opens a text.
        self._context, self._spelled = 0, 0

    def add(self, token: int) -> None:
        self._tokens.append(token)
        piece = self._new_text()
        if piece.endswith(UNFINISHED):
            self._append("")
        else:
            self._context, self._spelled = self._spelled, len(self._tokens)
            self._append(piece)

    def end(self) -> None:
        """No token follows: a character that was left unfinished stays so."""
        if self._spelled < len(self._tokens) and not self.stopped:
            piece = self._new_text()
            self._spelled = len(self._tokens)
            self.pieces.pop()
            self._append(piece)

    @property
    def settled(self) -> str:
        """The part of the text that no later token can take back: without what may be the beginning of a stop string."""
        beginnings = (stop[:size] for stop in self._stop for size in range(1, len(stop)))
        held = max((len(start) for start in beginnings if self.text.endswith(start)), default=0)
        return self.text[: len(self.text) - held]

    def _new_text(self) -> str:
        known = self._decode(self._tokens[self._context : self._spelled])
        return self._decode(self._tokens[self._context :])[len(known) :]

    def _decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _append(self, piece: str) -> None:
        self.pieces.append(piece)
        begin = len(self.text) - max(map(len, self._stop), default=0)
        self.text += piece
        found = [at for stop in self._stop if (at := self.text.find(stop, max(begin, 0))) >= 0]
        if found:
            self.stopped = True
            self._cut(min(found))

    def _cut(self, length: int) -> None:
        self.text = self.text[:length]
        kept = 0
        for number, piece in enumerate(self.pieces):
            if kept >= length:
                del self.pieces[number:]
                break
            self.pieces[number] = piece[: length - kept]
            kept += len(piece)
