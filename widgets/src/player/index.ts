// The two ways onto the screen: `mount` for pages, `render` for anywidget.

import type { Frame } from "./frame";
import { Player } from "./player";

/** Turns each static frame with this id that is not live yet into a player. */
function mount(id: string, frame: Frame): Player[] {
  const roots = document.querySelectorAll<HTMLElement>(`[data-mj="${id}"]:not(.mj-live)`);
  return [...roots].map((root) => new Player(root, frame));
}

interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

/** A view as a widget: its traits are `frame`, `step` and `selection`. */
function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  let player: Player | undefined;
  const draw = (): void => {
    const root = document.createElement("div");
    root.className = "minijax-view";
    el.replaceChildren(root);
    const frame = JSON.parse(model.get("frame") as string) as Frame;
    const step = model.get("step") as number;
    player = new Player(root, frame, {
      before: player?.frame,
      onChange: (now, selection) => {
        model.set("step", now);
        model.set("selection", selection);
        model.save_changes();
      },
    });
    if (step >= 0) player.goTo(step);
  };
  const follow = (): void => player?.goTo(model.get("step") as number);
  draw();
  model.on("change:frame", draw);
  model.on("change:step", follow);
  return () => {
    model.off("change:frame", draw);
    model.off("change:step", follow);
  };
}

// What the page's scripts know of the player; the build declares the name.
declare const minijaxPlayer: object;
if (typeof minijaxPlayer !== "undefined") Object.assign(minijaxPlayer, { mount, render });
