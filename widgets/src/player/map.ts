// A small map: the whole of a picture that its pane shows in part, and which part.

import { bounds, element, every, flag, heightOf, listen, set, svgElement, widthOf } from "./dom";
import { max } from "./numbers";

/** How much larger than its pane a picture is that gets a map. */
const LEAST = 1.3;
/** A pane that is narrower, in pixels, has no room for a map. */
const LEAST_ROOM = 400;
/** The longer side of the map, in pixels. */
const SIDE = 96;
/** The height of a pane's title, in pixels. */
export const TITLE = 24;
/** How far from the edge of its pane the map stands, and from what is drawn. */
const GAP = 8;
const EDGE = 4;
/** So far apart are the points of a line that are looked at. */
const APART = 5;

function meet(one: DOMRect, other: DOMRect): boolean {
  return one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
}

/** Whether something of a mark is in a box of the window. What is filled is in all of the
 *  box around it; of the ground under other marks, and of what lights up, the line is. */
function isIn(part: Element, box: DOMRect): boolean {
  if (!meet(bounds(part), box)) return false;
  const { fill, stroke } = (part as SVGElement).style;
  const isHalo = part.matches(".mj-halo");
  if (!isHalo && !/none|panel/.test(fill)) return true;
  const line = part as SVGGeometryElement;
  const matrix = line.getScreenCTM()!;
  for (let at = stroke || (isHalo && part.matches(".mj-on *")) ? line.getTotalLength() : -1; at >= 0; at -= APART) {
    const { x, y } = line.getPointAtLength(at).matrixTransform(matrix);
    if (meet(new DOMRect(x, y), box)) return true;
  }
  return false;
}

export class SmallMap {
  private holder = element("div", "mj-map");
  private small = svgElement("svg");
  private part = svgElement("rect");
  #picture: SVGSVGElement | undefined;
  /** How large the picture was drawn, and the map then. */
  #drawn = "";
  #size!: [number, number];
  #frame = "";
  #corner = "";

  constructor(
    private section: HTMLElement,
    private root: HTMLElement,
  ) {
    set(this.holder, "aria-hidden", "true");
    set(this.small, "preserveAspectRatio", "none");
    this.holder.append(this.small);
    listen(section, "scroll", () => this.#follow());
    listen(section, "scrollend", () => this.#place());
    for (const name of ["pointerdown", "pointermove"] as const) {
      listen(this.holder, name, (event) => event.buttons && this.#go(event));
    }
  }

  /** Shows the map of a picture, if its pane is much smaller. */
  show(picture: SVGSVGElement): void {
    const { section, holder, small } = this;
    const { width, height } = bounds(picture);
    const wide = widthOf(section);
    holder.hidden = wide < LEAST_ROOM || max(width / wide, height / heightOf(section)) <= LEAST;
    if (holder.hidden) return;
    if (this.#picture !== picture) {
      this.#picture = picture;
      const copies = [...picture.children].map((mark) => mark.cloneNode(true) as Element);
      for (const mark of copies) mark.removeAttribute("tabindex");
      set(small, "viewBox", picture.getAttribute("viewBox")!);
      small.replaceChildren(...copies, this.part);
      section.append(holder);
      this.#drawn = "";
    }
    // A step reads where all is and writes what has changed: nothing is laid out twice.
    const drawn = `${width} ${height}`;
    if (this.#drawn !== drawn) {
      this.#drawn = drawn;
      const scale = SIDE / max(width, height);
      this.#size = [max(24, width * scale), max(24, height * scale)];
    }
    this.#place();
    this.#follow();
  }

  /** It stands in a corner where nothing is drawn. Where there is none, it is not seen
   *  unless the reader asks for it. */
  #place(): void {
    const { section, holder, small } = this;
    // Under the pointer it stays.
    if (!this.#picture || holder.hidden || holder.matches(":hover")) return;
    const marks = every(this.#picture, ".mj-mark").map((mark) => [bounds(mark), mark] as const);
    const { left, top } = bounds(section);
    const [width, height] = this.#size;
    const right = widthOf(section) - width - GAP;
    const low = heightOf(section) - height - GAP;
    const corners: [number, number][] = [[right, low], [right, TITLE], [GAP, low], [GAP, TITLE]];
    const isFree = ([x, y]: [number, number]): boolean => {
      const box = new DOMRect(left + x - EDGE, top + y - EDGE, width + 2 * EDGE, height + 2 * EDGE);
      return !marks.some(([all, mark]) => meet(all, box) && [...mark.children].some((part) => isIn(part, box)));
    };
    // Where it stands already it stays if it can.
    const free = corners.sort((one) => (one.join() === this.#corner ? -1 : 0)).find(isFree);
    const button = this.root.querySelector<HTMLElement>("button.mj-map");
    flag(holder, "covers", !free);
    if (!free && button) button.hidden = false;
    const [x, y] = free ?? [right, low];
    this.#corner = [x, y].join();
    Object.entries({ width, height, left: x, top: y - heightOf(section) }).forEach(([name, at]) =>
      small.style.setProperty(name, `${at}px`),
    );
  }

  /** The frame stands around what the pane shows. */
  #follow(): void {
    if (this.holder.hidden || !this.#picture) return;
    const { section, part } = this;
    const { width: drawn } = bounds(this.#picture);
    const size = this.#picture.viewBox.baseVal.width / drawn;
    const { scrollLeft: x, scrollTop: y, clientWidth: width, clientHeight: height } = section;
    const frame = [size, x, y, width, height].join();
    if (this.#frame === frame) return;
    this.#frame = frame;
    Object.entries({ x, y, width, height }).forEach(([name, at]) => set(part, name, at * size));
  }

  /** Brings what the pointer is on into the middle of the pane. */
  #go(event: PointerEvent): void {
    event.preventDefault();
    event.stopPropagation();
    const { section } = this;
    const at = bounds(this.small);
    const all = bounds(this.#picture!);
    section.scrollLeft = ((event.clientX - at.left) / at.width) * all.width - widthOf(section) / 2;
    section.scrollTop = ((event.clientY - at.top) / at.height) * all.height - heightOf(section) / 2;
  }
}
