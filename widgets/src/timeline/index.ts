// Bars along a program, tens of thousands of them, on a canvas that zooms and pans. The
// bars of the step are full of ink; the longest of them stand below as buttons. Only
// pages that have such a picture carry this script.

import { bounds, drag, element, flag, label, listen, onWidth } from "../player/dom";
import type { Pane } from "../player/frame";
import type { Stage } from "../player/scene";

const MOST_HIGH = 320;
/** How high a row is drawn at most, and the room for letters in a bar. */
const ROW = 20;
const LETTERS = 11;
const LETTER = 6.7;
/** How many bars of the step stand in the document. */
const NEAR = 8;
const MAP = [140, 44] as const;
const STYLE = `.mj-bars canvas{display:block;width:100%;touch-action:pan-y;cursor:crosshair}
.mj-bars .mj-bar{justify-content:flex-end;margin:0 8px 4px}
.mj-bars ul{list-style:none;margin:4px 0 0;padding:0 8px}
.mj-bars li button{all:unset;cursor:pointer;border-left:8px solid;padding-left:8px;overflow-wrap:anywhere}
.mj-bars li button:focus-visible{outline:2px solid var(--mj-value)}`;

export class Bars {
  #canvas = element("canvas");
  #base = element("canvas");
  /** All of it, small. */
  #whole = element("canvas");
  #list = element("ul");
  #drawn = "";
  #zoom = 1;
  #left = 0;
  #top = 0;
  #wide = 1;
  #high = 1;
  #over = -1;

  constructor(
    readonly section: HTMLElement,
    private root: HTMLElement,
    private pane: Pane,
    _index: number,
    private stage: Stage,
  ) {
    flag(section, "bars");
    const bar = element("div", "mj-bar");
    const tools: [string, string, number][] = [
      ["-", "smaller", 0.5],
      ["+", "larger", 2],
      ["0", "all of it", 0],
    ];
    for (const [sign, what, factor] of tools) {
      const made = element("button", "", sign);
      made.type = "button";
      made.title = what;
      label(made, what);
      listen(made, "click", () => this.#zoomBy(factor));
      bar.append(made);
    }
    this.#canvas.setAttribute("role", "img");
    label(this.#canvas, pane.scene!.label);
    section.append(element("style", "", STYLE), bar, this.#canvas, this.#list);
    listen(section, "keydown", (event) => {
      const factor = { "+": 2, "=": 2, "-": 0.5, "0": 0 }[event.key];
      if (factor === undefined || event.ctrlKey || event.metaKey) return;
      event.stopPropagation();
      this.#zoomBy(factor);
    });
    const { style } = this.#canvas;
    listen(this.#canvas, "wheel", (event) => this.#wheel(event), { passive: false });
    listen(this.#canvas, "pointerdown", (event) => this.#press(event));
    listen(this.#canvas, "mousemove", (event) => {
      this.#over = this.#barAt(event);
      style.cursor = this.#over < 0 ? "" : "pointer";
      stage.say(this.#over < 0 ? stage.detail() : this.#sentence(this.#over));
      this.#draw();
    });
    listen(this.#canvas, "mouseleave", () => {
      this.#over = -1;
      stage.say(stage.detail());
      this.#draw();
    });
    matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => this.#draw());
    onWidth(section, () => this.choose());
  }

  get #bars() {
    return this.pane.scene!.bars!;
  }

  /** Fits the canvas to the pane. */
  choose(): void {
    this.#wide = Math.max(1, this.section.clientWidth);
    this.#high = Math.min(MOST_HIGH, this.#bars.rows * ROW);
    for (const made of [this.#canvas, this.#base]) {
      made.width = this.#wide * devicePixelRatio;
      made.height = this.#high * devicePixelRatio;
    }
    this.#canvas.style.height = `${this.#high}px`;
    this.#drawn = "";
    this.#draw();
  }

  /** Pixels of a point and of a row. */
  #scales(zoom = this.#zoom): [number, number] {
    const { end, rows } = this.#bars;
    return [(this.#wide / end) * zoom, Math.max(this.#high / rows, Math.min(ROW, (this.#high / rows) * zoom))];
  }

  #clamp(): void {
    const { end, rows } = this.#bars;
    const [across, down] = this.#scales();
    this.#left = Math.max(0, Math.min(this.#left, end - this.#wide / across));
    this.#top = Math.max(0, Math.min(this.#top, rows - this.#high / down));
  }

  /** Zooms; the point (x, y) of the canvas stays. No factor: all of it. */
  #zoomBy(factor: number, x?: number, y = this.#high / 2): void {
    const [across, down] = this.#scales();
    const at = this.#at() ?? this.#left;
    // Without a pointer the step stays, if it is in sight.
    const own = (at - this.#left) * across;
    const from = x ?? (own >= 0 && own <= this.#wide ? own : this.#wide / 2);
    const [point, row] = [this.#left + from / across, this.#top + y / down];
    const most = Math.max(1, this.#bars.end / 4);
    this.#zoom = factor ? Math.min(most, Math.max(1, this.#zoom * factor)) : 1;
    const [now, below] = this.#scales();
    this.#left = point - from / now;
    this.#top = row - y / below;
    this.#draw();
  }

  #wheel(event: WheelEvent): void {
    const { clientX, clientY, deltaX, deltaY } = event;
    const box = bounds(this.#canvas);
    if (event.ctrlKey || event.metaKey || document.fullscreenElement) {
      this.#zoomBy(Math.exp(-deltaY / 200), clientX - box.left, clientY - box.top);
    } else {
      const by = event.shiftKey ? deltaX || deltaY : deltaX;
      if (!by || this.#zoom === 1) return;
      this.#left += by / this.#scales()[0];
      this.#draw();
    }
    event.preventDefault();
  }

  #press(down: PointerEvent): void {
    const box = bounds(this.#canvas);
    const [left, top] = [this.#left, this.#top];
    const [across, deep] = this.#scales();
    const { end, rows } = this.#bars;
    const [x, y] = [down.clientX - box.left, down.clientY - box.top];
    const onMap = this.#zoom > 1 && x > this.#wide - MAP[0] && y > this.#high - MAP[1];
    let moved = onMap;
    const move = (event: PointerEvent): void => {
      const by = [event.clientX - down.clientX, event.clientY - down.clientY] as const;
      moved ||= Math.hypot(...by) > 4;
      if (!moved) return;
      if (onMap) {
        const [mapX, mapY] = [x + by[0] - this.#wide + MAP[0], y + by[1] - this.#high + MAP[1]];
        this.#left = (mapX / MAP[0]) * end - this.#wide / across / 2;
        this.#top = (mapY / MAP[1]) * rows - this.#high / deep / 2;
      } else {
        this.#left = left - by[0] / across;
        this.#top = top - by[1] / deep;
      }
      this.#draw();
    };
    if (onMap) move(down);
    drag(move);
    const bar = this.#barAt(down);
    // No click comes where the browser took the touch to scroll the page.
    this.#canvas.onclick = () => {
      if (!moved && bar >= 0) this.#choose(bar);
    };
  }

  /** The bar under the pointer, the nearest to it of those that are thinner than a pixel. */
  #barAt(event: MouseEvent): number {
    const box = bounds(this.#canvas);
    const [across, down] = this.#scales();
    const x = this.#left + (event.clientX - box.left) / across;
    const y = this.#top + (event.clientY - box.top) / down;
    const [starts, lengths, tops, highs] = this.#bars.columns as number[][];
    const slack = 2 / across;
    let found = -1;
    for (let bar = 0; bar < starts!.length; bar++) {
      if (y < tops![bar]! || y >= tops![bar]! + highs![bar]!) continue;
      if (x >= starts![bar]! - slack && x <= starts![bar]! + lengths![bar]! + slack) found = bar;
    }
    return found;
  }

  /** Goes to the step of a bar, if it has one. */
  #choose(bar: number): void {
    const step = this.#bars.columns[5]![bar]!;
    if (step >= 0) this.stage.goTo(step);
  }

  #sentence(bar: number): string {
    const { said, columns, told } = this.#bars;
    const [before, between, shift, unit] = told;
    const start = columns[0]![bar]!;
    // A bar of whole points ends before its last one does.
    const end = start + columns[1]![bar]! - (unit ? 0 : 1);
    const [from, to] = [start + shift, end + shift].map((n) => n.toLocaleString("en", { maximumFractionDigits: 1 }));
    return `${said[columns[6]![bar]!]}${before}${from}${unit}${between}${to}${unit}`;
  }

  /** The point of the step. */
  #at(): number | undefined {
    const { at, columns } = this.#bars;
    const step = this.stage.step();
    return at ? at[step] : columns[0]![columns[5]!.indexOf(step)];
  }

  /** The bars of the step, the longest first. */
  #lit(): number[] {
    const { at, columns } = this.#bars;
    const [starts, lengths, , , , goes] = columns as number[][];
    const step = this.stage.step();
    const now = at?.[step];
    const found: number[] = [];
    for (let bar = 0; bar < starts!.length; bar++) {
      const there = now === undefined ? goes![bar] === step : starts![bar]! <= now && now < starts![bar]! + lengths![bar]!;
      if (there) found.push(bar);
    }
    return found;
  }

  /** Draws bars with a role's ink or wash; letters where there is room. */
  #paint(context: CanvasRenderingContext2D, which: Iterable<number>, lit: boolean): void {
    const { columns, roles, said } = this.#bars;
    const [starts, lengths, tops, highs, kinds, , names] = columns as number[][];
    const [across, down] = this.#scales();
    const style = getComputedStyle(this.root);
    const ink = (name: string): string => style.getPropertyValue(`--mj-${name}`);
    const inks = roles.map((role) => [ink(role), ink(`${role}-wash`) || ink("panel"), ink("text"), ink("base")]);
    context.font = "11px ui-monospace,monospace";
    for (const bar of which) {
      const x = (starts![bar]! - this.#left) * across;
      const y = (tops![bar]! - this.#top) * down;
      const wide = Math.max(1, lengths![bar]! * across - (across > 4 ? 1 : 0));
      const high = Math.max(1, highs![bar]! * down - (down > 4 ? 1 : 0));
      if (x > this.#wide || x + wide < 0 || y > this.#high || y + high < 0) continue;
      const [full, wash, text, ground] = inks[kinds![bar]!]!;
      const large = wide > 4 && high > 4;
      context.fillStyle = lit || !large ? full! : wash!;
      context.fillRect(x, y, wide, high);
      if (!large) continue;
      context.fillStyle = full!;
      context.fillRect(x, y + high - 1, wide, 1);
      const from = Math.max(x, 0) + 3;
      const room = Math.floor((Math.min(x + wide, this.#wide) - from) / LETTER);
      if (room < 6 || high < LETTERS + 2) continue;
      const name = said[names![bar]!]!;
      context.fillStyle = lit ? ground! : text!;
      context.fillText(name.length > room ? `${name.slice(0, room - 3)}...` : name, from, y + high / 2 + 4);
    }
  }

  #draw(): void {
    this.#clamp();
    const style = getComputedStyle(this.root);
    const context = this.#canvas.getContext("2d");
    const below = this.#base.getContext("2d");
    if (!context || !below) return;
    const ratio = devicePixelRatio;
    const state = [this.#zoom, this.#left, this.#top, style.getPropertyValue("--mj-base")].join();
    if (this.#drawn !== state) {
      this.#drawn = state;
      below.setTransform(ratio, 0, 0, ratio, 0, 0);
      below.clearRect(0, 0, this.#wide, this.#high);
      below.globalAlpha = 0.55;
      this.#paint(below, this.#bars.columns[0]!.keys(), false);
      if (this.#zoom === 1) {
        [this.#whole.width, this.#whole.height] = MAP;
        this.#whole.getContext("2d")!.drawImage(this.#base, 0, 0, ...MAP);
      }
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.drawImage(this.#base, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#paint(context, this.#over < 0 ? this.#lit() : [...this.#lit(), this.#over], true);
    const at = this.#at();
    context.fillStyle = style.getPropertyValue("--mj-text");
    if (at !== undefined) context.fillRect((at - this.#left) * this.#scales()[0] - 0.5, 0, 1, this.#high);
    if (this.#zoom > 1) this.#drawMap(context, style);
  }

  /** What part of the whole is in sight. */
  #drawMap(context: CanvasRenderingContext2D, style: CSSStyleDeclaration): void {
    const { end, rows } = this.#bars;
    const [across, down] = this.#scales();
    const [x, y] = [this.#wide - MAP[0], this.#high - MAP[1]];
    context.fillStyle = style.getPropertyValue("--mj-panel");
    context.fillRect(x, y, ...MAP);
    context.drawImage(this.#whole, x, y);
    context.strokeStyle = style.getPropertyValue("--mj-line");
    context.strokeRect(x + 0.5, y + 0.5, MAP[0] - 1, MAP[1] - 1);
    context.strokeStyle = style.getPropertyValue("--mj-value");
    context.lineWidth = 2;
    const wide = Math.max(3, (this.#wide / across / end) * MAP[0]);
    const high = Math.max(3, Math.min(1, this.#high / down / rows) * MAP[1]);
    context.strokeRect(x + (this.#left / end) * MAP[0], y + (this.#top / rows) * MAP[1], wide, high);
  }

  /** Brings the picture to the player's step. */
  step(): void {
    const { columns, roles } = this.#bars;
    const [, lengths, , , , goes] = columns as number[][];
    const lit = this.#lit();
    const step = this.stage.step();
    // Those that the step makes come first, then the longest.
    const made = lit.filter((bar) => goes![bar] === step);
    const others = lit.filter((bar) => goes![bar] !== step).sort((one, other) => lengths![other]! - lengths![one]!);
    const longest = [...made, ...others].slice(0, NEAR);
    const rows = longest.map((bar) => {
      const row = element("li");
      const made = element("button", "", this.#sentence(bar));
      made.type = "button";
      made.style.borderColor = `var(--mj-${roles[columns[4]![bar]!]})`;
      listen(made, "click", () => this.#choose(bar));
      row.append(made);
      return row;
    });
    const more = lit.length - rows.length;
    if (more > 0) rows.push(element("li", "", `and ${more.toLocaleString("en")} more at this step`));
    this.#list.replaceChildren(...rows);
  }

  /** Brings the step into sight. */
  scrollToLit(): void {
    const at = this.#at();
    if (at === undefined) return this.#draw();
    const [across, down] = this.#scales();
    const x = (at - this.#left) * across;
    if (x < 0 || x > this.#wide) this.#left = at - this.#wide / across / 2;
    const made = this.#bars.columns[5]!.indexOf(this.stage.step());
    const row = this.#bars.columns[2]![made];
    if (row !== undefined) {
      const y = (row - this.#top) * down;
      if (y < 0 || y > this.#high - ROW) this.#top = row - this.#high / down / 2;
    }
    this.#draw();
  }

  /** Keys of its own are heard by the pane. */
  key(): boolean {
    return false;
  }
}

declare const minijaxPlayer: object;
Object.assign(minijaxPlayer, { Bars });
