// What a view hands the player: panes of rows, and steps that light parts of them.
// Python makes it (minijax_widgets/frame.py); arrays instead of objects keep it small.

/** A piece of text: [text, role, key, flags, link]. Trailing parts may be missing. */
export type Piece = [text: string, role?: string, key?: string, flags?: number, link?: string];

/** Flags of a piece. */
export const DEFINES = 1;

export interface Row {
  /** Cells from left to right, each a list of pieces. */
  c: Piece[][];
  /** Keys: whatever shares a key is lit together. */
  k?: string[];
  /** The step from which on this row is there; before, it is faint. */
  at?: number;
  /** The step that a click on the row goes to. */
  go?: number;
  /** How deep the row stands; a deeper row belongs to the last shallower one. */
  d?: number;
  /** Whether the rows below it (deeper ones) are hidden at first. */
  f?: boolean;
  /** A sentence for the line below, when the row itself is selected. */
  t?: string;
  /** A class of look: "head", "py", "error", "group", "miss", "add", "del", "kept",
   *  "backward". */
  s?: string;
}

export interface Pane {
  title: string;
  /** A key of the keyboard that hides the pane and shows it again. */
  key?: string;
  /** "table": rows of cells; "listing": a text with a rail that narrow pages leave out;
   *  "code": lines with their numbers; "prose": rows that wrap; "sides": a sign and two
   *  programs side by side; "tiles": cells of tiles; "strip": a scene that the panes
   *  around it leave room for. */
  kind: "table" | "listing" | "code" | "prose" | "sides" | "tiles" | "scene" | "strip";
  rows: Row[];
  /** Headings of the columns, if they need any. */
  columns?: string[];
  /** Whether the pane stands under the one before it, in the same column. */
  below?: boolean;
  /** Whether the pane takes the whole width, under the others. */
  wide?: boolean;
  scene?: Scene;
  /** The scene for pages between narrow and wide. */
  middle?: Scene;
  /** The scene where what stands beside it leaves it no more room. */
  less?: Scene;
  /** The scene for narrow pages. */
  narrow?: Scene;
  /** What boxes show that open or close. */
  layouts?: Scene[];
  /** Drawings; marks of all these scenes name them by number. */
  draws?: Drawing[][];
}

/** A part of a drawing: an SVG element, its attributes with colours by name, its text. */
export type Drawing = [tag: string, has: Record<string, string | number>, text?: string];

export interface Scene {
  w: number;
  h: number;
  label: string;
  /** The size of its smallest letters. */
  f?: number;
  marks: SceneMark[];
  /** The marks as JSON instead, of a picture of many: layouts that are not drawn need none. */
  packed?: string;
  /** A timeline on a canvas (`timeline/`): for each bar its start, length, row, height in
   *  rows, role, step and name; and how its sentence goes on. */
  bars?: {
    columns: number[][];
    roles: string[];
    said: string[];
    told: [before: string, between: string, shift: number, unit: string, points: string];
    /** The point of each step; without it a bar is there at its own step alone. */
    at?: number[];
    end: number;
    rows: number;
    /** What each role is. */
    legend: [role: string, meaning: string][];
    /** How many points are in sight at first, around the step; all without it. */
    sight?: number;
  };
}

export interface SceneMark {
  x: number;
  y: number;
  /** Its drawing, and the one around it that lights up. */
  d: number;
  h?: number;
  k?: string[];
  /** What a screen reader says. */
  l?: string;
  /** The first and the last step in which the mark is there. */
  at?: number;
  u?: number;
  go?: number;
  /** The layout that a click shows. */
  o?: number;
  t?: string;
  /** Where it stands from a step on. */
  m?: [step: number, x: number, y: number][];
  /** Its drawing from a step on. */
  v?: [step: number, drawing: number][];
}

/** Where a step lights part of a code row: [pane, row, from, to]. */
export type Mark = [pane: number, row: number, from: number, to: number];

export interface Step {
  label: string;
  detail: string;
  /** Keys of the elements that are current at this step. */
  on?: string[];
  marks?: Mark[];
  /** Names at this step, what they hold, and whether that is traced. */
  live?: [name: string, value: string, traced: boolean][];
  /** "error" for a step where something went wrong. */
  s?: string;
}

export interface Frame {
  kind: string;
  call: string;
  headline: string;
  telling: number;
  steps: Step[];
  panes: Pane[];
  /** The whole text twin. */
  text: string;
  /** Whether the steps are equations, of which some may be shown alone. */
  only?: boolean;
  /** Keys of this view alone: each goes to the next of its steps. */
  jumps?: [key: string, what: string, steps: number[]][];
  /** The grid in which the steps stand: its axes, and the place of each step. */
  axes?: { names: string[]; sizes: number[]; places: number[][] };
  /** What the colours mean that are in it: kinds of marks, what each stands for, and a small
   *  one of a picture. */
  legend?: [kind: string, what: string, glyph?: NonNullable<Frame["glyphs"]>[string]][];
  /** The title of the strip of live names below the panes, if there is one. */
  live?: string;
  /** What values in that strip look like, by their text, and signs, by their role; (x, y)
   *  is the top left. */
  glyphs?: Record<string, { x: number; y: number; w: number; h: number; d: Drawing[] }>;
}
