// What the player knows, without a page: stepping, folding, searching. Tested alone.

import type { Frame, Pane, Piece, Row } from "./frame";
import { nearest, rowsLeft, stepsLeft, type Only } from "./only";
import { ceil, max, min } from "./numbers";

/** Above this many rows a pane opens its groups one at a time. */
export const MANY_ROWS = 300;
/** Above this many rows an open group is closed again when another one opens. */
export const MOST_ROWS = 2000;

export function clamp(value: number, low: number, high: number): number {
  return max(low, min(high, value));
}

/** How many letters of a piece are shown at first. */
export function lettersOf(piece: Piece): number {
  return piece[1] === "params" ? 5 : piece[1] === "bytes" ? 12 : piece[0].length;
}

/** The text of a cell. */
export function cellText(pieces: Piece[] = []): string {
  return pieces.map((piece) => piece[0]).join("");
}

/** The text of a row, as a search sees it. */
export function rowText(row: Row): string {
  return row.c.map(cellText).join("  ");
}

/** Which rows fold others: those that a deeper one follows. */
export function folding(rows: Row[]): boolean[] {
  return rows.map(({ d = 0 }, row) => (rows[row + 1]?.d ?? 0) > d);
}

/** Whether each row is visible, given which ones are folded. */
export function visible(rows: Row[], folded: Set<number>): boolean[] {
  const shown: boolean[] = [];
  let hiddenBelow = Infinity;
  rows.forEach((row, index) => {
    const depth = row.d ?? 0;
    if (depth <= hiddenBelow) hiddenBelow = Infinity;
    shown.push(hiddenBelow === Infinity);
    if (hiddenBelow === Infinity && folded.has(index)) hiddenBelow = depth;
  });
  return shown;
}

/** Rows of a pane that are folded at first: all groups of a long one but the first. */
export function foldedAtFirst(pane: Pane): Set<number> {
  const folded = new Set<number>();
  pane.rows.forEach((row, index) => {
    if (row.f) folded.add(index);
  });
  return folded;
}

/** Works out what belongs to a pane once. */
function once<T>(work: (pane: Pane) => T): (pane: Pane) => T {
  const known = new WeakMap<Pane, T>();
  return (pane) => {
    if (!known.has(pane)) known.set(pane, work(pane));
    return known.get(pane)!;
  };
}

/** How many letters each column of a pane needs, and each row of text, in their order. */
const measured = once((pane: Pane) => {
  const listing = pane.kind === "listing";
  // What stands alone in its row has the room of all columns.
  const tailed = pane.rows.filter(({ c }) => c.length > 1);
  const widths = [0];
  const letters = (tailed[0] ? tailed : pane.rows).map(({ c, d = 0 }) => {
    const indent = 3 + 2 * d;
    let first = indent;
    c.forEach((cell, column) => {
      let needed = column ? 3 : indent;
      for (const piece of cell) needed += lettersOf(piece);
      if (!column) first = needed;
      // The rail of a listing gives way to the text.
      else if (listing) needed = min(needed, 34);
      widths[column] = max(widths[column] ?? 0, needed);
    });
    return first;
  });
  return { widths, letters: Uint32Array.from(letters).sort() };
});
export const columnWidths = (pane: Pane): number[] => measured(pane).widths;

/** A width that most rows of text find enough: the long ones wrap. */
export function usualWidth(pane: Pane): number {
  const { letters } = measured(pane);
  return letters[ceil(0.95 * (letters.length - 1))] ?? 0;
}

/** What the pieces of a pane are: their roles. */
export const rolesOf = once((pane: Pane): Set<string | undefined> => {
  const found = new Set<string | undefined>();
  for (const row of pane.rows) for (const cell of row.c) for (const piece of cell) found.add(piece[1]);
  return found;
});

/** How many letters wide a pane would like to be, within reason. */
export function naturalWidth(pane: Pane): number {
  if (pane.scene) return pane.scene.w / 7.8 + 2;
  if (pane.kind === "prose") return 72;
  if (pane.kind === "tiles") return 100;
  const widths = [...columnWidths(pane)];
  if (pane.kind === "listing") widths[0] = usualWidth(pane);
  const all = widths.reduce((sum, width) => sum + width);
  return clamp(all, min(36, max(26, pane.title.length)), 100);
}

/** Below this many letters a pane stands under the others rather than beside them.
 *  Beside a listing that `leads` there is room only where none of its lines need wrap. */
export function leastWidth(pane: Pane, leads = false): number {
  if (pane.scene) return min(naturalWidth(pane), pane.less ? pane.less.w / 7.8 : 70);
  // Code and prose wrap, and long lines of a listing; a cut table says less.
  if (pane.kind === "listing") {
    const rail = columnWidths(pane).slice(1).map((width) => min(width, 29));
    const needed = rail.reduce((sum, width) => sum + width, usualWidth(pane));
    return clamp(needed, 26, leads ? 100 : 85);
  }
  const bare = columnWidths(pane).length === 1;
  // Below 26 letters most lines of code would wrap.
  if (pane.kind === "code" && !bare) return max(26, 0.65 * min(naturalWidth(pane), 72));
  return naturalWidth(pane) * (bare ? 0.6 : pane.kind === "prose" ? 0.75 : 1);
}

/** The step that a key of some steps goes to: from one of them to the one that follows
 *  it in their order; from elsewhere to the next one further on, if they rise. */
export function jumped(steps: number[], now: number): number {
  const at = steps.indexOf(now);
  if (at >= 0) return steps[(at + 1) % steps.length]!;
  const rises = steps.every((step, place) => !place || steps[place - 1]! < step);
  return (rises ? steps.find((step) => step > now) : undefined) ?? steps[0]!;
}

export interface Hit {
  pane: number;
  row: number;
}

/** The rows that contain a text; the case of letters does not count. */
export function search(frame: Frame, text: string): Hit[] {
  const wanted = text.trim().toLowerCase();
  const hits: Hit[] = [];
  if (!wanted) return hits;
  frame.panes.forEach((pane, index) => {
    pane.rows.forEach((one, row) => {
      if (rowText(one).toLowerCase().includes(wanted)) hits.push({ pane: index, row });
    });
  });
  return hits;
}

/** The player's state: the step, the selected row, what is folded. */
export class State {
  step: number;
  folded: Set<number>[];
  selected: Hit | null = null;
  hits: Hit[] = [];
  hit = -1;
  /** The filter, and the steps that it leaves. */
  only: Only | null = null;
  left: boolean[] | null = null;

  constructor(readonly frame: Frame) {
    this.step = clamp(frame.telling, 0, this.lastStep);
    this.folded = frame.panes.map(foldedAtFirst);
  }

  get lastStep(): number {
    return max(0, this.frame.steps.length - 1);
  }

  to(step: number): boolean {
    let next = clamp(step, 0, this.lastStep);
    if (this.left) next = nearest(this.left, next, next < this.step ? -1 : 1);
    if (next === this.step) return false;
    this.step = next;
    return true;
  }

  /** Shows only some equations (null: all); whether the step changed for it. */
  filter(only: Only | null): boolean {
    this.only = only;
    this.left = only && stepsLeft(this.frame, only);
    return this.to(this.step);
  }

  /** How many steps the filter leaves. */
  get countLeft(): number {
    return (this.left ?? this.frame.steps).filter(Boolean).length;
  }

  /** Which rows of a pane are visible. */
  shown(pane: number): boolean[] {
    const { kind, rows } = this.frame.panes[pane]!;
    if (this.left && kind === "listing") return rowsLeft(this.frame.panes[pane]!, this.left);
    return visible(rows, this.folded[pane]!);
  }

  /** Unfolds whatever hides a row. */
  reveal(pane: number, row: number): boolean {
    const rows = this.frame.panes[pane]!.rows;
    const folded = this.folded[pane]!;
    let changed = false;
    let depth = rows[row]!.d ?? 0;
    for (let index = row - 1; index >= 0 && depth > 0; index--) {
      const above = rows[index]!.d ?? 0;
      if (above < depth) {
        if (folded.delete(index)) changed = true;
        depth = above;
      }
    }
    return changed;
  }

  find(text: string): Hit | null {
    this.hits = search(this.frame, text);
    this.hit = -1;
    return this.next(1);
  }

  next(by: number): Hit | null {
    const count = this.hits.length;
    if (!count) return null;
    this.hit = this.hit < 0 && by < 0 ? count - 1 : (this.hit + by + count) % count;
    return this.hits[this.hit]!;
  }

  /** The step of the next or previous group of the first pane that has groups. */
  group(by: number): number | null {
    for (const pane of this.frame.panes) {
      const starts = pane.rows.flatMap(({ s, go }) => (s === "group" ? (go ?? []) : []));
      if (!starts.length) continue;
      if (by > 0) return starts.find((start) => start > this.step) ?? null;
      return starts.reverse().find((start) => start < this.step) ?? null;
    }
    return null;
  }
}
