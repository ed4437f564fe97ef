"""vLLM's CPU build on a workload, prefix cache on, run in an environment of its own.

`python vllm_scores.py WORKLOAD OUT --dtype float32 --threads 2`; cores are bound by VLLM_CPU_OMP_THREADS_BIND.
"""

import argparse
import json
import time
from pathlib import Path

from vllm import LLM, SamplingParams

TOP = 20  # log-probabilities asked for; a label word below them is counted as missing

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("workload", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--dtype", default="float32")
parser.add_argument("--threads", type=int, required=True)


def main():
    given = parser.parse_args()
    work = json.loads(given.workload.read_text(encoding="utf-8"))
    model = LLM(model=work["model"], dtype=given.dtype, enable_prefix_caching=True, max_model_len=4096, seed=0)
    tokenizer = model.get_tokenizer()
    labels = [tokenizer.encode(label, add_special_tokens=False)[-1] for label in work["labels"]]
    settings = SamplingParams(max_tokens=1, temperature=0.0, logprobs=TOP)
    model.generate(work["texts"][:4], settings, use_tqdm=False)
    model.reset_prefix_cache()
    start = time.perf_counter()
    found = model.generate(work["texts"], settings, use_tqdm=False)
    seconds = time.perf_counter() - start
    margins = []
    for answer in found:
        seen = answer.outputs[0].logprobs[0]
        both = [seen[label].logprob if label in seen else None for label in labels]
        margins.append(None if None in both else both[1] - both[0])
    given.out.write_text(
        json.dumps({"seconds": seconds, "records": len(found), "margins": margins, "peak_memory_gib": None}),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
