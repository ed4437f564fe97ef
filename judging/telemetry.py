"""What a service tells Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from judging.answers import Answer
from judging.batching import Batch
from judging.judges import NamedJudge

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Telemetry:
    """Counters and histograms of one service, under names that begin with ``ecomjudge_``."""

    def __init__(self, judges: Iterable[NamedJudge], waiting: Callable[[], int]) -> None:
        self.registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        self._requests = Counter("ecomjudge_requests", "Requests answered", ["path", "status"], registry=own)
        self._seconds = Histogram(
            "ecomjudge_request_seconds", "From a request's head to its answer", ["path"], buckets=SECONDS, registry=own
        )
        self._open = Gauge("ecomjudge_open_requests", "Requests that are not answered yet", registry=own)
        self._answers = Counter("ecomjudge_answers", "Answers by what they say", ["judge", "said"], registry=own)
        self._records = Histogram(
            "ecomjudge_batch_records", "Records judged together", ["judge"], buckets=SIZES, registry=own
        )
        self._questions = Histogram(
            "ecomjudge_batch_questions", "Requests whose records were judged together", buckets=SIZES, registry=own
        )
        self._work = Histogram("ecomjudge_batch_seconds", "Judging a batch", ["judge"], buckets=SECONDS, registry=own)
        Gauge("ecomjudge_waiting_records", "Records that wait to be judged", registry=own).set_function(waiting)
        about = Gauge(
            "ecomjudge_judge", "Judges that are served", ["judge", "judgment", "base", "template"], registry=own
        )
        for one in judges:
            about.labels(one.name, one.judgment.name, one.judge.spec.base.id, one.judgment.template_version).set(1)

        self.total = 0  # requests answered

    def begun(self) -> None:
        self._open.inc()

    def answered(self, path: str, status: int, seconds: float) -> None:
        self._open.dec()
        self.total += 1
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def said(self, judge: str, answers: Sequence[Answer]) -> None:
        """Count what answers say: yes, no, or the reason why neither."""
        counts = Counts(one.reason or ("yes" if one.verdict else "no") for one in answers)
        for what, count in counts.items():
            self._answers.labels(judge, what).inc(count)

    def judged(self, batch: Batch) -> None:
        self._records.labels(batch.judge).observe(batch.records)
        self._questions.observe(batch.questions)
        self._work.labels(batch.judge).observe(batch.seconds)

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)
