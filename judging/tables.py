"""Lines of answers as JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]
KINDS = (".jsonl", ".csv", ".parquet")
ROWS = 8192  # lines of a Parquet row group


def check_kind(path: Path) -> None:
    """Raises ValueError for a file that is none of the kinds that are written."""
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path}: unknown kind of file; give .jsonl, .csv or .parquet, or - for standard output")


def write_table(path: Path, kind: str, lines: Iterable[Line]) -> None:
    """Write lines that all have the same fields to a file of a kind out of `KINDS`, a bounded number in memory."""
    if kind == ".csv":
        _write_csv(path, lines)
    elif kind == ".parquet":
        _write_parquet(path, lines)
    else:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _write_csv(path: Path, lines: Iterable[Line]) -> None:
    """Objects become columns with dots, lists a cell of JSON, what is absent an empty cell."""
    rows = (dict(_cells(line)) for line in lines)
    with path.open("w", encoding="utf-8", newline="") as file:
        if (first := next(rows, None)) is None:
            return
        writer = csv.DictWriter(file, list(first))
        writer.writeheader()
        writer.writerows(chain([first], rows))


def _cells(line: Line, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from _cells(value, f"{path}{name}.")
        elif isinstance(value, list):
            yield path + name, json.dumps(value, ensure_ascii=False)
        else:
            yield path + name, int(value) if isinstance(value, bool) else value


def _write_parquet(path: Path, lines: Iterable[Line]) -> None:
    import pyarrow
    import pyarrow.parquet

    rest = iter(lines)
    first = list(islice(rest, ROWS))
    schema = _schema(first[0]) if first else pyarrow.schema([])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while first:
            writer.write_table(pyarrow.Table.from_pylist(first, schema))
            first = list(islice(rest, ROWS))


def _schema(line: Line) -> Any:
    """The columns of lines like this one. Their types follow from their names: a value may be absent anywhere."""
    import pyarrow as pa

    plain = {"row": pa.int64(), "p_yes": pa.float64(), "verdict": pa.int8(), "shortened": pa.bool_()}
    texts = dict.fromkeys(("id", "reason", "detail"), pa.string())
    one = pa.struct([*((name, plain[name]) for name in ("p_yes", "verdict", "shortened")), *list(texts.items())[1:]])
    product = pa.struct([("title", pa.string()), ("chosen", pa.bool_()), ("answer", one)])
    step = pa.struct([("step", pa.string()), ("products", pa.list_(product))])
    names = line.get("judges") or {}
    nested = {"script": one, "plan": one, "steps": pa.list_(step), "judges": pa.struct([(name, one) for name in names])}
    types = {**plain, **texts, **nested}
    return pa.schema([(name, types[name]) for name in line])
