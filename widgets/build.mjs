// Builds the player into minijax_widgets/static/ and notes what it was built from, so
// that a Python test can tell whether the committed bundle is fresh.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const STATIC = "minijax_widgets/static";

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? sources(path) : [path];
    })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .sort();
}

function hash(text) {
  return createHash("sha256").update(text).digest("hex");
}

// Names of our own properties, which neither a frame's JSON nor the document has: short.
const OWN =
  /^(state|stage|goTo|scrollToLit|choose|remember|relight|reveal|shown|folded|hits|hit|countLeft|near|say|drawing|holder|small|section|folds|timer|parts|step|group|mark|svg|over|root|options|onChange|frame|tokens|body|main|least|likes|before|selected|lastStep|faint|moved|rest|letters|widths)$/;

// The rules of the style sheet need no line ends, and signs stand for their words.
function shortened(rules, words) {
  for (const [sign, ...word] of words) {
    if (!/[A-Z]/.test(sign)) continue;
    if (rules.replace(/\$\{\w+\}/g, "").includes(sign)) throw new Error(`the rules hold a ${sign}, which is a sign`);
    rules = rules.replaceAll(word.join(""), sign);
  }
  return rules.replaceAll("\n", "");
}
const style = {
  name: "style",
  setup: ({ onLoad }) =>
    onLoad({ filter: /style\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const words = /const WORDS =\s*"([^"]*)"/.exec(text)[1].split("!");
      return { contents: text.replace(/const WRITTEN = `[^`]*`/, (rules) => `const WRITTEN = ${"`"}${shortened(rules.slice(17), words)}`), loader: "ts" };
    }),
};

mkdirSync(STATIC, { recursive: true });
/** Builds a bundle; short names are the same in all of them. */
const names = {};
async function bundle(entry, name, banner) {
  const { mangleCache } = await build({
    entryPoints: [entry],
    outfile: join(STATIC, name),
    bundle: true,
    plugins: [style],
    minify: true,
    mangleProps: OWN,
    mangleCache: names,
    format: "iife",
    banner: { js: banner },
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
  });
  Object.assign(names, mangleCache);
  const made = readFileSync(join(STATIC, name));
  console.log(`${name}: ${made.length} bytes`);
  if (made.length > 50_000) throw new Error("a bundle may have at most 50,000 bytes");
  return [name, hash(made)];
}

const bundles = [
  await bundle("src/player/index.ts", "player.js", "var minijaxPlayer={};"),
  // Only pages with a timeline carry it.
  await bundle("src/timeline/index.ts", "timeline.js", ""),
];
const files = sources("src");
const manifest = {
  sources: hash(files.map((path) => `${path}\n${readFileSync(path, "utf8")}`).join("")),
  bundles: Object.fromEntries(bundles),
};
writeFileSync(join(STATIC, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
