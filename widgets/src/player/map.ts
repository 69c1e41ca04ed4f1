// A small map: the whole of a picture that its pane shows in part, and which part.

import { bounds, element, every, listen, set, svgElement } from "./dom";
import { max } from "./numbers";

/** How much larger than its pane a picture is that gets a map. */
const LEAST = 1.3;
/** A pane that is narrower, in pixels, has no room for a map. */
const LEAST_ROOM = 400;
/** The longer side of the map, in pixels. */
const SIDE = 96;
/** The height of a pane's title, in pixels. */
export const TITLE = 24;

export class SmallMap {
  private holder = element("div", "mj-map");
  private small = svgElement("svg");
  private part = svgElement("rect");
  #picture: SVGSVGElement | undefined;
  /** How large the picture was drawn, and the map then. */
  #drawn = "";
  #box!: DOMRect;
  #frame = "";

  constructor(private section: HTMLElement) {
    set(this.holder, "aria-hidden", "true");
    set(this.small, "preserveAspectRatio", "none");
    this.holder.append(this.small);
    listen(section, "scroll", () => this.#follow());
    for (const name of ["pointerdown", "pointermove"] as const) {
      listen(this.holder, name, (event) => event.buttons && this.#go(event));
    }
  }

  /** Shows the map of a picture, if its pane is much smaller. */
  show(picture: SVGSVGElement): void {
    const { section, holder, small } = this;
    const { width, height } = bounds(picture);
    const wide = width / section.clientWidth;
    const needed = max(wide, height / section.clientHeight) > LEAST;
    const hidden = !needed || section.clientWidth < LEAST_ROOM;
    if (holder.hidden !== hidden) holder.hidden = hidden;
    if (hidden) return;
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
      set(small, "width", max(24, width * scale));
      set(small, "height", max(24, height * scale));
      this.#box = bounds(small);
    }
    // It stands below, or above where it covers fewer marks, those that are lit before all.
    const marks = every(picture, "text,.mj-mark,.mj-on *").map(bounds);
    const { right, top } = bounds(section);
    const { width: w, height: h } = this.#box;
    const under = (bottom: number): number => {
      const low = top + section.clientHeight - bottom;
      return marks.filter((mark) => mark.right > right - w && mark.bottom > low - h && mark.top < low).length;
    };
    const [best] = [8, section.clientHeight - h - TITLE].sort((a, b) => under(a) - under(b));
    this.#follow();
    const low = `${best}px`;
    if (small.style.bottom !== low) small.style.bottom = low;
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
    section.scrollLeft = ((event.clientX - at.left) / at.width) * all.width - section.clientWidth / 2;
    section.scrollTop = ((event.clientY - at.top) / at.height) * all.height - section.clientHeight / 2;
  }
}
