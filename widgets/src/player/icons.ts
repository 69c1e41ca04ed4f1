// Signs on buttons, drawn; what they mean stands in the button's label.

import { flag, set, svgElement } from "./dom";

/** Paths on 16 by 16; "f" before one that is filled. */
const PATHS: Record<string, string> = {
  first: "M4 3v10M12 3 7 8l5 5",
  back: "M10 3 5 8l5 5",
  forward: "M6 3l5 5-5 5",
  last: "M12 3v10M4 3l5 5-5 5",
  play: "fM4 2.5 13 8l-9 5.5z",
  stop: "fM4 3h3v10H4zM9 3h3v10H9z",
  whole: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  map: "M2.5 2.5h11v11h-11zM8 8h5.5M8 8v5.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5 14 14",
};

/** The sign of that name; null if there is none. */
export function icon(name: string): SVGElement | null {
  const path = PATHS[name];
  if (!path) return null;
  const svg = svgElement("svg");
  set(svg, "viewBox", "0 0 16 16");
  set(svg, "aria-hidden", "true");
  flag(svg, "icon");
  const made = svgElement("path");
  const filled = path[0] === "f";
  set(made, "d", filled ? path.slice(1) : path);
  if (filled) set(made, "fill", "currentColor");
  svg.append(made);
  return svg;
}
