"""tiny: a toy JAX over NumPy, which the course builds, one piece a chapter.

It computes with NumPy and compiles nothing. It is here to be understood, not used.
(The two modules of chapter 15 are libraries for minijax, and import it.)
A program is a list of equations; `evaluate(program, table)` goes through them, and each
chapter adds a table that says what an equation means:

| chapter | module | table |
|---|---|---|
| 01 | at | |
| 02 | trace | MEANING, SHAPES |
| 03 | cache | |
| 04 | tree | REGISTRY |
| 05 | threefry | |
| 06 | operations, tangents | TANGENTS |
| 07 | linearize, transposes | TRANSPOSES |
| 08 | batching | BATCHING |
| 09 | nesting | |
| 10 | loops, loop_rules | |
| 11 | custom | |
| 12 | leaks | |
| 13 | fuser | |
| 14 | export | WORDS, REDUCTIONS |
| 15 | modules, optimizers | |
| 16 | placed | |
| 17 | collectives | |
| 18 | kernels | |
| 19 | attention | |
| 20 | printing | |
| 21 | recurrence, intervals | INTERVALS |
"""
