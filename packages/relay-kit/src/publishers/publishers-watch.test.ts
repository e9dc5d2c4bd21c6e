import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestKey, openDirectory, publisherSources } from "@adrelay/provider";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PublishersWatch } from "./publishers-watch.ts";

let folder: string;
let file: string;
let keyFile: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "adrelay-watch-"));
  [file, keyFile] = [join(folder, "publishers.yaml"), join(folder, "provider-key")];
  writeFileSync(keyFile, "key-at-the-provider\n");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A file with one key for each of these publishers: `acme:a` is the publisher acme with the key `a`. */
const fileOf = (...entries: string[]) =>
  `publishers:\n${entries
    .map((entry) => entry.split(":"))
    .map(([id, key = ""]) => `  - { id: ${id}, name: ${id}, key_sha256: ["${digestKey(key)}"] }\n`)
    .join("")}`;

/** It has no blocks on disk. */
function writeHuge(path: string): void {
  writeFileSync(path, "");
  truncateSync(path, 3 * 1024 ** 3);
}

function open(text: string) {
  writeFileSync(file, text);
  return watch(file);
}

function watch(path: string) {
  const settings = {
    PUBLISHERS_FILE: path,
    PROVIDER_URL: "http://127.0.0.1:1",
    PROVIDER_API_KEY_FILE: keyFile,
    PROVIDER_API_KEY_HEADER: "X-Key",
  };
  const opened = openDirectory(publisherSources(settings, [], {}));
  if (opened.kind === "faulty") {
    throw new TypeError(JSON.stringify(opened.faults));
  }
  const lines: Record<string, unknown>[] = [];
  const write = (line: Record<string, unknown>) => void lines.push(line);
  const { directory } = opened;
  const registry = new Registry();
  const made = new PublishersWatch({ directory, registry, log: { info: write, error: write } });
  const lookTwice = async () => {
    await made.look();
    await made.look();
  };
  const publisherOf = (key: string) => directory.findKey(digestKey(key))?.publisher.id;
  return { made, directory, registry, lines, lookTwice, publisherOf };
}

test("a changed file is taken whole, and its line says what differs without a secret", async () => {
  const { directory, lines, lookTwice, publisherOf } = open(fileOf("acme:a", "beta:b"));
  writeFileSync(file, fileOf("acme:a2", "gamma:g"));
  await lookTwice();
  expect(["a", "a2", "b", "g"].map(publisherOf)).toEqual([undefined, "acme", undefined, "gamma"]);
  expect(directory.find("beta")).toBeUndefined();
  const id = (key: string) => digestKey(key).slice(0, 12);
  expect(lines).toMatchObject([
    {
      event: "publishers_reloaded",
      added: ["gamma"],
      removed: ["beta"],
      changed: [],
      keys_added: [`acme/${id("a2")}`, `gamma/${id("g")}`],
      keys_removed: [`acme/${id("a")}`, `beta/${id("b")}`],
    },
  ]);
  expect(JSON.stringify(lines)).not.toContain("key-at-the-provider");
});

test("a change is taken only after two looks found the same", async () => {
  const { made, publisherOf } = open(fileOf("acme:a"));
  const whole = fileOf("acme:a", "beta:b");
  writeFileSync(file, whole.slice(0, -30));
  await made.look();
  writeFileSync(file, whole);
  await made.look();
  expect(publisherOf("b")).toBeUndefined();
  await made.look();
  expect(publisherOf("b")).toBe("beta");
});

test("a faulty file is refused once with all its faults, and the old one stays in force", async () => {
  const { made, directory, lines, lookTwice, publisherOf } = open(fileOf("acme:a"));
  const before = made.state.digest;
  writeFileSync(file, `${fileOf("acme:a", "acme:b")}  - { id: x y, name: 7, key_sha256: [z] }\n`);
  await lookTwice();
  await lookTwice();
  expect(lines).toMatchObject([{ event: "publishers_refused", fault_count: 4 }]);
  expect(lines[0]?.["faults"]).toEqual([
    expect.stringContaining("publishers 3, id"),
    expect.stringContaining("publishers 3, name"),
    expect.stringContaining("publishers 3, key_sha256 1"),
    expect.stringContaining("acme: appears more than once"),
  ]);
  expect(made.state).toMatchObject({ digest: before, isValid: false });
  expect([publisherOf("a"), directory.current.length]).toEqual(["acme", 1]);
});

test.each([
  ["a pipe that nobody writes to", () => void execFileSync("mkfifo", [file]), "is not a file"],
  ["a folder", () => mkdirSync(file), "EISDIR"],
  ["a huge file", () => writeHuge(file), "is larger than 16777216 bytes"],
  ["a link to itself", () => symlinkSync(file, file), "ELOOP"],
])("%s in place of the file is refused, and the old one stays in force", async (_what, make, why) => {
  const { made, lines, lookTwice, publisherOf } = open(fileOf("acme:a"));
  rmSync(file);
  make();
  await lookTwice();
  made.onHangUp();
  const refused = { event: "publishers_refused", fault_count: 1, faults: [expect.stringContaining(why)] };
  expect(lines).toMatchObject([refused, refused]);
  expect(publisherOf("a")).toBe("acme");
  rmSync(file, { recursive: true });
  writeFileSync(file, fileOf("beta:b"));
  await lookTwice();
  expect(publisherOf("b")).toBe("beta");
});

test("a file that is gone changes nothing, and counts as valid once it is back", async () => {
  const { made, lines, registry, lookTwice, publisherOf } = open(fileOf("acme:a"));
  const valid = async () => (await registry.getSingleMetric("adrelay_publishers_file_valid")?.get())?.values;
  rmSync(file);
  await lookTwice();
  expect(publisherOf("a")).toBe("acme");
  expect(lines).toMatchObject([{ event: "publishers_refused", fault_count: 1 }]);
  expect(await valid()).toMatchObject([{ value: 0 }]);
  writeFileSync(file, fileOf("acme:a"));
  await lookTwice();
  expect(await valid()).toMatchObject([{ value: 1 }]);
  expect(made.state.isValid).toBe(true);
});

test("a file that is replaced by renaming another one is taken", async () => {
  const { lookTwice, publisherOf } = open(fileOf("acme:a"));
  const next = join(folder, "next");
  writeFileSync(next, fileOf("acme:a2"));
  renameSync(next, file);
  await lookTwice();
  expect([publisherOf("a"), publisherOf("a2")]).toEqual([undefined, "acme"]);
});

test("a file behind a link to a folder is taken when the link turns, as in a ConfigMap", async () => {
  const link = join(folder, "..data");
  const versions = ["1", "2"].map((version) => join(folder, version));
  for (const [at, version] of versions.entries()) {
    mkdirSync(version);
    writeFileSync(join(version, "publishers.yaml"), fileOf(`acme:a${at}`));
  }
  symlinkSync(versions[0] ?? "", link);
  const { lookTwice, publisherOf } = watch(join(link, "publishers.yaml"));
  symlinkSync(versions[1] ?? "", `${link}_tmp`);
  renameSync(`${link}_tmp`, link);
  await lookTwice();
  expect([publisherOf("a0"), publisherOf("a1")]).toEqual([undefined, "acme"]);
});

test("a new key in the file of a provider's key makes another account", async () => {
  const { directory, lines, lookTwice } = open(fileOf("acme:a"));
  const [before] = directory.accounts;
  writeFileSync(keyFile, "next-key\n");
  await lookTwice();
  expect(directory.find("acme")?.account.apiKey).toBe("next-key");
  expect(directory.accountOf("acme")?.id).not.toBe(before?.id);
  expect(lines).toMatchObject([{ event: "publishers_reloaded", changed: ["acme"], keys_added: [] }]);
});

test("SIGHUP reads the files at once, and says if nothing has changed", () => {
  const { made, lines, publisherOf } = open(fileOf("acme:a"));
  made.onHangUp();
  writeFileSync(file, fileOf("acme:a2"));
  made.onHangUp();
  expect(lines.map(({ event }) => event)).toEqual(["publishers_unchanged", "publishers_reloaded"]);
  expect(publisherOf("a2")).toBe("acme");
});

test("without any file there is nothing to reload", () => {
  const settings = {
    PROVIDER_URL: "http://127.0.0.1:1",
    PROVIDER_API_KEY: "k",
    PROVIDER_API_KEY_HEADER: "X-Key",
  };
  const opened = openDirectory(publisherSources(settings, ["a"], {}));
  const events: unknown[] = [];
  const write = ({ event }: Record<string, unknown>) => void events.push(event);
  if (opened.kind === "ok") {
    const log = { info: write, error: write };
    new PublishersWatch({ directory: opened.directory, registry: new Registry(), log }).onHangUp();
  }
  expect(events).toEqual(["nothing_to_reload"]);
});
