// Functions of numbers, by a name of their own: the bundle has each once.

export const { abs, ceil, floor, max, min, round } = Math;
