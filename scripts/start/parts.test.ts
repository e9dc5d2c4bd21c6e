import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { PartError } from "./part-error.ts";
import { startApp } from "./parts.ts";

/** An app that never comes to listen. */
function hangingApp() {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-parts-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [pidFile, module] = [join(folder, "pid"), join(folder, "hanging.mjs")];
  const text = `import { writeFileSync } from "node:fs";
    writeFileSync(process.env.PID_FILE, process.pid + "\\n");
    await new Promise(() => setInterval(() => {}, 1000));`;
  writeFileSync(module, text);
  const giveUp = new AbortController();
  const env = { ...process.env, PID_FILE: pidFile, NODE_OPTIONS: `--import=${module}` };
  const start = (more: NodeJS.ProcessEnv = {}) =>
    startApp({
      app: "demo-model",
      env: { ...env, ...more },
      logFile: join(folder, "log"),
      say: () => {},
      signal: giveUp.signal,
      onRestarted: () => {},
    });
  const readPid = () => {
    const written = readFileSync(pidFile, "utf8");
    expect(written).toMatch(/^\d+\n$/);
    return Number(written);
  };
  return { start, giveUp, readPid };
}

test("a start that is given up ends the app that doesn't listen yet", async () => {
  const { start, giveUp, readPid } = hangingApp();
  const failing = expect(start()).rejects.toThrow(/^demo-model ended \(SIGTERM\)/);
  const pid = await eventually(readPid);
  giveUp.abort();
  await failing;
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});

test("a start that was given up before launches nothing", async () => {
  const { start, giveUp, readPid } = hangingApp();
  giveUp.abort();
  await expect(start()).rejects.toThrow("aborted");
  expect(readPid).toThrow("ENOENT");
});

test("an app whose stop has faulty settings isn't launched", async () => {
  const { start, readPid } = hangingApp();
  await expect(start({ SHUTDOWN_TIMEOUT_MS: "soon" })).rejects.toThrow(PartError);
  expect(readPid).toThrow("ENOENT");
});
