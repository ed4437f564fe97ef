"""Serve judges over HTTP: `python scripts/serve.py --adapter runs/step_product/NAME/adapter --port 8000`.

A running service documents itself under /docs.

examples:
  python scripts/serve.py --adapter runs/step_product/NAME/adapter --port 8000
  python scripts/serve.py --adapter A --adapter B --adapter C --host 0.0.0.0 --token_file token.txt
"""

from __future__ import annotations

from judging.config import ServeConfig
from judging.serving import serve
from models.runtime import one_of_many
from train.arguments import parse


def main() -> None:
    """Ends with status 0 when it is told to stop, 1 for faults in settings or files, 2 for wrong usage."""
    config = parse(ServeConfig, doc=str(__doc__))
    with one_of_many(goes_on=False):
        serve(config)


if __name__ == "__main__":
    main()
