// Sliders for steps that stand in a grid: one for each of its axes.

import { element, label } from "./dom";
import type { Frame } from "./frame";

/** The step at which the place of step `now` has another number along one axis; else
 *  the first step that has this number; -1 if there is none. */
export function stepAt(places: number[][], now: number, axis: number, wanted: number): number {
  const exact = places.findIndex((place) =>
    place.every((at, other) => at === (other === axis ? wanted : places[now]![other])),
  );
  return exact < 0 ? places.findIndex((place) => place[axis] === wanted) : exact;
}

/** Puts a slider for each axis into `box`; returns what moves them to a step. */
export function axisSliders(
  box: HTMLElement,
  { names, sizes, places }: NonNullable<Frame["axes"]>,
  goTo: (step: number) => void,
): (step: number) => void {
  let now = 0;
  const sliders = names.map((name, axis) => {
    const slider = element("input");
    slider.type = "range";
    slider.max = String(sizes[axis]! - 1);
    label(slider, `axis ${name}`);
    slider.oninput = () => {
      const found = stepAt(places, now, axis, Number(slider.value));
      goTo(found < 0 ? now : found);
    };
    box.append(name, slider);
    return slider;
  });
  return (step) => {
    now = step;
    sliders.forEach((slider, axis) => (slider.value = String(places[step]![axis])));
  };
}
