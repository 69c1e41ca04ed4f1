// @vitest-environment jsdom
import { beforeEach, expect, test } from "vitest";
import type { Drawing, Frame, Scene } from "./frame";
import { Player } from "./player";
import { between, drawingOf, isThere, leastFit, placeOf, sameForm } from "./scene";

const draws: Drawing[][] = [
  [["rect", { x: -3, y: -3, width: 46, height: 26, fill: "none", stroke: "halo" }]],
  [["rect", { x: 0, y: 0, width: 40, height: 20, fill: "value-wash", stroke: "value" }]],
  [["rect", { x: 0, y: 0, width: 20, height: 40, fill: "value-wash", stroke: "value" }]],
  [["text", { x: 0, y: 0, fill: "text", "font-size": 13, "font-family": "code" }, "<b>bold</b>"]],
];

const scene: Scene = {
  w: 300,
  h: 100,
  label: "two boxes",
  f: 13,
  marks: [
    { x: 10, y: 10, d: 1, h: 0, k: ["a"], l: "a [4]", go: 0, t: "the first" },
    { x: 80, y: 10, d: 1, h: 0, k: ["b"], l: "b [4]", at: 1, u: 1, m: [[1, 90, 30]], v: [[1, 2]] },
    { x: 0, y: 90, d: 3, l: "bold" },
  ],
};

const frame: Frame = {
  kind: "test",
  call: "f(x)",
  headline: "a test",
  telling: 0,
  text: "a test",
  steps: [0, 1, 2].map((i) => ({ label: `s${i}`, detail: `step ${i}`, on: ["ab"[i] ?? "c"] })),
  panes: [
    { title: "picture", kind: "scene", rows: [], scene, narrow: { ...scene, w: 100 }, draws },
    { title: "rows", kind: "table", rows: [{ c: [[["row"]]], k: ["b"], go: 1 }] },
  ],
};

let root: HTMLElement;
let player: Player;

beforeEach(() => {
  window.matchMedia ??= (() => ({ matches: true })) as unknown as typeof window.matchMedia;
  window.ResizeObserver ??= class { observe() {} } as unknown as typeof ResizeObserver;
  root = document.createElement("div");
  root.className = "minijax-view";
  document.body.replaceChildren(root);
  player = new Player(root, frame);
});

function mark(number: number): SVGGElement {
  return root.querySelector<SVGGElement>(`svg.mj-scene g[data-mark="${number}"]`)!;
}

test("places, drawings and times are those of the last change", () => {
  const [, b] = scene.marks;
  expect(placeOf(b!, 0)).toEqual([80, 10]);
  expect(placeOf(b!, 2)).toEqual([90, 30]);
  expect([drawingOf(b!, 0), drawingOf(b!, 1)]).toEqual([1, 2]);
  expect([0, 1, 2].map((step) => isThere(b!, step))).toEqual([false, true, false]);
});

test("numbers run from one text to the other", () => {
  expect(between("M0 10L4 -8", "M10 20L8 8", 0.5)).toBe("M5 15L6 0");
  expect(sameForm([["path", { d: "M0 1" }]], [["path", { d: "M5.5 -2" }]])).toBe(true);
  expect(sameForm([["path", { d: "M0 1" }]], [["path", { d: "M0 1L2 3" }]])).toBe(false);
});

test("a step lights, dims, moves and turns by key", () => {
  expect(mark(0).classList.contains("mj-on")).toBe(true);
  expect(mark(1).classList.contains("mj-later")).toBe(true);
  player.goTo(1);
  expect(mark(0).classList.contains("mj-on")).toBe(false);
  expect(mark(1).classList.contains("mj-on")).toBe(true);
  expect(mark(1).classList.contains("mj-later")).toBe(false);
  expect(mark(1).style.transform).toBe("translate(90px,30px)");
  expect(mark(1).querySelector("rect:not(.mj-halo)")!.getAttribute("height")).toBe("40");
  player.goTo(2);
  expect(mark(1).classList.contains("mj-later")).toBe(true);
});

test("a click goes to the step, a pointer tells and lights the rows", () => {
  player.goTo(2);
  mark(0).dispatchEvent(new MouseEvent("click", { bubbles: true }));
  expect(player.state.step).toBe(0);
  mark(1).dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  expect(root.querySelector("tr.mj-r")!.classList.contains("mj-near")).toBe(true);
  mark(0).dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  expect(root.querySelector(".mj-detail")!.textContent).toBe("the first");
  root.querySelector("tr.mj-r")!.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  expect(mark(1).classList.contains("mj-near")).toBe(true);
});

test("marks say what they are, and text stays text", () => {
  expect(mark(0).getAttribute("aria-label")).toBe("a [4]");
  expect(mark(0).getAttribute("role")).toBe("button");
  expect(mark(0).getAttribute("tabindex")).toBe("0");
  expect(mark(1).hasAttribute("tabindex")).toBe(false);
  expect(mark(2).querySelector("text")!.textContent).toBe("<b>bold</b>");
  expect(mark(2).querySelector("b")).toBeNull();
});

test("marks may come as JSON; those that show nothing come later, each in its place", () => {
  const marks = [scene.marks[0], { x: 0, y: 0, d: 4, h: 0, go: 2, v: [[2, 1]] }, scene.marks[2]];
  const packed = { ...scene, marks: [], packed: JSON.stringify(marks) };
  const pane = { ...frame.panes[0]!, scene: packed, draws: [...draws, []] };
  root.className = "minijax-view";
  player = new Player(root, { ...frame, panes: [pane] });
  const numbers = (): (string | undefined)[] =>
    [...root.querySelectorAll<SVGGElement>("svg.mj-scene > g")].map(({ dataset }) => dataset["mark"]);
  expect(numbers()).toEqual(["0", "2"]);
  expect(mark(0).classList.contains("mj-on")).toBe(true);
  player.goTo(1);
  expect(numbers()).toEqual(["0", "1", "2"]);
  expect(mark(1).children.length).toBe(1);
  player.goTo(2);
  expect(mark(1).children.length).toBe(2);
});

test("no text is shrunk below 11 pixels to fit", () => {
  expect(leastFit(scene) * 13).toBeCloseTo(11);
  expect(leastFit({ ...scene, f: 11 })).toBe(1);
  expect(leastFit({ ...scene, f: undefined })).toBe(0.8);
});
