import { describe, expect, it } from "vitest";
import { tokens } from "./python";

const told = (lines: string[]): string[][] =>
  tokens(lines).map((found, row) => found.map(([from, to, kind]) => `${kind} ${lines[row]!.slice(from, to)}`));

describe("tokens", () => {
  it("knows words, names, texts, numbers and comments", () => {
    expect(told(["def f(x):", "    return x['a'] * 2.5  # twice"])).toEqual([
      ["word def", "name f"],
      ["word return", "text 'a'", "number 2.5", "comment # twice"],
    ]);
  });
  it("goes on with a text over lines", () => {
    expect(told(['"""One', "two", 'three""" if x else b"#"'])).toEqual([
      ['text """One'],
      ["text two"],
      ['text three"""', "word if", "word else", 'text b"#"'],
    ]);
  });
  it("takes an operator for no decorator, a name for no word", () => {
    expect(told(["y = x @ w", "@jit", "match = 3"])).toEqual([[], ["name @jit"], ["number 3"]]);
  });
  it("survives a text without an end", () => {
    expect(told(['x = "abc'])).toEqual([['text "abc']]);
  });
});
