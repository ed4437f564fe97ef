"""Build a benchmark's data: `python scripts/build.py ecomqa --corpus DIR --generator M ...`.

`build.py BENCHMARK --help` lists the keys of a benchmark and their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from models.runtime import one_of_many
from train.arguments import choose, parse


def ecomqa(arguments: Sequence[str]) -> None:
    """Questions on e-commerce from texts: drafted, checked, filtered by difficulty and by people.

    examples:
      python scripts/build.py ecomqa --corpus texts/ --generator smollm2-135m --language English --out build/mine
    """
    from benchmarks.ecomqa.build.config import EcomQABuildConfig
    from benchmarks.ecomqa.build.run import build

    config = parse(EcomQABuildConfig, arguments, doc=str(ecomqa.__doc__))
    with one_of_many():
        build(config)


def ecomagent(arguments: Sequence[str]) -> None:
    """Shopping tasks of EComAgentBench from any catalogue, validated; the same for the same seed.

    examples:
      python scripts/build.py ecomagent --tasks 50 --out build/tasks
      python scripts/build.py ecomagent --catalogue shop.sqlite --generator smollm2-135m --out build/tasks
    """
    from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
    from benchmarks.ecomagent.build.run import build

    config = parse(EcomAgentBuildConfig, arguments, doc=str(ecomagent.__doc__))
    with one_of_many():
        build(config)


def ecomagent_catalogue(arguments: Sequence[str]) -> None:
    """The shop of EComAgentBench: one searchable file from metadata and reviews of Amazon Reviews 2023's form."""
    from benchmarks.ecomagent.catalogue_command import build_catalogue

    with one_of_many():
        build_catalogue(arguments)


def ecomscript(arguments: Sequence[str]) -> None:
    r"""EcomScriptBench from a catalogue and its reviews: goals, scripts, intents, aligned products, annotated sets.

    examples:
      python scripts/build.py ecomscript --metadata meta.jsonl --reviews reviews.jsonl \
          --generator http://localhost:8000/v1#model --out build/ecomscript
    """
    from benchmarks.ecomscript.build.config import EcomScriptBuildConfig
    from benchmarks.ecomscript.build.run import build

    config = parse(EcomScriptBuildConfig, arguments, doc=str(ecomscript.__doc__))
    with one_of_many():
        build(config)


def ecomscript_cost(arguments: Sequence[str]) -> None:
    """What EcomScriptBench's construction would cost at any size, by the rates of one that was made.

    examples:
      python scripts/build.py ecomscript-cost --built build/ecomscript --products 100000 --reviews 200000
    """
    from benchmarks.ecomscript.build.cost import CostConfig, show_cost

    config = parse(CostConfig, arguments, doc=str(ecomscript_cost.__doc__))
    with one_of_many():
        show_cost(config)


def ecomscript_pilot(arguments: Sequence[str]) -> None:
    """A step as a search query against alignment by purchase intents, on the shipped sample's catalogue.

    examples:
      python scripts/build.py ecomscript-pilot --embedder minilm
    """
    from benchmarks.ecomscript.build.pilot import PilotConfig, pilot

    config = parse(PilotConfig, arguments, doc=str(ecomscript_pilot.__doc__))
    with one_of_many():
        pilot(config)


def ecomscript_speed(arguments: Sequence[str]) -> None:
    """Time and memory of alignment over catalogues of several sizes, exact and approximate.

    examples:
      python scripts/build.py ecomscript-speed --products '[10000, 100000]'
    """
    from benchmarks.ecomscript.build.speed import AlignSpeedConfig, measure_speed

    config = parse(AlignSpeedConfig, arguments, doc=str(ecomscript_speed.__doc__))
    with one_of_many():
        measure_speed(config)


BENCHMARKS: dict[str, Callable[[Sequence[str]], None]] = {
    "ecomqa": ecomqa,
    "ecomagent": ecomagent,
    "ecomagent-catalogue": ecomagent_catalogue,
    "ecomscript": ecomscript,
    "ecomscript-cost": ecomscript_cost,
    "ecomscript-pilot": ecomscript_pilot,
    "ecomscript-speed": ecomscript_speed,
}


def main() -> None:
    choose(BENCHMARKS, "benchmark", str(__doc__))


if __name__ == "__main__":
    main()
