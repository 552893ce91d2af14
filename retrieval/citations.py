"""Reads citation marks out of an answer while it streams.

A mark is `[n]` or `[1, 2]`. It may be cut anywhere by the chunks of a stream, so what could still become a mark is held
back, and nothing else: at most 32 characters. What a number stands for is known beforehand; a number that stands for
nothing is taken out of the text, with the space before it, and counted. Brackets inside code are code.
Where the marks that a model was given are not the citation numbers, they become them.

Text that has neither brackets nor backticks is most of any answer and goes through in whole runs; only what stands at
those is read character by character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.types import AnswerCitation, Citation

_MARK = re.compile(r"\[ *\d+(?: *[,;] *\d+)* *\]", re.ASCII)
_MARK_START = re.compile(r"\[[\d ,;]*", re.ASCII)
_LONGEST_MARK = 32
_NUMBER = re.compile(r"\d+", re.ASCII)
_PLAIN_RUN = re.compile(r"[^\[`]+")
_NO_SPACE_BEFORE = " \n\t.,;:!?)]"


class CitationParser:
    """Parses one answer: feed it pieces, emit what it returns, and finish it once."""

    def __init__(self, citations: Sequence[Citation], marks: Sequence[tuple[int, int]] | None = None) -> None:
        """`marks` gives each mark's citation number, where they differ (`Arrangement.numbers`)."""
        self._documents = {citation.number: citation.passage.document_id for citation in citations}
        self._numbers = {number: number for number in self._documents} if marks is None else dict(marks)
        self._found: list[AnswerCitation] = []
        self._unknown = 0
        self._emitted = 0  # code points
        self._space = False  # a space that waits for what follows it
        self._taken_out = False  # an unknown mark stood after that space
        self._open = ""  # what may become a mark
        self._code = _CodeState()

    @property
    def emitted_chars(self) -> int:
        """Code points of the answer that were emitted."""
        return self._emitted

    def feed(self, text: str) -> str:
        """Returns the part of the answer that is settled by now; may be empty."""
        pieces: list[str] = []
        position = 0
        while position < len(text):
            if not (self._open or self._code.at_backtick) and (run := _PLAIN_RUN.match(text, position)):
                self._take_run(run[0], pieces)
                position = run.end()
            else:
                self._take(text[position], pieces)
                position += 1
        return "".join(pieces)

    def finish(self) -> tuple[str, tuple[AnswerCitation, ...], int]:
        """Returns the rest of the answer, the citations in order, and how many numbers stood for nothing."""
        pieces: list[str] = []
        self._give_up(pieces)
        if self._space and not self._taken_out:
            self._emit(" ", pieces)
        self._space = self._taken_out = False
        return "".join(pieces), tuple(self._found), self._unknown

    def _take_run(self, text: str, pieces: list[str]) -> None:
        """Takes text without brackets and backticks, when no mark is open: as `_take` does, but all at once."""
        self._settle_space(text[0], pieces)
        if text[-1] == " " and not self._code.holds_end_of(text):
            self._space = True
            self._emit(text[:-1], pieces)
        else:
            self._emit(text, pieces)
        self._code.take_run(text)

    def _take(self, char: str, pieces: list[str]) -> None:
        if self._open:
            self._extend(char, pieces)
            if self._open:
                return
            if char == "]":
                self._code.take(char)
                return
        if self._code.inside or char == "`":
            self._settle_space(char, pieces)
            self._emit(char, pieces)
        elif char == "[":
            self._open = char
        else:
            self._settle_space(char, pieces)
            if char == " ":
                self._space = True
            else:
                self._emit(char, pieces)
        self._code.take(char)

    def _extend(self, char: str, pieces: list[str]) -> None:
        """Adds a character to the open mark, and closes it or gives it up where it ends."""
        candidate = self._open + char
        if char == "]":
            self._open = ""
            self._close(candidate, pieces)
        elif len(candidate) < _LONGEST_MARK and _MARK_START.fullmatch(candidate):
            self._open = candidate
        else:
            self._give_up(pieces)

    def _give_up(self, pieces: list[str]) -> None:
        """Emits what turned out to be no mark."""
        if self._open:
            opened, self._open = self._open, ""
            self._settle_space("[", pieces)
            self._emit(opened, pieces)
            self._code.take("[")

    def _close(self, mark: str, pieces: list[str]) -> None:
        if _MARK.fullmatch(mark) is None:
            self._settle_space("[", pieces)
            self._emit(mark, pieces)
            return
        marks = [int(number) for number in _NUMBER.findall(mark)]
        known = [self._numbers[number] for number in marks if number in self._numbers]
        self._unknown += len(marks) - len(known)
        if not known:
            self._taken_out = True
            return
        if known != marks:
            mark = f"[{', '.join(map(str, known))}]"
        self._settle_space("[", pieces)
        start, end = self._emitted, self._emitted + len(mark)
        self._found += [AnswerCitation(number, start, end, self._documents[number]) for number in dict.fromkeys(known)]
        self._emit(mark, pieces)

    def _settle_space(self, following: str, pieces: list[str]) -> None:
        """Emits the waiting space, unless a mark was taken out after it and what follows needs none."""
        if self._space and not (self._taken_out and following in _NO_SPACE_BEFORE):
            self._emit(" ", pieces)
        self._space = self._taken_out = False

    def _emit(self, text: str, pieces: list[str]) -> None:
        pieces.append(text)
        self._emitted += len(text)


class _CodeState:
    """Follows backticks: inline code ends with its line, fenced code with a fence of the same length or longer."""

    def __init__(self) -> None:
        self._mark_length = 0  # of the code that is open; 0 outside
        self._fenced = False
        self._run = 0  # backticks in a row, just now
        self._line_blank = True  # nothing but space stood before that run in its line

    @property
    def inside(self) -> bool:
        """Whether the next character is code."""
        return (self._mark_length > 0 and not self._closes()) or self._opens()

    @property
    def at_backtick(self) -> bool:
        """Whether the last character was a backtick, of which more may follow."""
        return self._run > 0

    def holds_end_of(self, text: str) -> bool:
        """Whether code that is open goes on to the end of text without backticks."""
        return self._fenced or (self._mark_length > 0 and "\n" not in text)

    def take_run(self, text: str) -> None:
        """Moves on by text without backticks, not just behind one."""
        _, newline, line = text.rpartition("\n")
        if newline:
            self._line_blank = True
            if not self._fenced:
                self._mark_length = 0
        if line and not line.isspace():
            self._line_blank = False

    def take(self, char: str) -> None:
        """Moves on by one character of the answer."""
        if char == "`":
            self._run += 1
            return
        if self._run:
            self._end_run()
        if char == "\n":
            self._line_blank = True
            if not self._fenced:
                self._mark_length = 0
        elif not char.isspace():
            self._line_blank = False

    def _end_run(self) -> None:
        if self._closes():
            self._mark_length, self._fenced = 0, False
        elif self._opens():
            self._mark_length, self._fenced = self._run, self._run >= 3 and self._line_blank
        self._run = 0
        self._line_blank = False

    def _opens(self) -> bool:
        return self._mark_length == 0 and self._run > 0

    def _closes(self) -> bool:
        if self._fenced:
            return self._line_blank and self._run >= self._mark_length
        return self._run == self._mark_length > 0
