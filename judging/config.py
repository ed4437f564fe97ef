"""What judging is told, in bulk or as a service: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.backbone import Dtype, Quantization
from models.limits import THREADS, Limits


@dataclass(frozen=True)
class JudgesConfig:
    """Which judges, and how they compute.

    Attributes:
        adapter: the folder that training wrote (runs/.../adapter), or a merged or fully fine-tuned model's; give it
            again for each further judge. Adapters over one backbone share it in memory.
        checkpoint: the backbone, where the folders cannot name it (it was a local folder).
        dtype: None is that of training.
        quantization: none, nf4 or int8; None is that of training.
        threshold: yes is said from this p_yes on; None is each judge's own.
        max_length: tokens allowed a record; None is each judge's own. Longer records lose product text.
        products_per_step: how many of the products that suit a step, the most probable first, stand in the plan that is
            judged as a whole.
        token_budget: tokens computed at once; None is 1,024 on a CPU and 16,384 on a GPU, where batches that do not fit
            are halved.
        threads: CPU threads a process; None shares the machine's cores among the processes on it.
    """

    adapter: tuple[str, ...]
    checkpoint: str | None = None
    dtype: Dtype | None = None
    quantization: Quantization | None = None
    attention: str | None = None
    trust_remote_code: bool = False
    threshold: Annotated[float, Limits(0, 1)] | None = None
    max_length: Annotated[int, Limits(1)] | None = None
    products_per_step: Annotated[int, Limits(0)] = 1
    token_budget: Annotated[int, Limits(1)] | None = None
    threads: Annotated[int, THREADS] | None = None


@dataclass(frozen=True)
class BulkConfig(JudgesConfig):
    """Judging rows of a file or of standard input.

    Adapters of one judgment read its records, a label being of no use; adapters of several judgments read plans.

    Attributes:
        data: a JSONL, Parquet or CSV file, a hub data set (org/name[@revision][:split]), sample:test; - is JSON lines
            from standard input.
        out: a .jsonl, .csv or .parquet file; - is JSON lines to standard output. What was stopped goes on there.
        window: rows that are read, sorted and written together: texts that rows of a window share are computed once,
            and a killed run loses a window at most. None is 1,024, or 64 plans.
        overwrite: forget what is there and start anew; leave it out to go on with a run that was killed.
    """

    data: str = "-"
    out: str = "-"
    window: Annotated[int, Limits(1)] | None = None
    overwrite: bool = False


@dataclass(frozen=True)
class ServeConfig(JudgesConfig):
    """Judging over HTTP.

    Attributes:
        host: 127.0.0.1 is this machine alone, 0.0.0.0 every network it is in; give a token_file there.
        port: 0 takes a free one.
        token_file: a file with the bearer token that requests must carry; None asks for none.
        max_records: records that one request may ask about; a plan counts its script, each candidate of each step, and
            the whole.
        max_bytes: of a request's body.
        max_waiting: records that may wait to be judged; further requests are told to come again (503).
        batch: records that are judged together at most, of however many requests.
        timeout_s: seconds after which a request is given up (504).
        drain_s: seconds, after SIGTERM, in which requests are still taken while /health says that no more should come.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Limits(0, 65535)] = 8000
    token_file: str | None = None
    max_records: Annotated[int, Limits(1)] = 256
    max_bytes: Annotated[int, Limits(1)] = 4 * 1024 * 1024
    max_waiting: Annotated[int, Limits(1)] = 4096
    batch: Annotated[int, Limits(1)] = 256
    timeout_s: Annotated[float, Limits(above=0)] = 30.0
    drain_s: Annotated[float, Limits(0)] = 1.0
