"""A corpus to retrieve from: a folder of texts and JSONL files becomes passages of about the same length."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from benchmarks.ecomqa.data import HALF, half_character
from recipes.faults import DataFaults, Fault
from recipes.rows import file_rows

SAMPLE = "sample"
log = logging.getLogger(__name__)
# Characters of a passage: some sentences, so that five of them leave room for the question in any context.
LONGEST = 400
KINDS = (".txt", ".jsonl", ".jsonl.gz")
_SENTENCE = re.compile(r"[^。！？!?\n]*[。！？!?\n]+|[^。！？!?\n]+$")


@dataclass(frozen=True)
class Passage:
    """A piece of a document. The second and later pieces of one are called ``<document>#2`` and so on."""

    id: str
    title: str
    text: str

    @property
    def content(self) -> str:
        """Title and text, as it is searched and shown."""
        return f"{self.title}：{self.text}" if self.title else self.text


def read_corpus(reference: str, longest: int = LONGEST) -> list[Passage]:
    """The passages of a file or of all ``*.txt``, ``*.jsonl`` and ``*.jsonl.gz`` files under a folder, by name; or of
    the shipped ``sample``.

    A text file is one document with the file's name as title. A JSONL line is ``{"text", "title"?, "id"?}``.

    Args:
        longest: characters of a passage; longer documents are divided between sentences.

    Raises:
        FileNotFoundError: there is nothing of the kind.
        DataFaults: a line is no document; every fault is told with its file and line.
    """
    if not reference.strip():
        raise FileNotFoundError(f"corpus {reference!r} names nothing; give a folder or a file of texts, or {SAMPLE}")
    faults: list[Fault] = []
    passages: list[Passage] = []
    seen: set[str] = set()
    for path, name in _sources(reference):
        for line, document in _documents(path, name, faults):
            if document.id in seen:
                faults.append(
                    Fault(_shown(path, name), line, "id", f"{document.id!r} is the id of another document too")
                )
            seen.add(document.id)
            passages += divided(document, longest)
    if faults:
        raise DataFaults(faults)
    if not passages:
        raise DataFaults([Fault(reference, None, "", "holds no text; give documents to retrieve from")])
    return passages


def divided(document: Passage, longest: int = LONGEST) -> list[Passage]:
    """A document as passages of whole sentences; only a sentence that is itself too long is cut."""
    pieces: list[str] = []
    for sentence in _SENTENCE.findall(document.text.strip()):
        for start in range(0, len(sentence), longest):
            part = sentence[start : start + longest]
            if pieces and len(pieces[-1]) + len(part) <= longest:
                pieces[-1] += part
            else:
                pieces.append(part)
    texts = [text for piece in pieces if (text := piece.strip())]
    ids = [document.id, *(f"{document.id}#{number}" for number in range(2, len(texts) + 1))]
    return [Passage(name, document.title, text) for name, text in zip(ids, texts, strict=False)]


def corpus_fingerprint(passages: Iterable[Passage]) -> str:
    """sha256 (hex) over ids and contents, in order."""
    digest = hashlib.sha256()
    for passage in passages:
        digest.update("\x00".join((passage.id, passage.title, passage.text, "\n")).encode())
    return digest.hexdigest()


def _sources(reference: str) -> list[tuple[Path, str]]:
    """(path, name in messages and ids) of each file."""
    if reference == SAMPLE:
        return [(Path(str(files("benchmarks.ecomqa") / "sample" / "corpus.jsonl")), "sample")]
    path = Path(reference)
    if path.is_file():
        return [(path, path.name)]
    files_there = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith(".")]
    found = [file for file in files_there if file.name.lower().endswith(KINDS)]
    if not found:
        state = "holds no" if path.is_dir() else "does not exist; give a folder of"
        raise FileNotFoundError(f"corpus {reference!r} {state} {', '.join(f'*{kind}' for kind in KINDS)} files")
    if others := [file for file in files_there if file not in found]:
        kinds = ", ".join(f"*{kind}" for kind in KINDS)
        log.warning(
            "corpus %s: %d files are passed over, first %s; only %s are read", path, len(others), others[0], kinds
        )
    return [(file, file.relative_to(path).as_posix()) for file in found]


def _shown(path: Path, name: str) -> str:
    """What faults call a file: where it lies, so that it is found; the shipped one by its name."""
    return name if name == SAMPLE and path.suffix == ".jsonl" else str(path)


def _documents(path: Path, name: str, faults: list[Fault]) -> Iterator[tuple[int | None, Passage]]:
    """(line, document) of a file; what is wrong is added to ``faults``."""
    where = _shown(path, name)
    if path.suffix.lower() == ".txt":
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            faults.append(Fault(where, None, "", f"not UTF-8 at byte {error.start}; save it as UTF-8"))
            return
        if text.strip():
            yield None, Passage(name, path.stem, text)
        return
    for row in file_rows(str(path)):
        if isinstance(row, Fault):
            faults.append(Fault(where, row.line, row.field, row.message))
            continue
        found = {"text": row.value.get("text"), "title": row.value.get("title") or "-"}
        wrong = [field for field, value in found.items() if not isinstance(value, str) or not value.strip()]
        if wrong:
            message = 'missing, empty or not text; give {"text": "...", "title"?, "id"?}'
            faults.append(Fault(where, row.line, wrong[0], message))
        elif half := [name for name, text in row.value.items() if isinstance(text, str) and half_character(text)]:
            faults.append(Fault(where, row.line, half[0], HALF))
        else:
            own, title = row.value.get("id"), row.value.get("title") or ""
            yield row.line, Passage(f"{name}:{row.line}" if own is None else str(own), title, row.value["text"])
