"""Merge a judge's adapter into its backbone: `python scripts/merge.py ADAPTER_FOLDER OUT [--checkpoint BACKBONE]`.

Checks in float32 that the merged judge says the same, before it is written.

examples:
  python scripts/merge.py runs/step_product/NAME/adapter merged
  python scripts/merge.py runs/step_product/NAME/adapter merged --checkpoint models/my-backbone --dtype bfloat16
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from models.endings import ends_in_words
from train.helping import described


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("adapter", type=Path, metavar="ADAPTER_FOLDER", help="the folder that training wrote")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write: new, empty, or an earlier judge's")
    parser.add_argument("--checkpoint", help="the backbone, where the adapter was trained on a local folder")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights written")
    parser.add_argument(
        "--onto_full_precision",
        action="store_true",
        help="merge an adapter trained over a quantized backbone into the one in full precision",
    )
    return parser


@ends_in_words(also=(RuntimeError,))
def main(arguments: Sequence[str] | None = None) -> int:
    """0: merged; 1: not merged; 2: wrong usage."""
    args = parser().parse_args(arguments)
    from models.merge import merge  # takes seconds to import, which --help need not wait for
    from models.runtime import plain_output

    if not sys.stderr.isatty():
        plain_output()
    found = merge(args.adapter, args.out, args.checkpoint, args.dtype, args.onto_full_precision)
    print(f"largest difference of a logit on the probe texts (largest logit {found.size:.3g}):")
    print(f"  {found.merging:.2g} by merging, in float32")
    print(f"  {found.saving:.2g} as written, in {args.dtype}")
    if found.quantized is not None:
        print(f"  {found.quantized:.2g} against the judge over the quantized backbone that it was trained on")
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
