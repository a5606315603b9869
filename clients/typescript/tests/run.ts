/** Starts a server with a tenant for each test file, runs the files, and stops the server. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../../../../", import.meta.url));
const asked = process.argv.slice(2);
const files = readdirSync(here)
  .filter((name) => name.endsWith(".test.js"))
  .filter((name) => asked.length === 0 || asked.some((one) => name.startsWith(one)));
const own = `${root}.venv/bin/python`;
const python = process.env["MUNIMENT_PYTHON"] ?? (existsSync(own) ? own : "python3");

const tenants = files.map((name) => name.replace(".test.js", ""));
const server = spawn(python, ["-m", "tests.typescript.server", ...tenants, "elsewhere"], {
  cwd: root,
  stdio: ["pipe", "pipe", process.env["MUNIMENT_TEST_LOG"] === undefined ? "ignore" : "inherit"],
});
const ended = once(server, "exit");
const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
const line = await lines.next();
if (line.done === true) throw new Error("the server did not start; MUNIMENT_TEST_LOG=1 shows why");

const tests = spawn(
  process.execPath,
  ["--test", "--test-reporter=spec", "--test-concurrency=2", ...files.map((name) => here + name)],
  { stdio: "inherit", env: { ...process.env, MUNIMENT_TEST_FABRIC: line.value } },
);
const [code] = (await once(tests, "exit")) as [number | null];
server.stdin.end();
await ended;
process.exitCode = code ?? 1;
