"""Construction of tasks from a catalogue: what a task means is fixed in code before any of its text is written."""
