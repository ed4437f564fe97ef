"""Publish a judge on a model hub: `python scripts/publish.py ADAPTER_FOLDER ORG/NAME`.

Sends the folder that training wrote (runs/.../adapter, or a merged one) with a card for where it will be, in one
commit, after checking token, rights and name, and that no path, account name, token, run address or pickle is in it.
Doing it again changes nothing. The token is the one of `hf auth login`, or HF_TOKEN.

examples:
  python scripts/publish.py runs/step_product/NAME/adapter org/judge --dry_run
  python scripts/publish.py runs/step_product/NAME/adapter org/judge --private --results results/step_product/test
  python scripts/publish.py runs/step_product/NAME/adapter org/judge-merged --merge --dtype bfloat16
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from models.endings import ends_in_words
from train.helping import described

if TYPE_CHECKING:
    from train.publishing.publish import Parcel


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("folder", type=Path, metavar="ADAPTER_FOLDER", help="the folder that training wrote")
    parser.add_argument("repo", metavar="ORG/NAME", help="the repository; a name alone is under your account")
    parser.add_argument("--private", action="store_true", help="make a private one, and refuse one that is public")
    parser.add_argument("--revision", metavar="BRANCH", help="the branch, made if it is missing (default: main)")
    parser.add_argument(
        "--dry_run", "--dry-run", action="store_true", help="show every file and the card; send nothing"
    )
    parser.add_argument("--license", help="as the hub names licences (default: the backbone's, where it is known)")
    parser.add_argument(
        "--results", type=Path, action="append", default=[], metavar="DIR", help="an evaluation of it, for the card"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="TEXT", help="a text that looks private and is not"
    )
    merging = parser.add_argument_group("to publish the judge merged into its backbone (see scripts/merge.py)")
    merging.add_argument("--merge", action="store_true", help="publish a whole model, that loads without peft")
    merging.add_argument("--checkpoint", help="the backbone, where the adapter was trained on a local folder")
    merging.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights")
    merging.add_argument(
        "--onto_full_precision", action="store_true", help="although it was trained over a quantized one"
    )
    return parser


@ends_in_words(also=(RuntimeError,))
def main(arguments: Sequence[str] | None = None) -> int:
    """0: published, or a dry run without problems; 1: not published; 2: wrong usage."""
    chosen = parser().parse_args(arguments)
    from models.runtime import plain_output  # torch takes seconds to import
    from train.publishing.publish import Wish, merged, prepare, read_results, send

    if not sys.stderr.isatty():
        plain_output()
    wish = Wish(chosen.repo, chosen.private, chosen.revision, chosen.license, chosen.allow)
    source: AbstractContextManager[Path] = nullcontext(chosen.folder)
    if chosen.merge:
        source = merged(chosen.folder, chosen.checkpoint, chosen.dtype, chosen.onto_full_precision)
    results = [read_results(path, chosen.folder) for path in chosen.results]
    with source as folder:
        parcel = prepare(folder, wish, results)
        if chosen.dry_run:
            return show(parcel)
        commit = send(parcel)
    news = "nothing had changed" if commit == parcel.target.head else f"{len(parcel.files)} files"
    print(f"{parcel.target.repo}: {news}, commit {commit}")
    return 0


def show(parcel: Parcel) -> int:
    """Print what would be sent, and what keeps it from being sent; 1 if there is something."""
    target, console = parcel.target, Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    where = f"{target.repo}{f' at {target.revision}' if target.revision else ''}"
    kind = f"{'private' if target.private else 'public'}, {'there already' if target.exists else 'to be made'}"
    table = Table("file", "bytes", "", title=f"{where} ({kind})")
    table.columns[1].justify = "right"
    for name, file in parcel.files.items():
        size = len(file) if isinstance(file, bytes) else file.stat().st_size
        table.add_row(name, f"{size:,}", "there already, sent if it differs" if name in target.files else "new")
    for name in sorted(target.files - set(parcel.files)):
        table.add_row(name, "", "only there; left as it is", style="dim")
    console.print(table)
    console.print(parcel.card, markup=False)
    for problem in parcel.problems:
        print(f"error: {problem}", file=sys.stderr)
    print("nothing was sent" if not parcel.problems else "nothing was sent, and nothing would be", file=sys.stderr)
    return 1 if parcel.problems else 0


if __name__ == "__main__":
    sys.exit(main())
