// A graph whose layout Python computed: boxes and lines, drawn as SVG.

import type { Graph } from "./frame";

const SVG = "http://www.w3.org/2000/svg";

function made(name: string, attributes: Record<string, string | number>): SVGElement {
  const result = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) result.setAttribute(key, String(value));
  return result;
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
    for (const key of edge.keys) remember(key, path);
    svg.append(path);
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
    svg.append(group);
  }
  return svg;
}
