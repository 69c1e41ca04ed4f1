// A scene: marks that Python placed, drawn as SVG with the theme's colours. Steps light
// them and dim those that are not there; only what has places or turns of its own moves.

import { bounds, drag, every, flag, heightOf, label, later, listen, onWidth, pinch, set, svgElement, widthOf, write } from "./dom";
import { SmallMap, TITLE } from "./map";
import type { Drawing, Frame, Pane, Scene, SceneMark } from "./frame";
import { ceil, floor, max, min, round } from "./numbers";

/** A picture with room around it is drawn larger, at most so much, and one that is not
 *  seen whole in any case at most so much. */
const MOST_GROWN = 1.75;
const MOST_SCROLLED = 1.25;
/** A picture a little too wide is shrunk while no letter gets smaller than so many pixels;
 *  a wider one scrolls. */
const LEAST_LETTER = 11;
const LEAST_FIT = 0.8;
const MOST_ZOOM = 8;
/** Room around what is lit, in pixels. */
const EDGE = 8;
const MOTION = 160;
/** What a picture has of a sheet of paper, A4 or Letter: so many letters of 13 pixels. */
const SHEET_WIDTH = "54em";
/** On paper a picture is cut into parts that are at least so high: where one does not fit
 *  below another, it begins a sheet. */
const LEAST_PART = 64;
/** Boxes that are no higher are not cut. */
const LEAST_CUT = 125;
const NUMBER = /-?\d+(?:\.\d+)?/g;

/** How small a picture may be drawn, as a part of its size, for its text to be read. */
export function leastFit(scene: Scene): number {
  return max(LEAST_FIT, leastLetters(scene));
}

/** The same without a bound where there is no text. */
function leastLetters(scene: Scene): number {
  return min(1, LEAST_LETTER / (scene.f ?? Infinity));
}

/** What a scene asks of the player. */
export interface Stage {
  remember(key: string, made: Element): void;
  goTo(step: number): void;
  say(text: string): void;
  near(keys: string[]): void;
  /** Lights what the step lights, after more was drawn. */
  relight(): void;
  /** The step, and what its detail line says. */
  step(): number;
  detail(): string;
  /** The keys that it lights. */
  lit(): string[];
}

/** Where a mark stands at a step. */
export function placeOf(mark: SceneMark, step: number): [number, number] {
  let place: [number, number] = [mark.x, mark.y];
  for (const [at, x, y] of mark.m ?? []) if (at <= step) place = [x, y];
  return place;
}

/** The number of the drawing that a mark has at a step. */
export function drawingOf(mark: SceneMark, step: number): number {
  let drawing = mark.d;
  for (const [at, turned] of mark.v ?? []) if (at <= step) drawing = turned;
  return drawing;
}

export function isThere(mark: SceneMark, step: number): boolean {
  return (mark.at ?? 0) <= step && step <= (mark.u ?? Infinity);
}

/** The text between two others of the same form, all its numbers between theirs. */
export function between(from: string, to: string, part: number): string {
  const starts = from.match(NUMBER) ?? [];
  let at = 0;
  return to.replace(NUMBER, (end) => {
    const start = Number(starts[at++] ?? end);
    return String(round((start + (Number(end) - start) * part) * 10) / 10);
  });
}

/** Whether one drawing can become the other by its numbers alone. */
export function sameForm(one: Drawing[], other: Drawing[]): boolean {
  return (
    one.length === other.length &&
    one.every(
      ([tag, has], index) => tag === other[index]![0] && ("d" in has ? form(has.d) === form(other[index]![1].d) : true),
    )
  );
}

function form(d: string | number | undefined): string {
  return String(d).replace(NUMBER, "0");
}

/** Whether the reader wants no motion. */
function isStill(): boolean {
  return matchMedia("(prefers-reduced-motion:reduce)").matches;
}

function colour(name: string): string {
  return name === "none" ? name : `var(--mj-${name})`;
}

function apply(made: SVGElement, has: Drawing[1]): void {
  for (const [name, value] of Object.entries(has)) {
    if (name === "fill" || name === "stroke") made.style.setProperty(name, colour(String(value)));
    else if (name === "font-family") made.style.fontFamily = value === "code" ? "" : "inherit";
    else if (name === "font-size") made.style.fontSize = `${value}px`;
    else if (name === "font-weight") made.style.fontWeight = String(value);
    else set(made, name, value);
  }
}

/** Draws simple parts; the player uses it for glyphs in lines of text, too. */
export function drawParts(parts: Drawing[]): SVGElement[] {
  return parts.map(([tag, has, text]) => {
    const made = svgElement(tag as "g") as SVGElement;
    apply(made, has);
    if (text) write(made, text);
    return made;
  });
}

/** Copies of parts. Those of a copy share what is written of their style, which a browser
 *  works out once. */
function cloned(parts: SVGElement[]): SVGElement[] {
  return parts.map((part) => part.cloneNode(true) as SVGElement);
}

/** The numbers of an array that is drawn as cells, row by row. */
function table(made: SVGElement): string[][] {
  return made.dataset.v!.split(";").map((row) => row.split(" "));
}

/** The number of an array under a point of the window, and how a product made it. */
export function numberAt(made: SVGElement, x: number, y: number): string {
  const { n, s } = made.dataset;
  const rows = table(made);
  const box = bounds(made);
  const row = floor(((y - box.top) / box.height) * rows.length);
  const column = floor(((x - box.left) / box.width) * (rows[0]?.length ?? 0));
  const found = rows[row]?.[column];
  if (found === undefined) return "";
  const index = rows.length > 1 ? `[${row}, ${column}]` : rows[0]![1] ? `[${column}]` : "";
  const drawn = every<SVGElement>(made.ownerSVGElement!, "[data-n]");
  const [before, left, right] = (s ?? "").split("|").map((name) => {
    const part = drawn.find(({ dataset }) => dataset.n === name);
    return part && table(part);
  });
  const sums = left && right ? left[row]!.map((one, at) => `${one} * ${right[at]![column]}`) : [];
  if (before) sums.unshift(before[row]![column]!);
  return [`${n}${index} = ${found}`, sums.join(" + ")].filter(Boolean).join(" = ");
}

/** A glyph in a line of text, which says the same. */
export function inlineGlyph(glyph: NonNullable<Frame["glyphs"]>[string]): SVGElement {
  const svg = svgElement("svg");
  flag(svg, "glyph");
  set(svg, "viewBox", `${glyph.x} ${glyph.y} ${glyph.w} ${glyph.h}`);
  set(svg, "width", glyph.w);
  set(svg, "height", glyph.h);
  set(svg, "aria-hidden", "true");
  svg.append(...drawParts(glyph.d));
  return svg;
}

interface Shown {
  mark: SceneMark;
  group: SVGGElement;
  parts: SVGElement[];
  drawing: number;
  timer: number;
  /** What the document says of it: only what differs is written. */
  faint: boolean;
  moved: string;
}

/** One layout of a scene, drawn. */
interface Layout {
  scene: Scene;
  svg: SVGSVGElement;
  shown: Shown[];
  /** The marks, until they stand in the picture. */
  marks: DocumentFragment;
  /** Adds what nobody sees in the first picture: marks that show nothing at its step, and
   *  what lights up around those that are not lit. */
  rest: () => void;
}

export class ScenePane {
  #layouts = new Map<Scene, Layout>();
  #now!: Layout;
  #zoom = 0;
  /** How small it is drawn so that all that is lit fits. */
  #fitted = Infinity;
  /** How wide the view was when it was drawn. */
  #wide = 0;
  #opened: Scene | undefined;
  #dragged = false;
  #map: SmallMap;
  /** Parts of the picture on paper: none on a screen. */
  #parts: Element[] = [];

  constructor(
    readonly section: HTMLElement,
    private root: HTMLElement,
    readonly pane: Pane,
    private index: number,
    private stage: Stage,
  ) {
    // What is drawn is chosen when all panes stand there: until then it has more room.
    this.#map = new SmallMap(section, root);
    addEventListener("beforeprint", () => this.#print(SHEET_WIDTH));
    addEventListener("afterprint", () => this.#print(""));
    onWidth(root, () => this.#wide, () => this.#anew());
  }

  /** Chooses where the room is another. */
  #anew(): void {
    this.#fitted = Infinity;
    this.section.style.maxHeight = "";
    this.choose();
  }

  /** Shows the layout that the page has room for. */
  choose(): void {
    this.#wide = widthOf(this.root);
    const scene = this.#opened ?? this.#layout();
    const again = this.#now !== undefined;
    const other = this.#now?.scene !== scene;
    if (other) {
      this.#now?.svg.setAttribute("hidden", "");
      this.#now = this.#layouts.get(scene) ?? this.#draw(scene);
      this.#layouts.set(scene, this.#now);
    }
    this.#now.svg.removeAttribute("hidden");
    // Its size does not depend on its marks, which cost where it is measured.
    this.#resize();
    // At first the player shows the step afterwards.
    if (!again) return;
    if (other) {
      this.step(true);
      this.stage.relight();
    }
    this.scrollToLit(true);
  }

  /** The widest layout that fits; the narrow one if none does. */
  #layout(): Scene {
    const { scene, middle, less, narrow } = this.pane;
    const room = widthOf(this.section);
    if (!room || !narrow) return scene!;
    return [scene, middle, less].find((one) => one && one.w * leastFit(one) <= room) || narrow;
  }

  #draw(scene: Scene): Layout {
    const svg = svgElement("svg");
    flag(svg, "scene");
    set(svg, "viewBox", `0 0 ${scene.w} ${scene.h}`);
    set(svg, "role", "group");
    label(svg, scene.label || this.pane.title || "picture");
    // Marks share drawings: a copy is made sooner.
    const known: SVGElement[][] = [];
    const copies = (drawing: number): SVGElement[] =>
      cloned((known[drawing] ??= cloned(drawParts(this.pane.draws![drawing]!))));
    const halo = (group: SVGGElement, drawing: number | undefined): void => {
      if (drawing === undefined) return;
      const [made] = copies(drawing);
      made!.removeAttribute("style");
      set(made!, "class", "mj-halo");
      group.prepend(made!);
    };
    // The first picture needs only what lights up in it.
    const lit = this.stage.lit();
    const unlit: (() => void)[] = [];
    const marks = new DocumentFragment();
    const all = scene.packed ? (JSON.parse(scene.packed) as SceneMark[]) : scene.marks;
    const shown = all.map((mark, number) => {
      const group = svgElement("g");
      set(group, "data-mark", number);
      set(group, "data-pane", this.index);
      const leads = mark.go !== undefined || mark.o !== undefined;
      if (mark.l) {
        set(group, "role", leads ? "button" : "img");
        label(group, mark.l);
      } else set(group, "aria-hidden", "true");
      set(group, "class", `mj-mark${mark.h === undefined ? " mj-idle" : ""}${leads ? " mj-go" : ""}`);
      if (mark.k?.some((key) => lit.includes(key))) halo(group, mark.h);
      else unlit.push(() => halo(group, mark.h));
      if (leads || mark.t) set(group, "tabindex", "-1");
      for (const key of mark.k ?? []) this.stage.remember(key, group);
      const drawing = drawingOf(mark, this.stage.step());
      const parts = copies(drawing);
      group.append(...parts);
      if (group.firstChild) marks.append(group);
      return { mark, group, parts, drawing, timer: 0, faint: false, moved: "" };
    });
    shown.find(({ group }) => group.hasAttribute("tabindex"))?.group.setAttribute("tabindex", "0");
    const rest = (): void => {
      unlit.splice(0).forEach((run) => run());
      shown.reduceRight((next: Node | null, { group }) => {
        if (group.parentNode !== svg) svg.insertBefore(group, next);
        return group;
      }, null);
    };
    if (!this.#now) later(rest);
    listen(svg, "wheel", (event) => this.#wheel(event), { passive: false });
    listen(svg, "focusin", (event) => this.over(event.target as Element));
    listen(svg, "pointerdown", (event) => this.#pan(event));
    pinch(svg, (factor, x, y) => this.#zoomBy(factor, x, y));
    listen(svg, "mouseleave", () => this.over(null));
    this.section.append(svg);
    return { scene, svg, shown, marks, rest };
  }

  /** Brings the marks to the player's step. */
  step(first = false): void {
    const step = this.stage.step();
    const { svg, marks, shown, rest } = this.#now;
    svg.append(marks);
    if (!first) rest();
    for (const one of shown) {
      const { mark, group } = one;
      const faint = !isThere(mark, step);
      if (faint !== one.faint) flag(group, "later", (one.faint = faint));
      const [x, y] = placeOf(mark, step);
      const moved = x || y ? `translate(${x}px,${y}px)` : "";
      if (moved !== one.moved) group.style.transform = one.moved = moved;
      const drawing = drawingOf(mark, step);
      if (drawing !== one.drawing) this.#turn(one, drawing, first);
    }
  }

  /** Turns a glyph: its numbers run to those of the other drawing. */
  #turn(one: Shown, drawing: number, cut: boolean): void {
    const draws = this.pane.draws!;
    const [from, to] = [draws[one.drawing]!, draws[drawing]!];
    one.drawing = drawing;
    cancelAnimationFrame(one.timer);
    const replace = (): void => {
      one.parts.forEach((part) => part.remove());
      one.parts = drawParts(to);
      one.group.append(...one.parts);
    };
    if (cut || isStill() || !sameForm(from, to)) return replace();
    const start = performance.now();
    const draw = (now: number): void => {
      const time = min(1, max(0, (now - start) / MOTION));
      if (time === 1) return replace();
      const part = 1 - (1 - time) ** 3;
      to.forEach(([, has], index) => {
        for (const [name, value] of Object.entries(has)) {
          const before = from[index]![1][name];
          if (before !== undefined && before !== value && !/fill|stroke|font|anchor|data/.test(name)) {
            set(one.parts[index]!, name, between(String(before), String(value), part));
          }
        }
      });
      one.timer = requestAnimationFrame(draw);
    };
    one.timer = requestAnimationFrame(draw);
  }

  #isWhole(): boolean {
    return !!document.fullscreenElement?.contains(this.root);
  }

  /** The height that the picture may have. */
  #height(): number {
    const { section } = this;
    return (parseFloat(getComputedStyle(section).maxHeight) || innerHeight - bounds(section).top - TITLE) - TITLE;
  }

  /** The width of the picture: as wide as the pane as far as it is seen whole, a little
   *  less than drawn where there is no room. */
  #resize(): void {
    const { scene, svg } = this.#now;
    const room = widthOf(this.section);
    const whole = this.#height() / scene.h;
    const most = min(this.#fitted, whole < 1 ? MOST_SCROLLED : min(MOST_GROWN, whole));
    const fit = room ? min(most, max(leastFit(scene), room / scene.w)) : 1;
    const zoom = this.#zoom || fit;
    set(svg, "width", floor(scene.w * zoom));
    set(svg, "height", ceil(scene.h * zoom));
  }

  /** Makes the picture larger; the point (x, y) of the window stays where it is. */
  #zoomBy(factor: number, x?: number, y?: number): void {
    const { section } = this;
    const { scene, svg } = this.#now;
    const before = bounds(svg);
    const box = bounds(section);
    const at = [x ?? box.left + box.width / 2, y ?? box.top + box.height / 2] as const;
    const scale = before.width / scene.w;
    const all = min(widthOf(section) / scene.w, heightOf(section) / scene.h);
    if (!factor) this.#zoom = this.#zoom ? 0 : all;
    else this.#zoom = min(MOST_ZOOM, max(0.05, scale * factor));
    this.#resize();
    const after = bounds(svg);
    const grown = after.width / before.width;
    section.scrollLeft += (at[0] - before.left) * grown - (at[0] - after.left);
    section.scrollTop += (at[1] - before.top) * grown - (at[1] - after.top);
    this.#map.show(svg);
  }

  #wheel(event: WheelEvent): void {
    if (!event.ctrlKey && !event.metaKey && !this.#isWhole()) return;
    event.preventDefault();
    this.#zoomBy(Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
  }

  /** Dragging moves the picture, if it is larger than the pane. */
  #pan(down: PointerEvent): void {
    const { section } = this;
    this.#dragged = false;
    if (down.button || down.pointerType === "touch") return;
    const [left, top] = [section.scrollLeft, section.scrollTop];
    drag((event) => {
      const [x, y] = [event.clientX - down.clientX, event.clientY - down.clientY];
      this.#dragged ||= Math.hypot(x, y) > 4;
      if (!this.#dragged) return;
      section.scrollLeft = left - x;
      section.scrollTop = top - y;
    });
  }

  /** Shows another layout; the box that was opened or closed stays where it is. */
  #open(one: Shown): void {
    const key = one.mark.k?.[0];
    const before = bounds(one.group);
    const focused = one.group === document.activeElement;
    this.#opened = this.pane.layouts![one.mark.o!];
    this.choose();
    const same = this.#now.shown.find((other) => other.mark.o !== undefined && other.mark.k?.[0] === key);
    if (!same) return;
    const after = bounds(same.group);
    this.section.scrollTop += after.top - before.top;
    this.section.scrollLeft += after.left + after.width / 2 - before.left - before.width / 2;
    if (focused) same.group.focus({ preventScroll: true });
  }

  /** Draws the picture for paper, which has another width: it is cut into parts, and
   *  no text and no small box of it. On a screen it is whole. */
  #print(wide: string): void {
    this.root.style.width = wide;
    for (const part of this.#parts.splice(0)) part.remove();
    this.#anew();
    const { scene, svg } = this.#now;
    const { top, bottom, height } = bounds(svg);
    if (!wide) return;
    const boxes = every(svg, "text,rect:not(.mj-halo)").map(bounds).sort((one, other) => one.top - other.top);
    const marks = [...svg.children].map((mark) => [mark, bounds(mark)] as const);
    const scale = scene.h / height;
    for (let from = top; from < bottom; ) {
      let end = from + LEAST_PART;
      // What stands across the cut moves it downwards.
      for (const box of boxes) if (box.height < LEAST_CUT && box.top < end && end < box.bottom) end = box.bottom;
      end = min(end, bottom);
      const part = svg.cloneNode() as Element;
      set(part, "viewBox", `0 ${(from - top) * scale} ${scene.w} ${(end - from) * scale}`);
      set(part, "height", end - from);
      for (const [mark, box] of marks) if (box.top < end && from < box.bottom) part.append(mark.cloneNode(true));
      this.#parts.push(part);
      from = end;
    }
    this.section.append(...this.#parts);
    set(svg, "hidden", "");
  }

  #markOf(target: Element | null): Shown | undefined {
    const group = target?.closest<SVGGElement>("g.mj-mark");
    if (!group || !this.#now.svg.contains(group)) return undefined;
    return this.#now.shown[Number(group.dataset["mark"])];
  }

  /** What the pointer or the focus is on: its sentence, and what has its keys. */
  over(target: Element | null): void {
    const one = this.#markOf(target);
    this.stage.near(one?.mark.k ?? []);
    this.stage.say(one?.mark.t ?? this.stage.detail());
  }

  /** Whether a click was on a mark. */
  click(target: Element): boolean {
    const one = this.#markOf(target);
    if (!one) return false;
    if (this.#dragged) return true;
    if (one.mark.o !== undefined) {
      this.#open(one);
      return true;
    }
    if (one.mark.go !== undefined) this.stage.goTo(one.mark.go);
    if (one.mark.t) this.stage.say(one.mark.t);
    this.stage.near(one.mark.k ?? []);
    return true;
  }

  /** Whether a key was for the picture. */
  key(event: KeyboardEvent): boolean {
    const zooms: Record<string, number> = { "+": 1.25, "=": 1.25, "-": 0.8, "0": 0 };
    // A strip of values leaves these keys to the picture under it.
    if (event.key in zooms && this.pane.kind !== "strip") {
      this.#zoomBy(zooms[event.key]!);
      return true;
    }
    const one = this.#markOf(document.activeElement);
    if (!one) return false;
    if (event.key === "Enter") {
      this.#dragged = false;
      return this.click(one.group);
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return false;
    const all = every<SVGGElement>(this.#now.svg, "g[tabindex]");
    const next = all[all.indexOf(one.group) + by];
    if (next) {
      set(one.group, "tabindex", "-1");
      set(next, "tabindex", "0");
      next.focus();
    }
    return true;
  }

  /** Brings all that is lit into the pane: it grows, or the picture shrinks as far as its
   *  letters allow, where they do not fit; then it scrolls, with motion after a step. */
  scrollToLit(first = false): void {
    this.#reveal(first);
    const show = (): void => this.#map.show(this.#now.svg);
    // The first picture does not wait for the small one.
    if (first) later(show);
    else show();
  }

  #reveal(first: boolean): void {
    const { section } = this;
    if (!widthOf(section)) return;
    const title = this.pane.title ? TITLE : 0;
    let box = this.#litBox();
    if (!box) return;
    const wanted = box.bottom - box.top + title + 2 * EDGE;
    if (heightOf(section) < wanted && section.scrollHeight > heightOf(section)) {
      section.style.maxHeight = `${ceil(wanted)}px`;
      box = this.#litBox()!; // growing may have moved it
    }
    const across = box.right - box.left;
    if (!this.#zoom && across > widthOf(section)) {
      const { scene, svg } = this.#now;
      const zoom = bounds(svg).width / scene.w;
      this.#fitted = max(leastLetters(scene), (zoom * widthOf(section)) / across);
      this.#resize();
      box = this.#litBox()!;
    }
    const at = bounds(section);
    const over = (start: number, end: number, from: number, to: number): number =>
      start < from + EDGE ? start - from - EDGE : max(0, min(end - to + EDGE, start - from - EDGE));
    const top = over(box.top, box.bottom, at.top + title, at.top + heightOf(section));
    const left = over(box.left, box.right, at.left, at.left + widthOf(section));
    if (!top && !left) return;
    section.scrollBy?.({ top, left, behavior: first || isStill() ? "instant" : "smooth" });
  }

  /** The box around all marks that are lit, in the window. */
  #litBox(): { left: number; right: number; top: number; bottom: number } | null {
    const boxes = every(this.#now.svg, "g.mj-on:not(.mj-later)")
      .map((mark) => bounds(mark))
      .filter((box) => box.width || box.height);
    const far = (name: "left" | "right" | "top" | "bottom", sign: number): number =>
      sign * max(...boxes.map((box) => sign * box[name]));
    return boxes[0] ? { left: far("left", -1), right: far("right", 1), top: far("top", -1), bottom: far("bottom", 1) } : null;
  }
}
