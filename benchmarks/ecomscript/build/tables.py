"""Tables on disk: Parquet that is read by rows from any place, and written a bounded number of rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# Rows of a row group: what a reader holds in memory at once.
ROW_GROUP = 8192
Row = dict[str, Any]


class Rows:
    """The rows of a Parquet file by their numbers; one row group is in memory at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = pq.ParquetFile(path)
        meta = self._file.metadata
        self._starts = np.cumsum([0, *(meta.row_group(k).num_rows for k in range(meta.num_row_groups))])
        self._held: tuple[int, pa.Table] | None = None

    def __len__(self) -> int:
        return int(self._starts[-1])

    def read(self, start: int, stop: int) -> list[Row]:
        """Rows ``start`` up to ``stop`` (which may lie behind the end)."""
        rows: list[Row] = []
        stop = min(stop, len(self))
        while start < stop:
            group = int(np.searchsorted(self._starts, start, side="right")) - 1
            begin, end = int(self._starts[group]), min(stop, int(self._starts[group + 1]))
            rows += self._group(group).slice(start - begin, end - start).to_pylist()
            start = end
        return rows

    def column(self, name: str) -> pa.ChunkedArray:
        """A whole column, as Arrow holds it: no Python object a value."""
        return self._file.read(columns=[name]).column(0)

    def _group(self, number: int) -> pa.Table:
        if self._held is None or self._held[0] != number:
            self._held = (number, self._file.read_row_group(number))
        return self._held[1]


class TableWriter:
    """Writes tables one behind the other in row groups of one size, so that the file is the same however they were cut.

    The file appears under its name when the block has ended well.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.schema, self.rows = path, schema, 0
        self._draft = path.with_name(f".{path.name}.draft")
        self._writer = pq.ParquetWriter(self._draft, schema, compression="zstd")
        self._waiting = schema.empty_table()

    def add(self, table: pa.Table) -> None:
        self.rows += len(table)
        self._waiting = pa.concat_tables([self._waiting, table.select(self.schema.names).cast(self.schema)])
        while len(self._waiting) >= ROW_GROUP:
            self._write(self._waiting.slice(0, ROW_GROUP))
            self._waiting = self._waiting.slice(ROW_GROUP)

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table.combine_chunks(), row_group_size=ROW_GROUP)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and len(self._waiting):
            self._write(self._waiting)
        self._writer.close()
        if kind is None:
            self._draft.replace(self.path)
        else:
            self._draft.unlink()


def write_table(path: Path, rows: list[Row], schema: pa.Schema, notes: Mapping[bytes, bytes] | None = None) -> None:
    """Write a small table whole, with notes in its schema's metadata."""
    draft = path.with_name(f".{path.name}.draft")
    pq.write_table(pa.Table.from_pylist(rows, schema.with_metadata(dict(notes or {}))), draft)
    draft.replace(path)
