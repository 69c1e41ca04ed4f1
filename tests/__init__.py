"""The tests of minijax."""
