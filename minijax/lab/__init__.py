"""What the course's notebooks call: predictions, checks, refreshing."""

from minijax.lab.grading import check, predict

__all__ = ["check", "predict"]
