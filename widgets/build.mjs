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

// Private members get short names in the bundle. Those with a capital letter inside are
// ours alone: no property of the page and no key of a frame is called so.
const members = sources("src")
  .flatMap((path) => [...readFileSync(path, "utf8").matchAll(/private (?:readonly )?(\w+)/g)])
  .map((found) => found[1])
  .filter((name) => /[A-Z]/.test(name) && !name.startsWith("scroll"));

mkdirSync(STATIC, { recursive: true });
await build({
  entryPoints: ["src/player/index.ts"],
  outfile: join(STATIC, "player.js"),
  bundle: true,
  minify: true,
  mangleProps: new RegExp(`^(${[...new Set(members)].join("|")})$`),
  format: "iife",
  globalName: "minijaxPlayer",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});
const files = sources("src");
const manifest = {
  sources: hash(files.map((path) => `${path}\n${readFileSync(path, "utf8")}`).join("")),
  bundles: { "player.js": hash(readFileSync(join(STATIC, "player.js"))) },
};
writeFileSync(join(STATIC, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
const size = readFileSync(join(STATIC, "player.js")).length;
console.log(`player.js: ${size} bytes`);
if (size > 50_000) throw new Error("a bundle may have at most 50,000 bytes");
