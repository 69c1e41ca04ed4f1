// @vitest-environment jsdom
import { expect, test } from "vitest";
import { stepAt } from "./axes";
import type { Frame } from "./frame";
import { Player } from "./player";

const places = [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
];
const frame: Frame = {
  kind: "test",
  call: "f(x)",
  headline: "a grid",
  telling: 1,
  text: "a grid",
  steps: places.map((place) => ({ label: String(place), detail: "" })),
  panes: [],
  axes: { names: ["i", "j"], sizes: [2, 2], places },
};

test("a place along an axis has a step", () => {
  expect(stepAt(places, 1, 0, 1)).toBe(3);
  expect(stepAt(places, 3, 1, 0)).toBe(2);
  expect(stepAt(places, 3, 1, 2)).toBe(-1);
  // Without a step at that place: the first one with this number.
  expect(stepAt(places.slice(0, 3), 1, 0, 1)).toBe(2);
});

test("a slider for each axis goes to its step and follows the others", () => {
  window.ResizeObserver ??= class { observe() {} } as unknown as typeof ResizeObserver;
  const root = document.createElement("div");
  document.body.append(root);
  const player = new Player(root, frame);
  const [i, j] = [...root.querySelectorAll<HTMLInputElement>(".mj-axes input")];
  expect([i!.value, j!.value]).toEqual(["0", "1"]);
  i!.value = "1";
  i!.dispatchEvent(new Event("input"));
  expect(player.state.step).toBe(3);
  player.goTo(2);
  expect([i!.value, j!.value]).toEqual(["1", "0"]);
  // Its own arrow keys move a slider; they are not those of the steps.
  i!.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
  expect(player.state.step).toBe(2);
});
