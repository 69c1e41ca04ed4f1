import { describe, expect, it } from "vitest";
import type { Frame, Pane, Row } from "./frame";
import { State, columnWidths, folding, jumped, leastWidth, naturalWidth, rowText, search, visible } from "./state";

const row = (text: string, d = 0, more: Partial<Row> = {}): Row => ({ c: [[[text]]], d, ...more });
const rows = [row("a"), row("b", 1), row("c", 2), row("d", 1), row("e")];

function frame(steps = 5, telling = 2): Frame {
  return {
    kind: "test",
    call: "f",
    headline: "h",
    telling,
    steps: Array.from({ length: steps }, (_, i) => ({ label: `s${i}`, detail: "" })),
    panes: [{ title: "", kind: "table", rows }],
    text: "",
  };
}

describe("a key of some steps", () => {
  it("goes on in their order, and from elsewhere to the next one", () => {
    expect([0, 2, 4, 5, 7].map((now) => jumped([2, 5], now))).toEqual([2, 5, 5, 2, 2]);
    expect([0, 7, 1, 3].map((now) => jumped([7, 1, 4], now))).toEqual([7, 1, 4, 7]);
  });
});

describe("rows", () => {
  it("fold the deeper ones that follow", () => {
    expect(folding(rows)).toEqual([true, true, false, false, false]);
  });

  it("hide below a folded one", () => {
    expect(visible(rows, new Set())).toEqual([true, true, true, true, true]);
    expect(visible(rows, new Set([0]))).toEqual([true, false, false, false, true]);
    expect(visible(rows, new Set([1]))).toEqual([true, true, false, true, true]);
  });

  it("are found by their text", () => {
    expect(rowText(row("x"))).toBe("x");
    expect(search(frame(), " C ")).toEqual([{ pane: 0, row: 2 }]);
    expect(search(frame(), "")).toEqual([]);
  });
});

describe("state", () => {
  it("begins at the telling step and stays inside", () => {
    const state = new State(frame());
    expect(state.step).toBe(2);
    expect(state.to(99)).toBe(true);
    expect(state.step).toBe(4);
    expect(state.to(4)).toBe(false);
    expect(state.to(-3)).toBe(true);
    expect(state.step).toBe(0);
    expect(new State(frame(0, 7)).step).toBe(0);
  });

  it("opens what hides a row", () => {
    const state = new State(frame());
    state.folded[0] = new Set([0, 1]);
    expect(state.reveal(0, 2)).toBe(true);
    expect(state.folded[0].size).toBe(0);
    expect(state.reveal(0, 2)).toBe(false);
  });

  it("goes round the rows it found", () => {
    const state = new State(frame());
    expect(state.find("e")).toEqual({ pane: 0, row: 4 });
    expect(state.next(1)).toEqual({ pane: 0, row: 4 });
    expect(state.find("nothing")).toBeNull();
    expect(state.next(-1)).toBeNull();
  });

  it("goes from group to group", () => {
    const grouped = frame(9, 0);
    grouped.panes[0]!.rows = [
      row("g1", 0, { s: "group", go: 0 }),
      row("x", 1),
      row("g2", 0, { s: "group", go: 4 }),
    ];
    const state = new State(grouped);
    expect(state.group(1)).toBe(4);
    state.to(6);
    expect(state.group(-1)).toBe(4);
    expect(state.group(1)).toBeNull();
  });
});

describe("widths of panes", () => {
  const pane = (kind: Pane["kind"], ...rows: string[][]): Pane => ({
    title: "",
    kind,
    rows: rows.map((cells) => ({ c: cells.map((text) => [[text]]) })),
  });
  it("takes the widest cell of each column", () => {
    const made = pane("table", ["ab", "x"], ["a", "xyz"]);
    expect(columnWidths(made)).toEqual([5, 6]);
  });
  it("stays within reason, and lets code give way", () => {
    expect(naturalWidth(pane("table", ["a"]))).toBe(26);
    expect(naturalWidth(pane("table", ["a".repeat(300)]))).toBe(100);
    expect(naturalWidth(pane("code", ["1", "a".repeat(300)]))).toBe(100);
    const wide = pane("code", ["1", "a".repeat(90)]);
    expect(leastWidth(wide)).toBeLessThan(naturalWidth(wide));
    const cut = pane("table", ["a".repeat(50), "b"]);
    expect(leastWidth(cut)).toBe(naturalWidth(cut));
  });
});
