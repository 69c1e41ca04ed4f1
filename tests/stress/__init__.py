"""minijax under many calls and many threads."""
