/** The package as npm makes it: what is in it, and that a program in a clean folder runs and compiles with it. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { keyOf, url } from "./fabric.js";

interface Packed {
  filename: string;
  files: { path: string }[];
  unpackedSize: number;
}

const home = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "muniment-package-"));
// The npm that runs these tests, else the one of the path.
const { npm_execpath: own, npm_config_nodedir: _unknown, ...environment } = process.env;
let packed: Packed;

async function run(file: string, given: string[], cwd: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(file, given, { cwd, env: { ...environment, ...more } });
  return stdout;
}

async function npm(given: string[], cwd: string): Promise<string> {
  return own === undefined ? await run("npm", given, cwd) : await run(process.execPath, [own, ...given], cwd);
}

before(async () => {
  // Built by `npm test` already; another build would take it away from the tests beside this one.
  const told = await npm(["pack", "--json", "--ignore-scripts", "--pack-destination", folder], home);
  const [found] = JSON.parse(told) as Packed[];
  assert.ok(found);
  packed = found;
  writeFileSync(join(folder, "package.json"), '{ "name": "clean", "private": true, "type": "module" }\n');
  await npm(["install", "--offline", "--no-audit", "--no-fund", `./${packed.filename}`], folder);
});

after(() => {
  rmSync(folder, { recursive: true, force: true });
});

test("the package holds what runs, its types, its licence and its page, and needs no other package", () => {
  const paths = packed.files.map((one) => one.path);
  assert.deepEqual(paths.filter((one) => !one.startsWith("dist/")).sort(), ["LICENSE", "README.md", "package.json"]);
  assert.ok(paths.filter((one) => one.startsWith("dist/")).every((one) => /\.(js|d\.ts)$/.test(one)));
  for (const name of ["dist/index.js", "dist/index.d.ts", "dist/generated/verbs.js"]) assert.ok(paths.includes(name));
  assert.ok(packed.unpackedSize < 1_000_000);
  const told = JSON.parse(readFileSync(join(folder, "node_modules/muniment/package.json"), "utf8")) as object;
  assert.ok(!("dependencies" in told));
});

test("the first example runs in a clean folder", async () => {
  const place = join(folder, "first-memory.js");
  copyFileSync(new URL("../examples/first-memory.js", import.meta.url), place);
  const keys = { AGENT_KEY: keyOf("agent"), REVIEWER_KEY: keyOf("reviewer"), MUNIMENT_SERVER: url };
  const recalled = "customer:cust_8861 preferred language: French (approved by reviewer)\n";
  assert.equal(await run(process.execPath, [place], folder, keys), `promoted\n${recalled}`);
  // Newer ones run TypeScript as it is.
  if (Number(process.versions.node.split(".")[0]) >= 24) {
    const source = join(folder, "first-memory.ts");
    copyFileSync(join(home, "examples/first-memory.ts"), source);
    assert.equal(await run(process.execPath, [source], folder, keys), `duplicate\n${recalled}`);
  }
});

test("programs for node, for bundlers and for browsers compile with its types", async () => {
  const program = `import { Client, NotFound, type Run } from "muniment";
const client: Client = new Client({ url: "https://memory.example.com", key: "mun_x" });
export async function texts(run: Run, signal: AbortSignal): Promise<string[]> {
  try {
    return (await client.recall(run, "a question", {}, { signal })).records.map((one) => one.text);
  } catch (error) {
    if (error instanceof NotFound) return [error.code];
    throw error;
  }
}
`;
  writeFileSync(join(folder, "program.ts"), program);
  const compiler = join(home, "node_modules/typescript/bin/tsc");
  const strict = ["--noEmit", "--strict", "--target", "ES2022", "--lib", "ES2022,DOM,DOM.AsyncIterable"];
  for (const [module, resolution] of [
    ["NodeNext", "NodeNext"],
    ["ESNext", "Bundler"],
  ] as const) {
    const given = [...strict, "--module", module, "--moduleResolution", resolution, "program.ts"];
    assert.equal(await run(process.execPath, [compiler, ...given], folder), "");
  }
});
