"""A construction from configuration to judgment sets: the stages in order, each from what the ones before have made."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import numpy as np
from filelock import FileLock, Timeout
from rich.console import Console
from rich.table import Table
from transformers.utils import logging as transformers_logging

from benchmarks.completions import recalled_by
from benchmarks.ecomscript.build.align import ALIGNED_SCHEMA, Aligner, Approximate, Exact, Search, write_approximate
from benchmarks.ecomscript.build.annotation import annotate
from benchmarks.ecomscript.build.config import EcomScriptBuildConfig, StageName
from benchmarks.ecomscript.build.index import MEANS, WORDS, Words, build_index
from benchmarks.ecomscript.build.ingest import ingest, ingest_identity
from benchmarks.ecomscript.build.mining import MININGS, Mining, Writer
from benchmarks.ecomscript.build.sample import DRAWN, ITEM_SCHEMA, draw, item_row
from benchmarks.ecomscript.build.shop import METADATA_FILE, REVIEWS_FILE, SAMPLE, write_shop
from benchmarks.ecomscript.build.stages import LOOK, Stage, run_table
from benchmarks.ecomscript.build.tables import Rows, write_table
from benchmarks.prompting import Prompts
from models.backbone import LoadSettings, resolve_dtype
from models.checkpoint import files_digest, resolve
from models.embedding import Embedder
from models.generation import Found, Generator, SamplingSettings
from models.generators import find_generator
from models.runtime import this_process, use_threads

SHIPPED = Path(str(files("benchmarks.ecomscript.build") / "prompts"))
SHEETS = "sheets"
STAGES: tuple[StageName, ...] = get_args(StageName)
SOURCES: dict[str, tuple[str, ...]] = {
    "ingest": (),
    **{mining.name: (mining.source.partition("/")[0],) for mining in MININGS},
    "index": ("intents",),
    "align": ("keywords", "index"),
    "sample": ("align",),
    "annotate": ("sample",),
}


def build(config: EcomScriptBuildConfig) -> bool:
    """Build as far as ``config.until`` says, or as it goes without people; whether that was reached.

    One of any number of processes. Raises ValueError or FileNotFoundError in words.
    """
    state = this_process()
    use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    say = Console(stderr=True, highlight=False, soft_wrap=True, quiet=not state.is_main_process)
    with _alone(Path(config.out)):
        made = Construction(config, say)
        if config.redo:
            made.check(config.redo)
        state.wait_for_everyone()
        if state.is_main_process and config.redo:
            for stage in followers(config.redo):
                shutil.rmtree(Path(config.out) / stage, ignore_errors=True)
        state.wait_for_everyone()
        made.verify()
        done = all(made.run(stage) for stage in STAGES[: STAGES.index(config.until) + 1])
        if state.is_main_process:
            Console(highlight=False).print(made.table())
        state.wait_for_everyone()
    return done


def followers(stage: str) -> list[str]:
    """A stage and all that are made from it, directly or not."""
    found = [stage]
    for name in STAGES:
        if any(source in found for source in SOURCES[name]):
            found.append(name)
    return found


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keeps a second construction out of the folder; the main process holds the lock."""
    if not this_process().is_main_process:
        yield
        return
    out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(out / ".lock", timeout=0):
            yield
    except Timeout:
        raise ValueError(f"{out}: another construction is at work there; wait for it, or give another --out") from None


@dataclass(frozen=True)
class Construction:
    """One run over the stages."""

    config: EcomScriptBuildConfig
    say: Console

    def run(self, name: StageName) -> bool:
        """Run a stage, unless it has ended before; whether what follows can be done."""
        if name == "ingest":
            metadata, reviews = self._sources()
            ingest(self.stage(name), metadata, reviews, self.config.review)
        elif name == "index":
            build_index(self.stage(name), self._intents, lambda: self._embedder, self.config.chunk)
        elif name == "align":
            self._align()
        elif name == "sample":
            self._sample()
        elif name == "annotate":
            sample, sheets, config = self.folder / "sample", self.folder / SHEETS, self.config
            return annotate(self.stage(name), sample, sheets, lambda: self._intents, config.annotation, config.seed)
        else:
            self._mine(next(mining for mining in MININGS if mining.name == name))
        return True

    def check(self, redo: StageName) -> None:
        """Refuse wrong names (of files, generator, encoder), and stages before ``redo`` that were made from something
        else, before what is to be redone is deleted."""
        redone = followers(redo)
        for name in STAGES[: STAGES.index(self.config.until) + 1]:
            if name in redone:
                self._settings(name)
            elif STAGES.index(name) < STAGES.index(redo) and Stage(self.folder / name, {}, self.say).manifest:
                self.stage(name).check()

    def verify(self) -> None:
        """Refuse files of finished stages that were removed, cut or altered since."""
        for name in STAGES:
            stage = Stage(self.folder / name, {}, self.say)
            if stage.finished:
                stage.verify()

    @property
    def folder(self) -> Path:
        return Path(self.config.out)

    def stage(self, name: str) -> Stage:
        """A stage's folder, known by all that fixes it."""
        inputs = {source: Stage(self.folder / source, {}, self.say).fingerprint() for source in SOURCES[name]}
        return Stage(self.folder / name, {"inputs": inputs, **self._settings(name)}, self.say)

    def _settings(self, name: str) -> dict[str, Any]:
        config = self.config
        if name == "ingest":
            return {"files": ingest_identity(*self._sources()), "review": asdict(config.review)}
        if name == "index":
            return {"embedder": self._encoder, "chunk": config.chunk}
        if name == "align":
            align = {key: value for key, value in asdict(config.align).items() if key != "embedder"}
            return {"embedder": self._encoder, "align": align, "chunk": config.chunk}
        if name == "sample":
            return {"items": config.annotation.items, "shown": config.annotation.shown, "seed": config.seed}
        if name == "annotate":
            chosen = ("fewest_votes", "train", "validation", "test")
            return {**{key: getattr(config.annotation, key) for key in chosen}, "seed": config.seed}
        mining = next(mining for mining in MININGS if mining.name == name)
        return {
            "prompt": self._prompts.digest_of(name),
            "generator": self._found.facts,
            "writing": asdict(self._sampling),
            **{key: getattr(config, key) for key in mining.settings},
            "chunk": config.chunk,
        }

    def _sources(self) -> tuple[list[str], list[str]]:
        """Metadata and reviews as given, or those of the shipped sample."""
        metadata, reviews = self.config.metadata, self.config.reviews
        if SAMPLE not in metadata + reviews:
            return metadata, reviews
        shop, state = self.folder / SAMPLE, this_process()
        if state.is_main_process and not (shop / REVIEWS_FILE).is_file():
            write_shop(shop)
        state.wait_for_everyone()
        return (
            [str(shop / METADATA_FILE) if one == SAMPLE else one for one in metadata],
            [str(shop / REVIEWS_FILE) if one == SAMPLE else one for one in reviews],
        )

    def _mine(self, mining: Mining) -> None:
        writer, before = Writer(lambda: self._generator, self._prompts, self._sampling), recalled_by(self._opened)
        run_table(
            self.stage(mining.name),
            Rows(self.folder / mining.source),
            mining.schema,
            lambda rows: mining.work(writer, self.config, rows),
            self.config.chunk,
            mining.distinct,
        )
        if known := recalled_by(self._opened) - before:
            self.say.print(f"{mining.name}: {known} answers come from the cache of served answers (docs/building.md)")

    @property
    def _opened(self) -> Generator | None:
        """The generator, if a stage has needed it so far."""
        return self.__dict__.get("_generator")

    def _align(self) -> None:
        align, folder, stage = self.config.align, self.folder / "index", self.stage("align")
        approximate = folder / f"approximate-{align.averaging}.faiss"
        wanted = align.index == "approximate" and not stage.finished and not approximate.exists()
        if wanted and this_process().is_main_process:
            write_approximate(np.load(folder / MEANS, mmap_mode="r"), align.averaging, approximate, self.config.seed)

        @cache
        def aligner() -> Aligner:
            search: Search
            if align.index == "exact":
                search = Exact(np.load(folder / MEANS, mmap_mode="r"), align.averaging)
            else:
                while not approximate.exists():
                    time.sleep(LOOK)
                search = Approximate(approximate, align.probes)
            return Aligner(search, Words(folder / WORDS), self._embedder, self._intents.column("id"), align)

        source = Rows(self.folder / "keywords" / "keywords.parquet")
        run_table(stage, source, ALIGNED_SCHEMA, lambda rows: aligner().work(rows), self.config.chunk)

    def _sample(self) -> None:
        stage = self.stage("sample")
        if stage.begin() and this_process().is_main_process:
            aligned = Rows(self.folder / "align" / "align.parquet")
            counts = {}
            for name in DRAWN:
                records = draw(name, aligned, self._intents, self.config.annotation, self.config.seed)
                write_table(stage.path / f"{name}.parquet", list(map(item_row, records)), ITEM_SCHEMA)
                counts[name] = len(records)
            about = {"read": len(aligned), "kept": sum(counts.values()), "rejected": {}, "left_out": {}}
            stage.finish({**about, "counts": counts}, [f"{name}.parquet" for name in DRAWN], {})
        stage.wait()

    @cached_property
    def _intents(self) -> Rows:
        return Rows(self.folder / "intents" / "intents.parquet")

    @cached_property
    def _prompts(self) -> Prompts:
        return Prompts(SHIPPED, self.config.prompts)

    @property
    def _sampling(self) -> SamplingSettings:
        config = self.config
        return SamplingSettings(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed)

    @cached_property
    def _found(self) -> Found:
        config = self.config
        settings = LoadSettings(
            dtype=config.dtype, quantization=config.quantization, trust_remote_code=config.trust_remote_code
        )
        device = this_process().device
        return find_generator(config.generator, None, settings, config.rows, device, config.concurrency)

    @cached_property
    def _generator(self) -> Generator:
        return self._found.open()

    @cached_property
    def _encoder(self) -> dict[str, Any]:
        """What fixes the vectors, without loading the encoder."""
        checkpoint = resolve(self.config.align.embedder)
        dtype = str(resolve_dtype("auto")).removeprefix("torch.")
        return {"checkpoint": checkpoint.identity, "weights": files_digest(checkpoint), "dtype": dtype}

    @cached_property
    def _embedder(self) -> Embedder:
        checkpoint = resolve(self.config.align.embedder)
        return Embedder(checkpoint, device=this_process().device, trust_remote_code=self.config.trust_remote_code)

    def table(self) -> Table:
        """What each stage has read, kept and rejected so far."""
        shown = Table("stage", "read", "kept", "rejected", "left out", "tokens", title=self.folder.name)
        for name in STAGES:
            found = Stage(self.folder / name, {}, self.say).manifest
            if "files" in found:
                rejected, left_out = (sum(found[key].values()) for key in ("rejected", "left_out"))
                cells = (found["read"], found["kept"], rejected, left_out, found.get("tokens", 0))
                shown.add_row(name, *(f"{cell:,}" for cell in cells))
        return shown
