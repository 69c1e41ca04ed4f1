// A graph whose layout Python computed: boxes and lines, drawn as SVG.

import type { Graph } from "./frame";

const SVG = "http://www.w3.org/2000/svg";

function made(name: string, attributes: Record<string, string | number>): SVGElement {
  const result = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) result.setAttribute(key, String(value));
  return result;
}

/** The corners of an arrow's head at the end of a line. */
function arrow(points: [number, number][]): string {
  const [x, y] = points[points.length - 1]!;
  const [fromX, fromY] = points[Math.max(0, points.length - 3)]!;
  const length = Math.hypot(x - fromX, y - fromY) || 1;
  const [dx, dy] = [(x - fromX) / length, (y - fromY) / length];
  const corners = [
    [x, y],
    [x - 8 * dx - 4 * dy, y - 8 * dy + 4 * dx],
    [x - 8 * dx + 4 * dy, y - 8 * dy - 4 * dx],
  ];
  return corners.map((corner) => corner.map((part) => part.toFixed(1)).join(",")).join(" ");
}

export function drawGraph(graph: Graph, remember: (key: string, made: Element) => void): SVGElement {
  const svg = made("svg", {
    viewBox: `0 0 ${graph.width} ${graph.height}`,
    width: graph.width,
    height: graph.height,
    role: "img",
    "aria-label": "graph of the equations; the table beside it says the same",
  });
  for (const edge of graph.edges) {
    const points = edge.points.map(([x, y]) => `${x},${y}`).join(" L");
    const path = made("path", { d: `M${points}` });
    const tip = made("polygon", { points: arrow(edge.points) });
    for (const key of edge.keys) {
      remember(key, path);
      remember(key, tip);
    }
    svg.append(path, tip);
  }
  for (const node of graph.nodes) {
    const group = made("g", { class: "mj-node" });
    group.append(
      made("rect", { x: node.x - node.w / 2, y: node.y - node.h / 2, width: node.w, height: node.h, rx: 4 }),
    );
    const text = made("text", { x: node.x, y: node.y + 4, "text-anchor": "middle" });
    text.textContent = node.label;
    group.append(text);
    remember(node.key, group);
    remember(`around ${node.key}`, group);
    svg.append(group);
  }
  return svg;
}
