"""Real public files as judgments: PIQA, IntentionQA, Amazon ESCI, CoScript. One module per source, one pipeline."""
