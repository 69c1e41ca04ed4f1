// Bars along a program, tens of thousands of them, on a canvas that zooms and pans. The
// bars of the step are full of ink; the longest of them stand below as buttons. Only
// pages that have such a picture carry this script.

import { bounds, drag, dress, element, flag, label, later, listen, onWidth, pinch } from "../player/dom";
import type { Pane } from "../player/frame";
import type { Stage } from "../player/scene";

const MOST_HIGH = 320;
/** How high a row is drawn at most, and the room for letters in a bar. */
const ROW = 20;
const LETTERS = 11;
const LETTER = 6.7;
/** How many bars of the step stand in the document. */
const NEAR = 8;
/** The strip under the bars, which shows all of them, and what is in sight of it. */
const STRIP = 24;
const GAP = 6;
/** Bars thinner than a pixel are this faint at least. */
const FAINTEST = 0.04;
const STYLE = `.mj-bars canvas{display:block;width:100%;touch-action:pan-y;cursor:crosshair}
.mj-bars .mj-bar{gap:4px 12px;margin:0 8px 4px}
.mj-bars i{display:inline-block;width:12px;height:12px;margin-right:4px;vertical-align:-1px}
.mj-bars .mj-seen{margin-left:auto;font-variant-numeric:tabular-nums}
.mj-bars ul{list-style:none;margin:4px 0 0;padding:0 8px}
.mj-bars li button{all:unset;cursor:pointer;border-left:8px solid;padding-left:8px;overflow-wrap:anywhere}
.mj-bars li button:focus-visible{outline:2px solid var(--mj-value)}`;

/** A bar's name in so many letters: its first words, or the begin of the first. */
function fitting(name: string, room: number): string {
  if (name.length <= room) return name;
  const end = name.lastIndexOf(" ", room);
  return end > 0 ? name.slice(0, end) : `${name.slice(0, room - 3)}...`;
}

/** A number with as many digits after the point as tell places so far apart from one
 *  another, and a comma before each thousand. The first one that the browser itself puts
 *  into words takes as long as the picture. */
function numeral(number: number, apart: number): string {
  const digits = Math.max(0, Math.min(12, 2 - Math.floor(Math.log10(apart))));
  const [whole, part = ""] = number.toFixed(digits).split(".");
  const after = part.replace(/0+$/, "");
  return whole!.replace(/\B(?=(\d{3})+$)/g, ",") + (after && `.${after}`);
}

export class Bars {
  #canvas = element("canvas");
  #base = element("canvas");
  /** All of it, small. */
  #whole = element("canvas");
  #list = element("ul");
  /** From where to where bars are in sight. */
  #seen = element("span", "mj-seen");
  #drawn = "";
  #zoom = 1;
  #left = 0;
  #top = 0;
  #wide = 0;
  #high = 1;
  #over = -1;
  /** Whether the strip of all bars is drawn: the first picture does not wait for it. */
  #late = true;
  /** The most that it zooms: four of the shortest bar fill the picture. */
  #most: number;

  constructor(
    readonly section: HTMLElement,
    private root: HTMLElement,
    private pane: Pane,
    _index: number,
    private stage: Stage,
  ) {
    flag(section, "bars");
    const bar = element("div", "mj-bar");
    for (const [role, meaning] of this.#bars.legend) {
      const made = element("span");
      const swatch = element("i");
      swatch.style.background = `var(--mj-${role})`;
      made.append(swatch, meaning);
      bar.append(made);
    }
    bar.append(this.#seen);
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
    dress(section, STYLE);
    section.append(bar, this.#canvas, this.#list);
    listen(section, "keydown", (event) => {
      const factor = { "+": 2, "=": 2, "-": 0.5, "0": 0 }[event.key];
      if (factor === undefined || event.ctrlKey || event.metaKey) return;
      event.stopPropagation();
      this.#zoomBy(factor);
    });
    const { style } = this.#canvas;
    listen(this.#canvas, "wheel", (event) => this.#wheel(event), { passive: false });
    listen(this.#canvas, "pointerdown", (event) => this.#press(event));
    pinch(this.#canvas, (factor, x, y) => {
      const box = bounds(this.#canvas);
      this.#zoomBy(factor, x - box.left, y - box.top);
    });
    listen(this.#canvas, "mousemove", (event) => {
      this.#over = this.#barAt(event);
      style.cursor = this.#bars.columns[5]![this.#over]! >= 0 ? "pointer" : "";
      stage.say(this.#over < 0 ? stage.detail() : this.#sentence(this.#over));
      this.#draw();
    });
    listen(this.#canvas, "mouseleave", () => {
      this.#over = -1;
      stage.say(stage.detail());
      this.#draw();
    });
    matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => this.#draw());
    onWidth(section, () => this.#wide, () => this.choose());
    const { sight, end, columns } = this.#bars;
    const shortest = columns[1]!.reduce((least, one) => (one > 0 ? Math.min(least, one) : least), end);
    this.#most = Math.max(1, end / 4 / shortest);
    if (!sight) return;
    this.#zoom = end / sight;
    this.#left = (this.#at() ?? 0) - sight / 2;
  }

  get #bars() {
    return this.pane.scene!.bars!;
  }

  /** Fits the canvas to the pane. */
  choose(): void {
    const first = !this.#wide;
    if (first) {
      later(() => {
        this.#late = false;
        this.#drawn = "";
        this.#draw();
      });
    }
    this.#wide = Math.max(1, this.section.clientWidth);
    this.#high = Math.min(MOST_HIGH, this.#bars.rows * ROW);
    for (const made of [this.#canvas, this.#base]) {
      made.width = this.#wide * devicePixelRatio;
      made.height = (this.#high + (made === this.#base ? 0 : GAP + STRIP)) * devicePixelRatio;
    }
    this.#canvas.style.height = `${this.#high + GAP + STRIP}px`;
    this.#whole.width = 0;
    this.#drawn = "";
    // At first the player brings the step into sight afterwards.
    if (!first) this.#draw();
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
    this.#zoom = factor ? Math.min(this.#most, Math.max(1, this.#zoom * factor)) : 1;
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
    if (!down.isPrimary) return;
    const box = bounds(this.#canvas);
    const [left, top] = [this.#left, this.#top];
    const [across, deep] = this.#scales();
    const x = down.clientX - box.left;
    const onMap = down.clientY - box.top > this.#high;
    let moved = onMap;
    const move = (event: PointerEvent): void => {
      const by = [event.clientX - down.clientX, event.clientY - down.clientY] as const;
      moved ||= Math.hypot(...by) > 4;
      if (!moved) return;
      if (onMap) {
        this.#left = ((x + by[0]) / this.#wide) * this.#bars.end - this.#wide / across / 2;
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
    // A bar of whole points ends before its last one does. Its length has two digits.
    const long = columns[1]![bar]!;
    const end = start + long - (unit ? 0 : 1);
    const [from, to] = [start + shift, end + shift].map((n) => numeral(n, 10 * long));
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

  /** Draws bars with a role's ink or wash; letters where there is room. What is thinner
   *  than a pixel is as faint as it is thin, so that a busy place looks busy. */
  #paint(context: CanvasRenderingContext2D, which: Iterable<number>, lit: boolean, at = this.#place()): void {
    const { columns, roles, said } = this.#bars;
    const [starts, lengths, tops, highs, kinds, , names] = columns as number[][];
    const [across, down, left, top] = at;
    const style = getComputedStyle(this.root);
    const ink = (name: string): string => style.getPropertyValue(`--mj-${name}`);
    const inks = roles.map((role) => [ink(role), ink(`${role}-wash`) || ink("panel"), ink("text"), ink("base")]);
    context.font = "11px ui-monospace,monospace";
    for (const bar of which) {
      const x = (starts![bar]! - left) * across;
      const whole = lengths![bar]! * across;
      const wide = Math.max(1, whole - (across > 4 ? 1 : 0));
      if (x > this.#wide || x + wide < 0) continue;
      const y = (tops![bar]! - top) * down;
      const tall = highs![bar]! * down;
      const high = Math.max(1, tall - (down > 4 ? 1 : 0));
      if (y > this.#high || y + high < 0) continue;
      const [full, wash, text, ground] = inks[kinds![bar]!]!;
      const large = wide > 4 && high > 4;
      context.globalAlpha = lit || large ? 1 : Math.max(FAINTEST, 0.55 * Math.min(1, whole) * Math.min(1, tall));
      context.fillStyle = lit || !large ? full! : wash!;
      context.fillRect(x, y, wide, high);
      if (!large) continue;
      context.fillStyle = full!;
      context.fillRect(x, y + high - 2, wide, 2);
      const from = Math.max(x, 0) + 3;
      const room = Math.floor((Math.min(x + wide, this.#wide) - from) / LETTER);
      if (room < 6 || high < LETTERS + 2) continue;
      context.fillStyle = lit ? ground! : text!;
      context.fillText(fitting(said[names![bar]!]!, room), from, y + high / 2 + 4);
    }
  }

  /** Pixels of a point and of a row, and the point and the row at the top left. */
  #place(): [number, number, number, number] {
    return [...this.#scales(), this.#left, this.#top];
  }

  #draw(): void {
    this.#clamp();
    const style = getComputedStyle(this.root);
    const context = this.#canvas.getContext("2d");
    const below = this.#base.getContext("2d");
    const whole = this.#whole.getContext("2d");
    if (!context || !below || !whole) return;
    const ratio = devicePixelRatio;
    const { end, rows } = this.#bars;
    const theme = style.getPropertyValue("--mj-base");
    const state = [this.#zoom, this.#left, this.#top, theme].join();
    if (this.#drawn !== state) {
      if (!this.#late && !this.#drawn.endsWith(`,${theme}`)) {
        this.#whole.width = this.#wide;
        this.#whole.height = STRIP;
        this.#paint(whole, this.#bars.columns[0]!.keys(), false, [this.#wide / end, STRIP / rows, 0, 0]);
      }
      this.#drawn = state;
      below.setTransform(ratio, 0, 0, ratio, 0, 0);
      below.clearRect(0, 0, this.#wide, this.#high);
      this.#paint(below, this.#bars.columns[0]!.keys(), false);
    }
    const [across, down] = this.#scales();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.drawImage(this.#base, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#paint(context, this.#over < 0 ? this.#lit() : [...this.#lit(), this.#over], true);
    const at = this.#at();
    context.fillStyle = style.getPropertyValue("--mj-text");
    if (at !== undefined) context.fillRect((at - this.#left) * across - 0.5, 0, 1, this.#high);
    // The strip below: all of it, and around what is in sight a frame.
    const y = this.#high + GAP;
    context.clearRect(0, this.#high, this.#wide, GAP + STRIP);
    if (this.#whole.width) context.drawImage(this.#whole, 0, y);
    context.strokeStyle = style.getPropertyValue("--mj-value");
    context.lineWidth = 2;
    const wide = Math.max(4, (this.#wide / across / end) * this.#wide - 2);
    const high = Math.max(4, Math.min(1, this.#high / down / rows) * STRIP - 2);
    context.strokeRect(1 + (this.#left / end) * this.#wide, y + 1 + (this.#top / rows) * STRIP, wide, high);
    const [, , shift, unit, points] = this.#bars.told;
    const sight = this.#wide / across;
    let [from, to] = [this.#left, this.#left + sight];
    // Whole points are counted as in the sentences: the last one is in sight, too.
    if (!unit) [from, to] = [Math.floor(from) + shift, Math.ceil(to - 0.01) + shift - 1];
    const said = (point: number, apart: number): string => numeral(point, apart) + unit;
    const seen = `${points}${said(from, sight)} to ${said(to, sight)} of ${said(end, end)}`;
    // A step that moves nothing writes nothing: the page is laid out once.
    if (this.#seen.textContent !== seen) this.#seen.textContent = seen;
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
    if (more > 0) rows.push(element("li", "", `and ${numeral(more, 100)} more at this step`));
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
