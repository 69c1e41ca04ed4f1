import { describe, expect, it } from "vitest";
import type { Frame, Row } from "./frame";
import { choices, linesOfSteps, nearest, rowsLeft, stepsLeft } from "./only";
import { State, visible } from "./state";

const row = (text: string, go: number | undefined, more: Partial<Row> = {}): Row => ({
  c: [[[text]]],
  ...(go === undefined ? {} : { go }),
  ...more,
});

/** sin, mul, sin, add; the first two are of line 2, the others of line 3. */
function frame(): Frame {
  const labels = ["sin", "mul", "sin", "add"];
  return {
    kind: "jaxpr",
    call: "f",
    headline: "h",
    telling: 1,
    only: true,
    text: "",
    steps: labels.map((label) => ({ label, detail: "" })),
    panes: [
      {
        title: "jaxpr",
        kind: "listing",
        rows: [
          row("{ lambda ; a:f32[]. let", undefined),
          row("line 2", 0, { s: "group", f: true }),
          row("b = sin a", 0, { d: 1, k: ["e0", "l0:2"] }),
          row("c = mul b a", 1, { d: 1, k: ["e1", "l0:2"] }),
          row("line 3", 2, { s: "group", f: true }),
          row("d = sin c", 2, { d: 1, k: ["e2", "l0:3"] }),
          row("e = add d b", 3, { d: 1, k: ["e3", "l0:3"] }),
          row("in (e,) }", undefined),
        ],
      },
      {
        title: "f",
        kind: "code",
        rows: [
          { c: [[["2"]], [["  y = sin(x) * x"]]], k: ["l0:2", "s0:2"] },
          { c: [[["3"]], [["  return sin(y) + x"]]], k: ["l0:3", "s0:3"] },
        ],
      },
    ],
  };
}

describe("a filter", () => {
  it("offers primitives by how often they come, and lines with their text", () => {
    const found = choices(frame()).map((choice) => `${choice.kind} ${choice.text} ${choice.count}`);
    expect(found).toEqual([
      "label sin 2",
      "label add 1",
      "label mul 1",
      "line line 2  y = sin(x) * x 2",
      "line line 3  return sin(y) + x 2",
    ]);
    expect(linesOfSteps(frame())).toEqual(["l0:2", "l0:2", "l0:3", "l0:3"]);
  });

  it("leaves steps by primitive, line and search", () => {
    expect(stepsLeft(frame(), { kind: "label", key: "sin" })).toEqual([true, false, true, false]);
    expect(stepsLeft(frame(), { kind: "line", key: "l0:3" })).toEqual([false, false, true, true]);
    expect(stepsLeft(frame(), { kind: "found", key: "B A" })).toEqual([false, true, false, false]);
    // What only the source or a group has is no equation.
    expect(stepsLeft(frame(), { kind: "found", key: "line 2" })).not.toContain(true);
    expect(stepsLeft(frame(), { kind: "found", key: "return" })).not.toContain(true);
  });

  it("shows rows inside of folded groups, and nothing around them", () => {
    const left = stepsLeft(frame(), { kind: "label", key: "sin" });
    const shown = rowsLeft(frame().panes[0]!, left);
    expect(shown).toEqual([false, false, true, false, false, true, false, false]);
  });

  it("draws no more rows than a page can hold", () => {
    const rows = Array.from({ length: 5000 }, (_, i) => row(`x${i}`, i));
    const shown = rowsLeft({ title: "", kind: "listing", rows }, rows.map(() => true));
    expect(shown.filter(Boolean).length).toBe(2000);
  });

  it("goes to the nearest step that is left", () => {
    const left = [true, false, false, true, false];
    expect(nearest(left, 1, 1)).toBe(3);
    expect(nearest(left, 2, -1)).toBe(0);
    expect(nearest(left, 4, 1)).toBe(3);
    expect(nearest([false], 0, 1)).toBe(0);
  });

  it("steps over what it hides, and gives all back", () => {
    const state = new State(frame());
    expect(state.filter({ kind: "label", key: "sin" })).toBe(true);
    expect(state.step).toBe(2);
    expect(state.to(state.step - 1)).toBe(true);
    expect(state.step).toBe(0);
    expect(state.to(state.step - 1)).toBe(false);
    expect(state.to(state.lastStep)).toBe(true);
    expect(state.step).toBe(2);
    expect(state.countLeft).toBe(2);
    expect(state.shown(0)[3]).toBe(false);
    expect(state.shown(1)).toEqual([true, true]);
    state.filter(null);
    expect(state.countLeft).toBe(4);
    expect(state.shown(0)).toEqual(visible(frame().panes[0]!.rows, new Set([1, 4])));
  });
});
