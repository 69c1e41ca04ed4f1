"""The programs of the golden corpus, one module per group."""
