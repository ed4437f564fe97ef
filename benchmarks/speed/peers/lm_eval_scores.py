"""lm-evaluation-harness on a workload, run in an environment of its own: scores of both label words, and the time.

`python lm_eval_scores.py WORKLOAD OUT --dtype float32 --batch 1 --threads 2 [--onednn]`
"""

import argparse
import json
import resource
import time
from pathlib import Path

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("workload", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--dtype", default="float32")
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--onednn", action="store_true", help="float32 products through oneDNN")
given = parser.parse_args()

torch.set_num_threads(given.threads)
if given.onednn:
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
work = json.loads(given.workload.read_text(encoding="utf-8"))
model = HFLM(pretrained=work["model"], dtype=given.dtype, batch_size=given.batch, device="cpu")


def log_probabilities(texts):
    """Log-probability of each label word behind each text: two requests a record, which the harness pairs up itself."""
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(text, label), idx=place)
        for text in texts
        for place, label in enumerate(work["labels"])
    ]
    found = model.loglikelihood(requests, disable_tqdm=True)
    return [[found[2 * row][0], found[2 * row + 1][0]] for row in range(len(texts))]


log_probabilities(work["texts"][:4])
start = time.perf_counter()
scores = log_probabilities(work["texts"])
seconds = time.perf_counter() - start
given.out.write_text(
    json.dumps(
        {
            "seconds": seconds,
            "records": len(scores),
            "margins": [yes - no for no, yes in scores],
            "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    ),
    encoding="utf-8",
)
