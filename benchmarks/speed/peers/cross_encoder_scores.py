"""sentence-transformers' CrossEncoder on a workload, in an environment of its own: each pair's scores, and the time.

`python cross_encoder_scores.py WORKLOAD OUT --threads 2 [--batch 32] [--dtype float32]`
"""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("workload", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--dtype", default="float32")
given = parser.parse_args()

torch.set_num_threads(given.threads)
work = json.loads(given.workload.read_text(encoding="utf-8"))
pairs = [
    ("".join(prefix).strip(), suffix.strip()) for prefix, suffix in zip(work["prefixes"], work["suffixes"], strict=True)
]
model = CrossEncoder(work["model"], device="cpu", local_files_only=True, model_kwargs={"dtype": given.dtype})


def logits(some):
    """Class logits (no, yes) of each pair."""
    return model.predict(
        some, batch_size=given.batch, activation_fn=torch.nn.Identity(), show_progress_bar=False, convert_to_tensor=True
    ).float()


logits(pairs[:4])
start = time.perf_counter()
found = logits(pairs)
seconds = time.perf_counter() - start
given.out.write_text(
    json.dumps(
        {
            "seconds": seconds,
            "records": len(pairs),
            "margins": (found[:, 1] - found[:, 0]).double().tolist(),
            "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    ),
    encoding="utf-8",
)
