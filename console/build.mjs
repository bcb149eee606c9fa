// Builds the page into the Python package (or into the folder that is named), and says of which sources it is.
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? join(here, "..", "palimpsest", "console", "page");

async function sources() {
  const found = await readdir(join(here, "src"), { recursive: true, withFileTypes: true });
  const files = found.filter((one) => one.isFile()).map((one) => join(one.parentPath ?? one.path, one.name));
  for (const name of ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]) files.push(join(here, name));
  return files.map((path) => relative(here, path).replaceAll("\\", "/")).sort();
}

async function digest() {
  const hash = createHash("sha256");
  for (const name of await sources()) hash.update(`${name}\0`).update(await readFile(join(here, name))).update("\0");
  return hash.digest("hex");
}

const license = await readFile(join(here, "node_modules", "preact", "LICENSE"), "utf8");
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: [{ in: "src/main.tsx", out: "console" }, { in: "src/style.css", out: "console" }],
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  banner: { js: `/*! Palimpsest's console, built by \`make console\`. It holds Preact:\n\n${license}*/` },
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await cp(join(here, "src", name), join(out, name));
await writeFile(join(out, "sources.sha256"), `${await digest()}\n`);
