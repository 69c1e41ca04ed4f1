// A filter: which steps and rows are left when only some equations are wanted.

import type { Frame, Pane } from "./frame";
import { MOST_ROWS, cellText, search } from "./state";
import { round } from "./numbers";

/** What is wanted: the equations of a primitive, of a source line, or those found. */
export interface Only {
  kind: "label" | "line" | "found";
  key: string;
}

export interface Choice extends Only {
  text: string;
  count: number;
}

const MOST_CHOICES = 60;
/** The first of a row's keys that names a source line: `l0:12`. */
function lineOf(keys: string[] | undefined): string | undefined {
  return keys?.find((key) => key[0] === "l");
}

/** The source line that made each step, as a key; "" where it is not known. */
export function linesOfSteps(frame: Frame): string[] {
  const lines = frame.steps.map(() => "");
  for (const pane of frame.panes) {
    if (pane.kind !== "listing") continue;
    for (const row of pane.rows) {
      const line = lineOf(row.k);
      if (row.go !== undefined && line && row.s !== "group") lines[row.go] ||= line;
    }
  }
  return lines;
}

/** The text of each source line, by its key. */
function textsOfLines(frame: Frame): Map<string, string> {
  const texts = new Map<string, string>();
  for (const pane of frame.panes) {
    if (pane.kind !== "code") continue;
    for (const row of pane.rows) {
      const line = lineOf(row.k);
      if (line) texts.set(line, cellText(row.c[1]).trim());
    }
  }
  return texts;
}

function counted(keys: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) if (key) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** What can be chosen: primitives, the most frequent first, and lines in their order. */
export function choices(frame: Frame): Choice[] {
  const labels = [...counted(frame.steps.map((step) => step.label))]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, MOST_CHOICES)
    .map(([key, count]): Choice => ({ kind: "label", key, text: key, count }));
  const texts = textsOfLines(frame);
  const lines = [...counted(linesOfSteps(frame))]
    .slice(0, MOST_CHOICES)
    .map(([key, count]): Choice => {
      const text = `line ${key.split(":")[1]}  ${texts.get(key) ?? ""}`.trim();
      return { kind: "line", key, text: text.length > 40 ? `${text.slice(0, 37)}...` : text, count };
    });
  return [...labels, ...lines];
}

/** Which steps a filter leaves. */
export function stepsLeft(frame: Frame, only: Only): boolean[] {
  if (only.kind === "label") return frame.steps.map((step) => step.label === only.key);
  if (only.kind === "line") return linesOfSteps(frame).map((line) => line === only.key);
  const left = frame.steps.map(() => false);
  for (const { pane, row } of search(frame, only.key)) {
    const found = frame.panes[pane]!;
    const { go, s } = found.rows[row]!;
    if (found.kind === "listing" && go !== undefined && s !== "group") left[go] = true;
  }
  return left;
}

/** Which rows of a listing a filter leaves: those of its steps, also in folded groups. */
export function rowsLeft(pane: Pane, left: boolean[]): boolean[] {
  let shown = 0;
  return pane.rows.map(({ go, s }) => {
    if (go === undefined || s === "group" || !left[go]) return false;
    return ++shown <= MOST_ROWS;
  });
}

/** The step that is left and nearest to `step`, first looking the way `by` goes. */
export function nearest(left: boolean[], step: number, by: number): number {
  for (const way of [by, -by]) {
    for (let at = step; at >= 0 && at < left.length; at += way) if (left[at]) return at;
  }
  return step;
}

/** A hue, in degrees, for each source line that wrote equations; neighbours differ. A
 *  line alone needs none. */
export function huesOfLines(frame: Frame): Map<string, number> {
  const lines = new Set<string>();
  for (const { kind, rows } of frame.panes) {
    if (kind !== "listing") continue;
    for (const row of rows) for (const key of row.k ?? []) if (key[0] === "l" && /^l\d+:\d+$/.test(key)) lines.add(key);
  }
  if (lines.size < 2) return new Map();
  // The browser's own order of words takes as long as the picture, the first time.
  const place = (key: string): number => key.slice(1).split(":").reduce((sum, part) => 1e6 * sum + Number(part), 0);
  const order = [...lines].sort((a, b) => place(a) - place(b));
  return new Map(order.map((key, at) => [key, round(250 + 137.5 * at) % 360]));
}
