// What the colours mean in a picture, for those that are in it.

import type { Frame } from "./frame";

const OF_LISTINGS: [string, string][] = [
  ["value", "made by an equation"],
  ["constant", "comes in, or is constant"],
  ["batch", "comes out"],
  ["residual", "double edge: kept for the backward pass"],
  ["cotangent", "thick edge: of the backward pass"],
];
const LOOKS: Record<string, string> = { residual: "kept", cotangent: "backward" };
const OF_SCENES: [string, string][] = [
  ["value", "a value"],
  ["constant", "constant, or known to Python"],
  ["residual", "kept for the backward pass"],
  ["cotangent", "a cotangent"],
  ["batch", "the batch axis"],
  ["mesh", "an axis of the mesh"],
  ["meshy", "its second axis"],
  ["meshz", "its third axis"],
  ["miss", "does not fit"],
];

/** Roles and what they stand for. */
export function legend(frame: Frame): [string, string][] {
  const looks = new Set(frame.panes.flatMap(({ rows }) => rows.map((row) => row.s)));
  const letters = new Set<string>();
  let drawn = "";
  for (const pane of frame.panes) {
    if (pane.scene) drawn += JSON.stringify(pane.scene.draws);
    if (pane.kind !== "listing") continue;
    for (const row of pane.rows) {
      for (const piece of row.c[0] ?? []) if (piece[2]) letters.add(piece[1] ?? "");
    }
  }
  if (!drawn) return OF_LISTINGS.filter(([role]) => letters.has(role) || looks.has(LOOKS[role]));
  return OF_SCENES.filter(([role]) => drawn.includes(`"${role}"`));
}
