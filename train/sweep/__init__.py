"""Running a W&B sweep file without a server: its distributions drawn by Optuna, each trial a training of its own."""
