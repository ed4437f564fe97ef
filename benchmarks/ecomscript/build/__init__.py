"""Building an EcomScriptBench from a catalogue and its reviews, as the paper (arXiv 2505.15196, section 3) did.

Stages, each in a folder of its own: ingest, goals, scripts, needs, intents, keywords, index, align, sample, annotate.
What the paper leaves open is chosen in docs/choices.md.
"""
