"""Build a benchmark's data: `python scripts/build.py ecomqa --corpus DIR --generator M ...`.

`build.py BENCHMARK --help` lists the keys of a benchmark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from models.runtime import one_of_many
from train.arguments import parse


def ecomqa(arguments: Sequence[str]) -> None:
    """Questions on e-commerce from texts: drafted, checked, filtered by difficulty and by people."""
    from benchmarks.ecomqa.build.config import EcomQABuildConfig
    from benchmarks.ecomqa.build.run import build

    config = parse(EcomQABuildConfig, arguments, doc=str(ecomqa.__doc__))
    with one_of_many():
        build(config)


def ecomagent(arguments: Sequence[str]) -> None:
    """Shopping tasks of EComAgentBench from any catalogue, validated; the same for the same seed."""
    from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
    from benchmarks.ecomagent.build.run import build

    config = parse(EcomAgentBuildConfig, arguments, doc=str(ecomagent.__doc__))
    with one_of_many():
        build(config)


def ecomagent_catalogue(arguments: Sequence[str]) -> None:
    """The shop of EComAgentBench: one searchable file from metadata and reviews of Amazon Reviews 2023's form."""
    from benchmarks.ecomagent.catalogue_command import build_catalogue

    build_catalogue(arguments)


BENCHMARKS: dict[str, Callable[[Sequence[str]], None]] = {
    "ecomqa": ecomqa,
    "ecomagent": ecomagent,
    "ecomagent-catalogue": ecomagent_catalogue,
}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in BENCHMARKS:
        sys.argv[0] = f"build.py {name}"
        BENCHMARKS[name](sys.argv[2:])
    elif name in ("-h", "--help"):
        print(__doc__)
        for benchmark, command in BENCHMARKS.items():
            print(f"  {benchmark:20} {command.__doc__}")
    else:
        near = get_close_matches(name, BENCHMARKS, n=1, cutoff=0)[0]
        message = f"benchmark {name!r} is not known; did you mean {near!r}? Known: {', '.join(BENCHMARKS)}"
        print(message, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
