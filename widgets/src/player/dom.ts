// Elements of the page, in few words.

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) write(made, text);
  return made;
}

/** How wide an element is inside, without a scroll bar, and how high. */
export const widthOf = (made: Element): number => made.clientWidth;
export const heightOf = (made: Element): number => made.clientHeight;

/** Puts a text in the place of all that an element has. */
export function write(made: Element, text: string): void {
  made.textContent = text;
}

/** All elements inside of another that a selector names. */
export function every<E extends Element = HTMLElement>(made: ParentNode, selector: string): E[] {
  return [...made.querySelectorAll<E>(selector)];
}

const SVG = "http://www.w3.org/2000/svg";

export function svgElement<K extends keyof SVGElementTagNameMap>(name: K): SVGElementTagNameMap[K] {
  return document.createElementNS(SVG, name);
}

/** Sets an attribute. */
export function set(made: Element, name: string, value: string | number | boolean): void {
  made.setAttribute(name, value as string);
}

/** Sets a variable of the style sheet. */
export function vary(made: HTMLElement, name: string, value: string | number): void {
  made.style.setProperty(`--mj-${name}`, value as string);
}

/** Says what a screen reader is to call it. */
export function label(made: Element, text: string): void {
  set(made, "aria-label", text);
}

/** Calls a function at each event of that name. */
export function listen<K extends keyof HTMLElementEventMap>(
  made: Element | Window,
  name: K,
  run: (event: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
): void {
  made.addEventListener(name, run as EventListener, options);
}

/** Calls a function when the first picture stands there: it does not wait for it. */
export function later(run: () => void): void {
  requestAnimationFrame(() => setTimeout(run, 99));
}

/** Gives a page the rules of a view, once: each further style sheet makes a browser look
 *  at all elements anew. A part of a page that is not there yet has its own. */
export function dress(root: Element, rules: string): void {
  const home = root.getRootNode();
  const place = home === document ? document.head : home instanceof ShadowRoot ? home : root;
  for (const made of every(place as Element, "style")) if (made.textContent === rules) return;
  place.append(element("style", "", rules));
}

/** Where an element stands in the window. */
export function bounds(made: Element): DOMRect {
  return made.getBoundingClientRect();
}

/** Puts an element into one of our classes, or out of it. */
export function flag(made: Element, name: string, on = true): void {
  made.classList.toggle(`mj-${name}`, on);
}

/** Calls a function at each move of the pointer, until it is let go, the browser takes it,
 *  or another finger comes. */
export function drag(move: (event: PointerEvent) => void): void {
  const ended = new AbortController();
  const options = { signal: ended.signal, capture: true };
  listen(window, "pointermove", move, options);
  for (const name of ["pointerup", "pointercancel", "pointerdown"] as const) {
    listen(window, name, () => ended.abort(), options);
  }
}

/** Calls a function when two fingers have moved apart, by which factor, around which
 *  point of the window. */
export function pinch(made: Element, zoom: (factor: number, x: number, y: number) => void): void {
  let apart = 0;
  const move = (event: TouchEvent): void => {
    const [one, two] = [...event.touches].filter(({ target }) => made.contains(target as Node));
    const before = apart;
    apart = 0;
    if (!two) return;
    event.preventDefault();
    apart = Math.hypot(one!.clientX - two.clientX, one!.clientY - two.clientY);
    if (before && event.type === "touchmove") zoom(apart / before, (one!.clientX + two.clientX) / 2, (one!.clientY + two.clientY) / 2);
  };
  for (const name of ["touchstart", "touchmove", "touchend"] as const) listen(made, name, move, { passive: false });
}

/** Calls a function when an element has another width than what was drawn for. */
export function onWidth(made: Element, drawn: () => number, run: () => void): void {
  new ResizeObserver(() => {
    if (made.clientWidth !== drawn()) run();
  }).observe(made);
}
