// The player: draws a frame once, then changes states. All text of users is set as
// text, never as HTML.

import { axisSliders } from "./axes";
import { bounds, drag, dress, element, every, flag, label, later, listen, set, vary, widthOf, write } from "./dom";
import { DEFINES, type Frame, type Pane, type Piece, type Row } from "./frame";
import { TITLE } from "./map";
import { ScenePane, inlineGlyph, numberAt } from "./scene";
import { icon } from "./icons";
import { choices, huesOfLines, linesOfSteps, type Choice, type Only } from "./only";
import { tokens, type Token } from "./python";
import { MANY_ROWS, State, cellText, columnWidths, clamp, folding, jumped, leastWidth, naturalWidth, rolesOf, rowText, type Hit } from "./state";
import { RULES } from "./style";
import { max, min, round } from "./numbers";

/** What the page's scripts know of each other; the build declares the name. */
declare const minijaxPlayer: { Bars: typeof ScenePane };

/** Keys: what the help shows, what they do in words, whether they can do anything in this
 *  picture, and what each does. */
type Keys = [shown: string, what: string, when: unknown, ...runs: (() => void)[]];
/** What the browser calls a key that the help names otherwise. */
const NAMES: Record<string, string> = { Space: " " };
for (const way of ["Left", "Right", "Up", "Down"]) NAMES[way] = `Arrow${way}`;
const CLASSES: Record<string, string> = { head: "mj-head-row" };
const SEPARATOR = "  |  ";
/** A text of fewer letters stands on one line also in a narrow page. */
const SURE_TO_FIT = 24;
/** A cell of a row wraps where it has more letters than its part of so many. */
const MOST_OF_ROW = 190;
/** So many rows around those of its step has the first picture; how high a row is. */
const NEAR_ROWS = 32;
const ROW = 20;
/** The width of a letter of code, in pixels. */
const LETTER = 7.8;

/** Makes the lines into which a long text wraps stand right of where it begins. */
function hang(cell: HTMLElement, text: string): void {
  if (text.length < SURE_TO_FIT) return;
  flag(cell, "hang");
  cell.style.removeProperty("padding-left");
  vary(cell, "hang", text.length - text.trimStart().length + 4);
}

/** Room for so many rows. */
function room(rows: number): HTMLTableRowElement {
  const made = element("tr");
  made.style.height = `${rows * ROW}px`;
  return made;
}

/** Says what an element is for, to the pointer and to a screen reader. */
function entitle(made: HTMLElement, text: string): void {
  made.title = text;
  label(made, text);
}

/** A text that may break behind brackets and before dots, rather than inside words, and
 *  not inside of an arrow. */
function breakable(text: string): (string | HTMLElement)[] {
  const parts = text.split(/(?<=\(|\w\[(?=\w+=)|->)|(?=\.[a-z_]|->)/);
  return parts.flatMap((part, at) => (part === "->" ? element("span", "mj-whole", part) : at ? [element("wbr"), part] : part));
}

/** A drawn pane: its rows appear in the document when they are first shown. */
interface Drawn {
  pane: Pane;
  section: HTMLElement;
  body: HTMLElement;
  rows: (HTMLTableRowElement | null)[];
  /** The column of its text. */
  main: number;
  /** Which of its rows fold others. */
  folding: boolean[];
  folds: boolean;
  tokens?: Token[][];
}

export interface Options {
  /** The picture that this one follows: what differs from it is marked. */
  before?: Frame;
  /** Called when the step or the selection changes; for linked views. */
  onChange?: (step: number, selection: string) => void;
}

export class Player {
  readonly state: State;
  #panes: Drawn[] = [];
  #byKey = new Map<string, Set<Element>>();
  #lit: Element[] = [];
  #near: Element[] = [];
  #marked: [Drawn, number][] = [];
  #head = element("div", "mj-head");
  #where = element("span", "mj-where");
  #slider = element("input");
  #detail = element("div", "mj-detail");
  #strip: HTMLElement | null = null;
  #textBox = element("pre", "mj-text");
  #panesBox = element("div", "mj-panes");
  #help = element("div", "mj-help");
  #searchBox = element("input");
  #buttons: Record<string, HTMLButtonElement> = {};
  #onlyBox = element("select");
  #choices: Choice[] = [];
  #timer: ReturnType<typeof setInterval> | null = null;
  #speed = 1;
  #hues: Map<string, number> | null = null;
  #scenes: ScenePane[] = [];
  #moveAxes: ((step: number) => void) | null = null;
  #keys: Keys[] = [];
  #rowSteps: { at: number; row: HTMLTableRowElement }[] = [];
  /** While the first picture is drawn: the panes of which a part of the rows is left. */
  #late? = new Set<number>();

  constructor(
    readonly root: HTMLElement,
    readonly frame: Frame,
    private options: Options = {},
  ) {
    this.state = new State(frame);
    this.#draw();
    this.#show(true);
    later(() => {
      if (this.#late?.size) this.#show();
      this.#late = undefined;
    });
  }

  // ---- drawing ---------------------------------------------------------------------

  #draw(): void {
    const { root, frame } = this;
    write(root, "");
    root.removeAttribute("style");
    flag(root, "live");
    root.tabIndex = 0;
    set(root, "role", "group");
    label(root, `${frame.headline} Arrow keys step; ? shows the keys.`);
    write(this.#head, frame.headline);
    set(this.#detail, "aria-live", "polite");
    this.#textBox.hidden = true;
    this.#textBox.tabIndex = 0;
    write(this.#textBox, frame.text);
    this.#help.hidden = true;
    const top = element("div", frame.steps.length > 1 ? "" : "mj-still");
    top.append(this.#head, this.#bar());
    if (frame.axes) {
      const box = element("div", "mj-bar mj-axes");
      this.#moveAxes = axisSliders(box, frame.axes, (step) => this.goTo(step));
      top.append(box);
    }
    dress(root, RULES);
    // In another document, or a shadow root, there may be no rules yet.
    new ResizeObserver(() => dress(root, RULES)).observe(root);
    root.append(top, this.#panesBox, this.#textBox);
    this.#drawPanes();
    this.#keys = this.#allKeys().filter(([, , when]) => when);
    for (const [keys, what] of this.#keys) {
      const line = element("div");
      for (const key of keys.split(" ")) line.append(element("kbd", "", key), " ");
      line.append(what);
      this.#help.append(line);
    }
    const colours = element("div", "mj-legend");
    for (const [kind, what, glyph] of frame.legend ?? []) {
      const swatch = glyph ? inlineGlyph(glyph) : element("span", `mj-swatch mj-${kind}`, "a");
      set(swatch, "aria-hidden", true);
      const entry = element("span", "mj-meaning");
      entry.dataset.kind = kind;
      entry.append(swatch, ` ${what}`);
      colours.append(entry);
    }
    if (colours.childElementCount) this.#help.append(colours);
    // Only now is it known how much room each pane has; it does not depend on rows, which
    // cost where it is measured.
    for (const scene of this.#scenes) scene.choose();
    this.#panes.forEach((_, index) => this.#showRows(index));
    if (frame.live !== undefined) {
      this.#strip = element("div", "mj-strip");
      root.append(this.#strip);
    }
    root.append(this.#detail, this.#help);
    listen(root, "keydown", (event) => this.#key(event));
    listen(root, "mouseover", (event) => this.#hover(event));
    listen(root, "mousemove", ({ target, clientX, clientY }) => {
      const made = target as SVGElement;
      if (made.dataset.v) this.#say(numberAt(made, clientX, clientY));
    });
    listen(root, "mouseleave", () => {
      this.#hoverKeys([]);
      if (this.frame.panes.some((pane) => pane.kind === "tiles") || this.frame.kind === "source") {
        write(this.#detail, this.#detailOfStep());
      }
    });
    listen(root, "click", (event) => this.#click(event));
  }

  #button(name: string, text: string, title: string, run: () => void): HTMLButtonElement {
    const sign = icon(name);
    const made = element("button", "", sign ? "" : text);
    if (sign) made.append(sign);
    made.type = "button";
    entitle(made, title);
    listen(made, "click", run);
    this.#buttons[name] = made;
    return made;
  }

  #bar(): HTMLElement {
    const bar = element("div", "mj-bar");
    set(bar, "role", "toolbar");
    label(bar, "steps");
    const { root, state } = this;
    this.#slider.type = "range";
    this.#slider.max = String(state.lastStep);
    label(this.#slider, "step");
    listen(this.#slider, "input", () => this.goTo(Number(this.#slider.value)));
    const speed = element("select");
    entitle(speed, "steps per second");
    for (const value of [0.5, 1, 2, 4]) {
      speed.append(new Option(`${value}x`, String(value), false, value === 1));
    }
    listen(speed, "change", () => {
      this.#speed = Number(speed.value);
      if (this.#timer) this.#play(true);
    });
    this.#searchBox.type = "search";
    this.#searchBox.placeholder = "search";
    label(this.#searchBox, "search");
    this.#searchBox.hidden = true;
    listen(this.#searchBox, "input", () => {
      if (state.only?.kind === "found") this.#filter({ kind: "found", key: this.#searchBox.value });
      else this.#found(state.find(this.#searchBox.value));
    });
    if (this.frame.steps.length > 1) {
      bar.append(
        this.#button("first", "|<", "first step", () => this.goTo(0)),
        this.#button("back", "<", "one step back", () => this.goTo(state.step - 1)),
        this.#slider,
        this.#button("forward", ">", "one step on", () => this.goTo(state.step + 1)),
        this.#button("last", ">|", "last step", () => this.goTo(state.lastStep)),
        this.#button("play", "play", "play", () => this.#play(!this.#timer)),
        speed,
      );
    }
    bar.append(
      this.#where,
      element("span", "mj-gap"),
      this.#searchBox,
      this.#button("search", "/", "search", () => this.#openSearch()),
    );
    if (this.frame.only) {
      if (state.lastStep) {
        this.#drawChoices();
        bar.append(this.#onlyBox);
      }
      const types = this.#button("types", "types", "show or hide types", () => this.#toggleTypes());
      set(types, "aria-pressed", "true");
      bar.append(types);
    }
    if (this.frame.panes.some((pane) => pane.rows.some((row) => row.d))) {
      bar.append(this.#button("fold", "fold", "fold or open all", () => this.#foldAll()));
    }
    if (this.frame.panes.some((pane) => pane.scene) && document.fullscreenEnabled) {
      bar.append(this.#button("whole", "", "whole screen", () => this.#wholeScreen()));
    }
    // Where a picture leaves its small map no corner.
    const map = this.#button("map", "", "small map", () => set(map, "aria-pressed", root.classList.toggle("mj-maps")));
    flag(map, "map");
    map.hidden = true;
    bar.append(
      map,
      this.#button("text", "text", "show as text", () => this.#toggleText()),
      this.#button("help", "?", "keys", () => this.#toggle("help", this.#help)),
    );
    return bar;
  }

  /** The list from which one chooses what alone is to be shown. */
  #drawChoices(): void {
    const box = this.#onlyBox;
    entitle(box, "show only");
    box.append(new Option("all equations", ""), new Option("those found by search", "found"));
    // Counting takes a moment in a long program.
    later(() => {
      this.#choices = choices(this.frame);
      for (const kind of ["label", "line"] as const) {
        const group = element("optgroup");
        group.label = kind === "label" ? "only the primitive" : "only the line";
        this.#choices.forEach((choice, index) => {
          if (choice.kind === kind) group.append(new Option(`${choice.text} (${choice.count})`, String(index)));
        });
        if (group.childElementCount) box.append(group);
      }
    });
    listen(box, "change", () => {
      if (box.value === "found") {
        this.#filter({ kind: "found", key: this.#searchBox.value });
        this.#openSearch();
      } else this.#filter(box.value ? this.#choices[Number(box.value)]! : null);
    });
  }

  /** Panes side by side; some under the one before. What room is left beyond the least
   *  that each needs goes to those that would like to have more. */
  #drawPanes(): void {
    let column: HTMLElement | null = null;
    let width = 0;
    const columns: { made: HTMLElement; least: number; likes: number; code: number; wide: boolean }[] = [];
    this.frame.panes.forEach((pane, index) => {
      if (!column || !pane.below) {
        column = element("div", pane.wide ? "mj-column mj-wide" : "mj-column");
        width = 0;
        columns.push({ made: column, least: 0, likes: 0, code: 0, wide: !!pane.wide });
        this.#panesBox.append(column);
      }
      const here = columns[columns.length - 1]!;
      width = here.likes = max(width, naturalWidth(pane));
      here.least = max(here.least, leastWidth(pane, !index));
      if (pane.kind === "code") here.code = max(here.code, naturalWidth(pane));
      if (!pane.wide) {
        // A picture with code beside it, and a listing's remarks, come before code.
        const weight = pane.less || pane.kind === "listing" ? 3 : 1;
        column.style.flexGrow = String(weight * max(1, width - here.least));
      }
      const section = this.#drawPane(pane, index);
      column.append(section);
      if (pane.scene) this.#scenes.push(this.#drawScene(pane, index, section));
    });
    const inAll = columns.reduce((sum, one) => sum + (one.wide ? 0 : one.likes * LETTER + 12), 0);
    for (const { made, least, likes, code } of columns) {
      const pixels = round(least * LETTER);
      // Code has its longest line, up to half of the width, if the others leave it that.
      const others = round(inAll - likes * LETTER);
      const room = `max(${pixels}px,min(${round(code * LETTER)}px,50% - 6px,100% - ${others}px))`;
      vary(made, "least", code > least ? room : `${pixels}px`);
    }
    columns.forEach(({ made, wide }, at) => {
      const before = columns[at - 1];
      if (before && !wide && !before.wide) this.#addHandle(before.made, made, at);
    });
  }

  /** A handle between two columns, for the pointer and for arrow keys; the page keeps what
   *  part of their width the left one has in views of this kind. */
  #addHandle(left: HTMLElement, right: HTMLElement, at: number): void {
    const made = element("div", "mj-handle");
    made.tabIndex = 0;
    set(made, "role", "separator");
    set(made, "aria-orientation", "vertical");
    set(made, "aria-valuenow", 50);
    label(made, "pane widths");
    const name = `mj ${this.frame.kind} ${at}`;
    let kept: Record<string, unknown> = {};
    const share = (wanted: number): void => {
      const part = clamp(wanted, 15, 85);
      kept[name] = part;
      set(made, "aria-valuenow", part);
      [left, right].forEach((column, index) => {
        flag(column, "shared");
        column.style.flexGrow = String(index ? 100 - part : part);
      });
      for (const scene of this.#scenes) scene.choose();
    };
    const place = (x: number): number => {
      const from = bounds(left).left;
      return round((100 * (x - from)) / (bounds(right).right - from));
    };
    listen(made, "pointerdown", (event) => {
      event.preventDefault();
      drag(({ clientX }) => share(place(clientX)));
    });
    listen(made, "keydown", (event) => {
      const by = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
      if (!by) return;
      event.stopPropagation();
      share(place(bounds(right).left) + by);
    });
    // What a page keeps lies on the disk.
    later(() => {
      try {
        kept = localStorage;
        if (kept[name]) share(Number(kept[name]));
      } catch {
        // A page that may keep nothing forgets it.
      }
    });
    right.append(made);
  }

  #drawPane(pane: Pane, index: number): HTMLElement {
    const section = element("section", `mj-pane mj-${pane.kind}-pane`);
    // A style that asks what a page has inside of it makes each step dearer.
    flag(this.root, `with-${pane.kind}`);
    section.tabIndex = 0;
    set(section, "role", "region");
    label(section, pane.title || `pane ${index + 1}`);
    if (pane.title) section.append(element("div", "mj-title", pane.title));
    const table = element("table", `mj-table mj-${pane.kind}`);
    if (pane.kind === "table") flag(table, "plain");
    flag(table, "sized", rolesOf(pane).has("size"));
    if (!["listing", "code", "tiles"].includes(pane.kind)) flag(table, "grid");
    const widths = columnWidths(pane);
    flag(table, "pair", widths.length === 3 && widths[0]! > 24);
    // On a phone the first cell has a row of its own, where the others leave it no room.
    flag(table, "row", widths.length > (widths[0]! > 11 ? 3 : 4));
    vary(table, "columns", max(1, widths.length - 1));
    vary(table, "last", `${min(27, widths.at(-1)! - 3)}ch`);
    vary(table, "middle", `${min(28, widths[1]! - 3)}ch`);
    const rest = widths.slice(1).reduce((sum, letters) => sum + letters + 2, 2);
    vary(table, "rest", `${rest}ch`);
    // Room for the sign that folds.
    const sign = pane.rows.some((row) => row.d) ? 24 : 4;
    vary(table, "first", `calc(${min(66, widths[0]!)}ch + ${sign}px)`);
    set(table, "role", "presentation");
    if (pane.columns) {
      table.removeAttribute("role");
      const line = element("tr");
      for (const column of pane.columns) {
        // A column without a heading has none to read out.
        const cell = column ? element("th", "", column) : element("td");
        if (column) cell.scope = "col";
        if (column.length > 24) cell.title = column;
        line.append(cell);
      }
      const head = element("thead");
      head.append(line);
      table.append(head);
    }
    const body = element("tbody");
    table.append(body);
    if (!pane.scene) section.append(table);
    const folds = folding(pane.rows);
    const drawn: Drawn = {
      pane,
      section,
      body,
      rows: pane.rows.map(() => null),
      main: pane.kind === "code" ? 1 : 0,
      folding: folds,
      folds: folds.includes(true),
    };
    this.#panes.push(drawn);
    this.#hues ??= huesOfLines(this.frame);
    body.append(room(this.state.shown(index).filter(Boolean).length));
    return section;
  }

  #drawScene(pane: Pane, index: number, section: HTMLElement): ScenePane {
    const Made = pane.scene!.bars ? minijaxPlayer.Bars : ScenePane;
    return new Made(section, this.root, pane, index, {
      remember: (key, made) => this.#remember(key, made),
      goTo: (step) => this.goTo(step),
      say: (text) => this.#say(text),
      near: (keys) => this.#hoverKeys(keys),
      relight: () => this.#show(),
      step: () => this.state.step,
      detail: () => this.#detailOfStep(),
      lit: () => this.frame.steps[this.state.step]?.on ?? [],
    });
  }

  #detailOfStep(): string {
    return this.frame.steps[this.state.step]?.detail ?? "";
  }

  /** Which of the rows that are shown stand near to one that the step needs. */
  #needed(index: number, shown: number[]): boolean[] {
    const { on = [], marks = [] } = this.frame.steps[this.state.step] ?? {};
    const rows = on.map((key) => this.#firstRow(index, key));
    for (const [pane, row] of marks) if (pane === index) rows.push(row);
    const places = [this.#newest(this.frame.panes[index]!), ...rows].map((row) => shown.indexOf(row)).filter((place) => place >= 0);
    const near: boolean[] = Array(shown.length);
    for (const at of places.length ? places : [0]) near.fill(true, max(0, at - NEAR_ROWS), at + NEAR_ROWS + 1);
    return near;
  }

  /** Puts the visible rows into the document, making those that were never shown; into the
   *  first picture only those near to what the step needs, and room for the others. */
  #showRows(index: number): void {
    const drawn = this.#panes[index]!;
    const folded = this.state.folded[index]!;
    const shown = this.state.shown(index).flatMap((isShown, number) => (isShown ? number : []));
    const near = this.#late && this.#needed(index, shown);
    const made: HTMLTableRowElement[] = [];
    let next = 0;
    const leave = (place: number): void => {
      if (place > next) made.push(room(place - next));
      next = place + 1;
    };
    shown.forEach((number, place) => {
      if (near && !near[place]) {
        this.#late!.add(index);
        return;
      }
      leave(place);
      let row = drawn.rows[number];
      if (!row) row = drawn.rows[number] = this.#drawRow(drawn, index, number);
      const button = row.querySelector<HTMLButtonElement>(".mj-fold");
      if (button) set(button, "aria-expanded", !folded.has(number));
      made.push(row);
    });
    leave(shown.length);
    drawn.body.replaceChildren(...made);
  }

  #drawRow(drawn: Drawn, pane: number, number: number): HTMLTableRowElement {
    const row: Row = drawn.pane.rows[number]!;
    const line = element("tr", "mj-r");
    line.dataset.pane = String(pane);
    line.dataset.row = String(number);
    const old = this.options.before?.panes[pane]?.rows;
    if (old && old.length !== drawn.pane.rows.length && !old.some((one) => rowText(one) === rowText(row))) {
      flag(line, "moved");
    }
    if (row.s) line.classList.add(CLASSES[row.s] ?? `mj-${row.s}`);
    if (row.go !== undefined) flag(line, "go");
    for (const key of row.k ?? []) {
      this.#remember(key, line);
      const hue = row.s === "error" ? undefined : this.#hues!.get(key);
      if (hue === undefined) continue;
      flag(line, "line");
      vary(line, "hue", hue);
    }
    const depth = row.d ?? 0;
    const { kind } = drawn.pane;
    row.c.forEach((pieces, column) => {
      const cell = element("td", column > drawn.main ? "mj-rail" : column ? "" : "mj-edge");
      flag(cell, "sized", pieces.some(([, role]) => role === "size"));
      const text = cellText(pieces);
      flag(cell, "long", text.length * row.c.length > MOST_OF_ROW);
      // Narrow pages show the second of two programs, the first where there is none.
      flag(cell, "other", column === 1 && !!cellText(row.c[2]));
      const first = column === drawn.main;
      if (first && drawn.folding[number]) {
        const fold = element("button", "mj-fold");
        fold.type = "button";
        fold.tabIndex = -1;
        label(fold, "fold");
        fold.append(icon("play")!);
        cell.append(fold);
      }
      if (first && kind !== "code" && (depth || drawn.folds)) {
        // Rows that do not fold stand where the text of those that do begins.
        const sign = drawn.folds && !drawn.folding[number] ? 20 : 0;
        const at = `${8 + 16 * depth + sign}px`;
        if (kind === "listing") vary(cell, "at", at);
        cell.style.paddingLeft = at;
      }
      const bare = kind === "table" && row.c.length === 1 && !drawn.folds;
      if (kind === "sides" ? column : first && (kind === "listing" || kind === "code" || bare)) {
        hang(cell, text);
      }
      // A line without remarks has their room.
      if (row.c.length === 1) cell.colSpan = 9;
      cell.append(...this.#drawCell(drawn, number, column));
      line.append(cell);
    });
    if (row.at !== undefined) {
      flag(line, "later", row.at > this.state.step);
      this.#rowSteps.push({ at: row.at, row: line });
    }
    return line;
  }

  /** The tokens of a pane's code, row by row. */
  #tokensOf(drawn: Drawn): Token[][] {
    drawn.tokens ??= tokens(
      drawn.pane.rows.map((row) => cellText(row.c[1])),
    );
    return drawn.tokens;
  }

  /** What a cell holds: its pieces, code in colours, and from `from` to `to` marked. */
  #drawCell(drawn: Drawn, number: number, column: number, from = 0, to = 0): Node[] {
    const { kind, rows } = drawn.pane;
    const pieces = rows[number]!.c[column]!;
    const code = kind === "code" && column === drawn.main ? this.#tokensOf(drawn)[number]! : [];
    if (!code.length && to <= from) {
      return pieces.map((piece, index) => this.#compared(this.#drawPiece(piece), drawn, number, column, index));
    }
    const made: Node[] = [];
    let mark: HTMLElement | null = null;
    let at = 0;
    for (const piece of pieces) {
      const end = at + piece[0].length;
      const cuts = [from, to, ...code.flatMap((token) => [token[0], token[1]])];
      const edges = [at, ...cuts.filter((cut) => cut > at && cut < end).sort((a, b) => a - b), end];
      edges.slice(1).forEach((stop, place) => {
        const start = edges[place]!;
        if (stop <= start) return;
        const token = code.find(([first, last]) => first <= start && stop <= last);
        const [, role, ...rest] = piece;
        const roles = token && !role ? `t-${token[2]}` : role;
        const node = this.#drawPiece([piece[0].slice(start - at, stop - at), roles, ...rest]);
        if (start >= from && stop <= to) {
          if (!mark) made.push((mark = element("mark")));
          mark.append(node);
        } else made.push(node);
      });
      at = end;
    }
    return made;
  }

  /** A piece that another text stood in before: marked. */
  #compared(made: Node, drawn: Drawn, row: number, column: number, index: number): Node {
    const old = this.options.before?.panes[this.#panes.indexOf(drawn)]?.rows;
    if (!old || old.length !== drawn.pane.rows.length) return made;
    const text = drawn.pane.rows[row]!.c[column]![index]![0];
    if (old[row]!.c[column]?.[index]?.[0] === text || !text.trim()) return made;
    const around = element("span", "mj-moved");
    around.append(made);
    return around;
  }

  #drawPiece(piece: Piece): Node {
    const [text, role, key, flags, link] = piece;
    if (!role && !key) {
      const parts = new DocumentFragment();
      parts.append(...breakable(text));
      return parts;
    }
    const glyph = this.frame.glyphs?.[role ?? ""];
    if (glyph) return inlineGlyph(glyph);
    if (role === "bytes") {
      const bar = element("span", "mj-bytes");
      bar.style.width = `calc(${Number(text)}*var(--mj-pixel,1px))`;
      return bar;
    }
    if (role === "params") return this.#drawParameters(text);
    const span = element(link ? "a" : "span");
    span.append(...breakable(text));
    // Only pages beside this one: a recording that was made elsewhere may hold any text.
    if (link && /^[\w-]+(\/[\w-]+)*\.html$/.test(link)) set(span, "href", link);
    if (role) span.className = role.split(" ").map((name) => `mj-${name}`).join(" ");
    if (key) {
      flag(span, "n");
      span.dataset.key = key;
      if ((flags ?? 0) & DEFINES) span.dataset.defines = "";
      this.#remember(key, span);
    }
    return span;
  }

  /** What stands in brackets, as `...` until it is asked for. */
  #drawParameters(text: string): Node {
    const parts = new DocumentFragment();
    const made = element("span", "mj-params");
    made.title = text.trim();
    // Lines hang below the first by as much as all that wrap.
    made.append(element("span", "", text.trimEnd().replace(/^ +/, "").replace(/\n */g, "\n")));
    parts.append(text.startsWith(" ") ? " " : "", made);
    return parts;
  }

  #remember(key: string, made: Element): void {
    let known = this.#byKey.get(key);
    if (!known) this.#byKey.set(key, (known = new Set()));
    known.add(made);
  }

  // ---- states ----------------------------------------------------------------------

  goTo(step: number): void {
    if (this.state.to(step)) {
      this.state.selected = null;
      this.#show();
      this.#tell();
    }
  }

  /** Brings the page to the state of the current step. */
  #show(first = false): void {
    const { state, frame } = this;
    const step = frame.steps[state.step];
    const late = this.#late;
    if (!first && late) {
      this.#late = undefined;
      late.forEach((index) => this.#showRows(index));
    }
    for (const { at, row } of this.#rowSteps) flag(row, "later", at > state.step);
    for (const scene of this.#scenes) scene.step(first);
    for (const made of this.#lit) made.classList.remove("mj-on", "mj-rel", "mj-def", "mj-use", "mj-lit");
    this.#lit = [];
    for (const [drawn, row] of this.#marked) this.#mark(drawn, row);
    this.#marked = [];
    // In each pane the rows of the first key that has any are the step; rows of later
    // keys are what it is compared with.
    const leading = new Map<string, string>();
    for (const key of step?.on ?? []) {
      this.#ensure(key);
      for (const made of this.#byKey.get(key) ?? []) {
        const pane = (made as HTMLElement).dataset.pane;
        if (pane !== undefined && !leading.has(pane)) leading.set(pane, key);
        this.#light(made, pane === undefined || leading.get(pane) === key);
      }
    }
    flag(this.root, "wrong", step?.s === "error");
    for (const [pane, row, from, to] of step?.marks ?? []) {
      const drawn = this.#panes[pane];
      if (!drawn) continue;
      if (this.state.reveal(pane, row)) this.#showRows(pane);
      this.#mark(drawn, row, from, to);
      this.#marked.push([drawn, row]);
    }
    this.#slider.value = String(state.step);
    this.#moveAxes?.(state.step);
    const count = frame.steps.length;
    const label = step?.label ?? "";
    const where = `step ${state.step + 1} of ${count}: ${label}`;
    set(this.#slider, "aria-valuetext", where);
    write(this.#where, count > 1 ? where : "");
    this.#where.title = label;
    this.#say(step?.detail ?? "", step?.s === "error");
    if (this.#buttons.first) {
      this.#buttons.first.disabled = this.#buttons.back!.disabled = state.step === 0;
      this.#buttons.last!.disabled = this.#buttons.forward!.disabled = state.step === state.lastStep;
    }
    if (this.#strip) {
      this.#strip.replaceChildren(element("b", "", frame.live!));
      for (const [name, value, traced] of step?.live ?? []) {
        const span = element("span");
        const glyph = frame.glyphs?.[value];
        if (glyph) span.append(inlineGlyph(glyph), " ");
        span.append(`${name} = `, element("span", traced ? "mj-chip" : "mj-dash", value));
        this.#strip.append(span);
      }
      if (!step?.live?.length) this.#strip.append(element("span", "mj-constant", "none yet"));
    }
    this.#scrollToLit(first);
  }

  #light(made: Element, leads: boolean): void {
    if (!this.#lightName(made)) flag(made, leads ? "on" : "rel");
    this.#lit.push(made);
  }

  /** Lights a name, as a definition or a use, and the text of a source line's row; whether
   *  it was a name. */
  #lightName(made: Element): boolean {
    const { key, defines } = (made as HTMLElement).dataset;
    if (key !== undefined) flag(made, defines === undefined ? "use" : "def");
    else if (made.matches(".mj-line")) flag(made, "lit");
    return key !== undefined;
  }

  /** Writes the line below; its parts stand apart, the text stays one. In what we say
   *  ourselves (`ours`) code stands between backticks. */
  #say(text: string, ours = false): void {
    this.#detail.hidden = !text;
    if (this.#detail.textContent === text) return;
    this.#detail.replaceChildren();
    text.split(SEPARATOR).forEach((part, index) => {
      if (index) this.#detail.append(element("span", "mj-separator", SEPARATOR));
      const pieces = ours ? part.split("`") : [part];
      if (pieces.length % 2 === 0) pieces.splice(0, pieces.length, part);
      pieces.forEach((piece, at) => this.#detail.append(at % 2 ? element("span", "mj-code-text", piece) : piece));
    });
  }

  /** Opens the groups that hide the rows of a key. */
  #ensure(key: string): void {
    this.frame.panes.forEach((pane, index) => {
      if (this.state.left) return;
      if (pane.rows.length <= MANY_ROWS && this.#panes[index]!.rows.every(Boolean)) return;
      const row = this.#firstRow(index, key);
      if (row >= 0 && this.state.reveal(index, row)) this.#showRows(index);
    });
  }

  #rowsOfKey: Map<string, number>[] = [];

  #firstRow(pane: number, key: string): number {
    let known = this.#rowsOfKey[pane];
    if (!known) {
      known = this.#rowsOfKey[pane] = new Map();
      const { rows } = this.frame.panes[pane]!;
      // The first one is written last.
      for (let index = rows.length; index--; ) for (const key of rows[index]!.k ?? []) known.set(key, index);
    }
    return known.get(key) ?? -1;
  }

  /** Draws a row's text again, marked from a letter to another. */
  #mark(drawn: Drawn, row: number, from = 0, to = 0): void {
    drawn.rows[row]?.cells[drawn.main]?.replaceChildren(...this.#drawCell(drawn, row, drawn.main, from, to));
  }

  /** Scrolls each pane, and only panes, to what is lit. */
  #scrollToLit(first: boolean): void {
    for (const scene of this.#scenes) scene.scrollToLit(first);
    for (const drawn of this.#panes) {
      const { section } = drawn;
      if (drawn.pane.scene) continue;
      const line =
        section.querySelector<HTMLElement>("tr.mj-on, mark, .mj-tile.mj-use") ??
        section.querySelector<HTMLElement>(".mj-use") ??
        drawn.rows[this.#newest(drawn.pane)];
      if (!line) continue;
      const box = bounds(section);
      const marked = section.querySelector("mark");
      const mark = marked && bounds(marked);
      if (mark && section.scrollWidth > widthOf(section)) {
        // The end of the mark if there is room, in any case its beginning.
        const under = mark.left - box.left - 80;
        const over = min(mark.right - box.right + 12, under);
        section.scrollLeft += over > 24 ? over : min(0, under);
      }
      const at = bounds(line);
      const top = box.top + TITLE;
      if (at.top < top) section.scrollTop -= top - at.top;
      else if (at.bottom > box.bottom) {
        const target = first ? box.top + box.height / 3 : box.bottom - 24;
        section.scrollTop += at.bottom - target;
      }
    }
  }

  /** The last row of a growing pane that is there at this step; its first if none is;
   *  -1 in a pane that does not grow. */
  #newest({ rows }: Pane): number {
    let newest = rows.findIndex(({ at }) => at !== undefined);
    rows.forEach(({ at }, row) => {
      if (at! <= this.state.step) newest = row;
    });
    return newest;
  }

  #tell(): void {
    this.options.onChange?.(this.state.step, this.frame.steps[this.state.step]?.on?.[0] ?? "");
  }

  select(hit: Hit): void {
    const { pane, row } = hit;
    if (this.state.reveal(pane, row)) this.#showRows(pane);
    const drawn = this.#panes[pane]!;
    const data = drawn.pane.rows[row]!;
    this.#unflag("sel");
    this.state.selected = hit;
    if (data.go !== undefined) {
      this.goTo(data.go);
      this.state.selected = hit;
    }
    const line = drawn.rows[row];
    if (line) {
      flag(line, "sel");
      line.scrollIntoView?.({ block: "nearest" });
    }
    if (data.t) this.#say(data.t);
    this.#hoverKeys(data.k ?? []);
  }

  #unflag(name: string): void {
    every(this.root, `.mj-${name}`).forEach((made) => flag(made, name, false));
  }

  #found(hit: Hit | null): void {
    this.#unflag("found");
    const { state } = this;
    const text = this.#searchBox.value.trim();
    if (!hit) {
      write(this.#where, text ? "not found" : "");
      if (!text) this.#show();
      return;
    }
    this.select(hit);
    const row = this.#panes[hit.pane]!.rows[hit.row];
    if (row) flag(row, "found");
    const sought = text.toLowerCase();
    const hidden = row?.querySelector(".mj-params");
    if (hidden?.textContent!.toLowerCase().includes(sought)) flag(hidden, "open");
    // A row of tiles is many steps: go to the tile that was meant.
    const tile = row && every(row, ".mj-tile").find((one) => one.textContent!.includes(sought));
    if (tile) this.#goToTile(tile);
    write(this.#where, `found ${state.hit + 1} of ${state.hits.length}`);
  }

  // ---- what the user does ----------------------------------------------------------

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && event.key === "Enter") return;
    const inField = event.target === this.#searchBox;
    if (event.key === "Escape") {
      event.stopPropagation();
      if (inField) {
        this.#searchBox.hidden = true;
        this.root.focus();
      } else {
        this.#leave();
      }
      return;
    }
    if (event.key === "Tab") return;
    event.stopPropagation();
    if (inField) {
      if (event.key === "Enter") this.#found(this.state.next(event.shiftKey ? -1 : 1));
      return;
    }
    const { target } = event;
    const ofAxis = target instanceof HTMLInputElement && target !== this.#slider;
    const onControl = target instanceof HTMLButtonElement || target instanceof HTMLSelectElement || ofAxis;
    if (onControl && (event.key === " " || event.key === "Enter" || event.key.startsWith("Arrow"))) return;
    if (this.#scenes.some((scene) => scene.key(event))) {
      event.preventDefault();
      return;
    }
    for (const [shown, , , ...runs] of this.#keys) {
      const run = runs[shown.split(" ").findIndex((name) => (NAMES[name] ?? name) === event.key)];
      if (!run) continue;
      event.preventDefault();
      run();
    }
  }

  #allKeys(): Keys[] {
    const { state, frame } = this;
    const { panes } = frame;
    const rows = panes.flatMap((pane) => (pane.scene ? [] : pane.rows));
    const folds = this.#panes.some((drawn) => drawn.folds);
    const hidden = panes.some((pane) => rolesOf(pane).has("params"));
    const keys: Keys[] = [
      ["Left Right", "step", state.lastStep, () => this.goTo(state.step - 1), () => this.goTo(state.step + 1)],
      ["Home End", "first and last step", state.lastStep, () => this.goTo(0), () => this.goTo(state.lastStep)],
      ["Space", "play, stop", state.lastStep, () => this.#play(!this.#timer)],
      ["Up Down", "row", rows.length, () => this.#moveRow(-1), () => this.#moveRow(1)],
      ["Enter", "open or fold the row", folds || hidden, () => this.#toggleRow()],
      [
        "[ ]",
        "group",
        state.lastStep && rows.some(({ s, go }) => s === "group" && go !== undefined),
        () => this.#goToGroup(-1),
        () => this.#goToGroup(1),
      ],
      [
        "/ n N",
        "search, next, previous",
        rows.length,
        () => this.#openSearch(),
        () => this.#found(state.next(1)),
        () => this.#found(state.next(-1)),
      ],
      ["f", "fold all", folds, () => this.#foldAll()],
      ["t", "as text", 1, () => this.#toggleText()],
      ["Esc", "back to the notebook", 1],
      ["?", "these keys", 1, () => this.#toggle("help", this.#help)],
      ["y", "types: show, hide", frame.only, () => this.#toggleTypes()],
      ["o", "only this primitive, only this line, all", frame.only, () => this.#filterByStep()],
      ["e", "parameters behind ...: show, hide", hidden, () => this.root.classList.toggle("mj-all-params")],
      ["+ - 0", "larger, smaller, all of it or as drawn", this.#scenes.some(({ pane }) => pane.kind !== "strip")],
      ["z", "whole screen", this.#scenes[0] && document.fullscreenEnabled, () => this.#wholeScreen()],
    ];
    for (const [key, what, steps] of frame.jumps ?? []) {
      keys.push([key, what, 1, () => this.goTo(jumped(steps, state.step))]);
    }
    for (const { pane, section } of this.#panes) {
      keys.push([pane.key!, `${pane.title.split(":")[0]}: hide, show`, pane.key, () => this.#togglePane(section)]);
    }
    return keys;
  }

  #wholeScreen(): void {
    if (document.fullscreenElement) void document.exitFullscreen();
    else void this.root.requestFullscreen();
  }

  #togglePane(section: HTMLElement): void {
    section.hidden = !section.hidden;
    if (!section.hidden) section.scrollIntoView?.({ block: "nearest" });
  }

  /** Gives the focus back to the notebook, or to nobody. */
  #leave(): void {
    (document.activeElement as HTMLElement | null)?.blur();
    this.root.closest<HTMLElement>(".jp-Notebook")?.focus({ preventScroll: true });
  }

  #goToGroup(by: number): void {
    const step = this.state.group(by);
    if (step !== null) this.goTo(step);
  }

  #moveRow(by: number): void {
    const active = document.activeElement?.closest?.(".mj-pane");
    let pane = this.#panes.findIndex((drawn) => drawn.section === active);
    const { selected } = this.state;
    // A picture has no rows: those beside it are meant.
    if (!this.#panes[pane]?.pane.rows.length) pane = selected?.pane ?? this.#mainPane();
    if (pane < 0) return;
    const shown = this.state.shown(pane);
    const here = selected?.pane === pane ? selected.row : -1;
    const start = here < 0 ? this.#currentRow(pane) : here;
    let row = start;
    do row += by;
    while (row >= 0 && row < shown.length && !shown[row]);
    // At an end it stays, and is selected there.
    if (!shown[row]) row = start;
    if (shown[row] && row !== here) this.select({ pane, row });
  }

  /** The pane whose rows are steps, else the first with rows. */
  #mainPane(): number {
    const first = (has: (row: Row) => boolean) => this.#panes.findIndex((d) => d.pane.rows.some(has));
    const found = first((row) => row.go !== undefined);
    return found < 0 ? first(() => true) : found;
  }

  #currentRow(pane: number): number {
    const line = this.#panes[pane]?.section.querySelector<HTMLElement>("tr.mj-on");
    return line ? Number(line.dataset.row) : -1;
  }

  #toggleRow(): void {
    const pane = this.state.selected?.pane ?? this.#mainPane();
    const row = this.state.selected?.row ?? this.#currentRow(pane);
    if (row < 0) return;
    this.#fold(pane, row);
    this.#panes[pane]!.rows[row]?.querySelector(".mj-params")?.classList.toggle("mj-open");
  }

  #fold(pane: number, row: number): void {
    if (!this.#panes[pane]!.folding[row]) return;
    const folded = this.state.folded[pane]!;
    if (!folded.delete(row)) folded.add(row);
    this.#showRows(pane);
  }

  #foldAll(): void {
    this.#panes.forEach((drawn, index) => {
      const folded = this.state.folded[index]!;
      const parents = drawn.folding.flatMap((folds, row) => (folds ? row : []));
      if (!parents.length) return;
      const open = parents.some((row) => !folded.has(row));
      folded.clear();
      if (open) for (const row of parents) folded.add(row);
      this.#showRows(index);
    });
  }

  #play(on: boolean): void {
    clearInterval(this.#timer!);
    this.#timer = null;
    if (on) {
      if (this.state.step === this.state.lastStep) this.goTo(0);
      this.#timer = setInterval(() => {
        this.goTo(this.state.step + 1);
        if (this.state.step === this.state.lastStep || !this.root.isConnected) this.#play(false);
      }, 1000 / this.#speed);
    }
    const { play } = this.#buttons;
    const name = on ? "stop" : "play";
    play?.replaceChildren(icon(name)!);
    if (play) entitle(play, name);
  }

  #openSearch(): void {
    this.#searchBox.hidden = false;
    this.#searchBox.focus();
    this.#searchBox.select();
  }

  /** Shows only some equations; null: all of them. */
  #filter(only: Only | null): void {
    const { state, frame } = this;
    // An empty search finds nothing, and hides nothing.
    const empty = only?.kind === "found" && !only.key.trim();
    state.filter(empty ? null : only);
    if (empty) state.only = only;
    frame.panes.forEach((pane, index) => {
      if (pane.kind === "listing") this.#showRows(index);
    });
    const at = this.#choices.findIndex((one) => one.kind === only?.kind && one.key === only.key);
    this.#onlyBox.value = only?.kind === "found" ? "found" : at < 0 ? "" : String(at);
    flag(this.#onlyBox, "filtering", only !== null);
    this.#show();
    if (state.left) {
      const [some, all] = [state.countLeft, frame.steps.length].map((n) => n.toLocaleString("en"));
      write(this.#where, `${some} of ${all} shown`);
    }
    this.#tell();
  }

  /** Filters by what the step is: its primitive, then its source line, then not at all. */
  #filterByStep(): void {
    const { state, frame } = this;
    const label: Only = { kind: "label", key: frame.steps[state.step]!.label };
    const line: Only = { kind: "line", key: linesOfSteps(frame)[state.step] ?? "" };
    if (!state.only) this.#filter(label);
    else if (state.only.kind === "label" && line.key) this.#filter(line);
    else this.#filter(null);
  }

  #toggleTypes(): void {
    const hidden = this.root.classList.toggle("mj-untyped");
    set(this.#buttons.types!, "aria-pressed", !hidden);
  }

  #toggleText(): void {
    this.#toggle("text", this.#textBox);
    this.#panesBox.hidden = !this.#textBox.hidden;
  }

  #toggle(name: string, box: HTMLElement): void {
    box.hidden = !box.hidden;
    set(this.#buttons[name]!, "aria-pressed", !box.hidden);
  }

  #hover(event: Event): void {
    const target = event.target as Element;
    const name = target.closest<HTMLElement>("[data-key]");
    if (name) {
      this.#hoverKeys([name.dataset.key!]);
      const step = this.#stepOf(name);
      if (step >= 0) write(this.#detail, this.frame.steps[step]!.detail);
      return;
    }
    const picture = this.#sceneAt(target);
    if (picture) {
      picture.over(target);
      return;
    }
    const line = target.closest<HTMLElement>("tr.mj-r");
    if (!line) return;
    const row = this.#panes[Number(line.dataset.pane)]?.pane.rows[Number(line.dataset.row)];
    this.#hoverKeys(row?.k ?? []);
  }

  #sceneAt(target: Element): ScenePane | undefined {
    const svg = target.closest("svg.mj-scene");
    return svg ? this.#scenes.find((scene) => scene.section.contains(svg)) : undefined;
  }

  #hoverKeys(keys: string[]): void {
    for (const made of this.#near) made.classList.remove("mj-near", "mj-def", "mj-use", "mj-lit");
    this.#near = [];
    for (const key of keys) {
      for (const made of this.#byKey.get(key) ?? []) {
        if (!this.#lightName(made)) flag(made, "near");
        this.#near.push(made);
      }
    }
    for (const made of this.#lit) this.#lightName(made);
  }

  /** The step that a tile, or a name that leads further, stands for, or -1. */
  #stepOf(made: HTMLElement): number {
    if (!made.matches(".mj-tile, .mj-jump")) return -1;
    return this.frame.steps.findIndex((step) => step.on?.[0] === made.dataset.key);
  }

  #goToTile(tile: HTMLElement): void {
    const step = this.#stepOf(tile);
    if (step >= 0) this.goTo(step);
  }

  #click(event: Event): void {
    const target = event.target as Element;
    const tile = target.closest<HTMLElement>(".mj-tile, .mj-jump");
    if (tile) return this.#goToTile(tile);
    if (this.#sceneAt(target)?.click(target)) return;
    target.closest(".mj-params")?.classList.toggle("mj-open");
    const line = target.closest<HTMLElement>("tr.mj-r");
    if (!line) return;
    const pane = Number(line.dataset.pane);
    const row = Number(line.dataset.row);
    if (target.closest(".mj-fold")) this.#fold(pane, row);
    else this.select({ pane, row });
  }
}
