"""`scripts/build.py ecomagent-catalogue`: its arguments, and the build that they ask for."""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.amazon_reviews.files import metadata_files, review_files
from benchmarks.ecomagent.catalogue_build import REVIEWS_PER_PRODUCT, SEED, Plan, build
from benchmarks.ecomagent.sample.build import build_sample

DESCRIPTION = """Build the catalogue of a shop: one SQLite file with full-text indexes.

A build that was killed goes on when the same command is given again. The same files and settings give the same file.
"""
EXAMPLES = """examples:
  python scripts/build.py ecomagent-catalogue --sample --out shop.sqlite
  python scripts/build.py ecomagent-catalogue --products meta/ --reviews reviews/ --out shop.sqlite"""


def build_catalogue(arguments: Sequence[str]) -> None:
    """Run the command; wrong usage ends the process with 2. Raises ValueError or OSError for inputs that cannot be."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.sample == bool(chosen.products):
        parser.error("give either --products or --sample")
    if chosen.files and not chosen.sample:
        parser.error("--files is where --sample keeps its files; give --sample, or leave --files out")
    names = ("reviews", "reviews_per_product", "seed")
    if chosen.sample and (idle := [f"--{name}" for name in names if getattr(chosen, name) is not None]):
        parser.error(f"--sample has files and settings of its own; leave {', '.join(idle)} out")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    summary = _build(chosen)
    for name, value in summary.items():
        print(f"{name.replace('_', ' '):28} {value:,}" if isinstance(value, int) else f"{name:28} {value}")
    if summary["products_set_aside"] or summary["reviews_set_aside"]:
        print("What was set aside, and why, stands in the file's table set_aside.")


def _build(chosen: argparse.Namespace) -> dict[str, Any]:
    if chosen.sample:
        with tempfile.TemporaryDirectory() as folder:
            return build_sample(chosen.out, chosen.files or Path(folder), overwrite=chosen.overwrite)
    plan = Plan(
        metadata_files(chosen.products),
        review_files(chosen.reviews or ()),
        REVIEWS_PER_PRODUCT if chosen.reviews_per_product is None else chosen.reviews_per_product,
        SEED if chosen.seed is None else chosen.seed,
    )
    return build(plan, chosen.out, chosen.overwrite)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--products", metavar="PATH", type=Path, nargs="+", default=[], help="meta_*.jsonl(.gz), or folders of them"
    )
    parser.add_argument(
        "--reviews", metavar="PATH", type=Path, nargs="+", help="reviews as .jsonl(.gz), or folders of them"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="the catalogue to write")
    parser.add_argument(
        "--reviews_per_product", metavar="N", type=int, help=f"how many of each (default: {REVIEWS_PER_PRODUCT})"
    )
    parser.add_argument("--seed", metavar="N", type=int, help=f"which are kept (default: {SEED})")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")
    parser.add_argument("--sample", action="store_true", help="the shop that comes with this toolkit, instead of files")
    parser.add_argument("--files", metavar="DIR", type=Path, help="with --sample: keep its .jsonl files here")
    return parser
