"""Who judges: finding and loading a checkpoint, LoRA judges, scoring, text generation, sentence embeddings."""

import logging

# bitsandbytes announces at import that an optional CPU kernel package is absent; nothing here asks for it.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
