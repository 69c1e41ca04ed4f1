// Python's tokens, as far as they have a colour.

/** A part of a line with a colour of its own: from, to, what it is. */
export type Token = [from: number, to: number, kind: "word" | "text" | "number" | "comment" | "name"];

const WORDS = new Set(
  (
    "and as assert async await break case class continue def del elif else except False finally for from " +
    "global if import in is lambda match None nonlocal not or pass raise return True try while with yield"
  ).split(" "),
);
/** Words only where a statement begins; elsewhere they are names. */
const SOFT = new Set(["match", "case"]);
const TOKEN =
  /([rRbBfFuU]{0,2})("""|'''|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|#.*|\b\d[\w.]*|[^\W\d]\w*|@[\w.]+/gu;

/** The tokens of each line; a text in three quotes may go on over several. */
export function tokens(lines: string[]): Token[][] {
  let quote = "";
  return lines.map((line) => {
    const found: Token[] = [];
    let at = 0;
    const goOn = (from: number, behind: number): void => {
      const end = line.indexOf(quote, behind);
      at = end < 0 ? line.length : end + 3;
      if (end >= 0) quote = "";
      if (at > from) found.push([from, at, "text"]);
    };
    if (quote) goOn(0, 0);
    let defines = false;
    while (at < line.length) {
      TOKEN.lastIndex = at;
      const made = TOKEN.exec(line);
      if (!made) break;
      const [text, prefix] = made;
      const from = made.index;
      at = from + text.length;
      if (made[2]?.length === 3 && (made[2] === '"""' || made[2] === "'''")) {
        quote = made[2];
        goOn(from, from + prefix!.length + 3);
      } else if (made[2]) found.push([from, at, "text"]);
      else if (text[0] === "#") found.push([from, at, "comment"]);
      else if (/\d/.test(text[0]!)) found.push([from, at, "number"]);
      else if (text[0] === "@") {
        if (!line.slice(0, from).trim()) found.push([from, at, "name"]);
        else at = from + 1;
      } else if (WORDS.has(text) && (!SOFT.has(text) || /^\s+\S.*:$/.test(line.slice(at)))) {
        found.push([from, at, "word"]);
      } else if (defines) found.push([from, at, "name"]);
      defines = text === "def" || text === "class";
    }
    return found;
  });
}
