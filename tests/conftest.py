"""One thread a process: fastest for models this small, and test processes side by side do not fight for the cores."""

from __future__ import annotations

import os

# Read when torch is first imported, here and in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
