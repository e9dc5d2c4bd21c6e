import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parseCatalogYaml, readCatalogText } from "./catalog-file.ts";
import { loadCatalog, loadCatalogOnThread } from "./load-catalog.ts";

const folder = mkdtempSync(join(tmpdir(), "adrelay-catalog-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function pathOf(): string {
  files += 1;
  return join(folder, `${files}.yaml`);
}
function fileOf(content: string | Buffer): string {
  const file = pathOf();
  writeFileSync(file, content);
  return file;
}

const AD = `- id: velmora-drift
  product_name: Velmora Drift
  advertiser: velmora
  category: running-shoes
  description: A trainer.
  keywords: [running shoes]
  landing_url: https://velmora.example/
  bid_cpm_micros: 4000000
  budget_micros: 4000000
`;

test.each([
  ["a byte order mark", `\ufeff${AD}`],
  ["line ends of Windows", AD.replaceAll("\n", "\r\n")],
  [
    "aliases",
    AD.replace("[running shoes]", "&k [running shoes]") +
      AD.replace("t\n", "t-2\n").replace("[running shoes]", "*k"),
  ],
])("a catalogue with %s is read", (_what, text) => {
  expect(loadCatalog(fileOf(text)).kind).toBe("ok");
});

/** Makes a file that can't be read as a catalogue. */
const UNREADABLE: readonly (readonly [what: string, make: () => string, why: string])[] = [
  ["a missing file", () => pathOf(), "no such file or directory (ENOENT)"],
  ["a folder", () => made((file) => mkdirSync(file)), "is a folder, not a file"],
  ["a fifo without a writer", () => made((file) => execFileSync("mkfifo", [file])), "is no regular file"],
  ["a circle of links", () => made((file) => symlinkSync(file, file)), "(ELOOP)"],
  ["a dangling link", () => made((file) => symlinkSync("nowhere", file)), "(ENOENT)"],
  ["a file as a folder", () => join(fileOf(""), "catalog.yaml"), "(ENOTDIR)"],
  ["a huge file", () => made(sparse), "is larger than 64 MiB"],
  ["a NUL byte", () => fileOf(AD.replace("trainer", "tra\0iner")), "has a NUL byte"],
  ["only NUL bytes, as after a crash", () => fileOf(Buffer.alloc(4096)), "has a NUL byte"],
  ["UTF-16", () => fileOf(Buffer.from(`\ufeff${AD}`, "utf16le")), "is in UTF-16; save it in UTF-8"],
  ["Latin-1", () => fileOf(Buffer.from(AD.replace("trainer", "sch\u00f6n"), "latin1")), "isn't in UTF-8"],
];

function made(make: (file: string) => void): string {
  const file = pathOf();
  make(file);
  return file;
}

function sparse(file: string): void {
  writeFileSync(file, "");
  truncateSync(file, 65 * 1024 * 1024);
}

test.each(UNREADABLE)("%s is one fault that names the file", async (_what, make, why) => {
  const file = make();
  const refusal = {
    kind: "faulty",
    faults: [{ path: "CATALOG_FILE", message: expect.stringContaining(why) }],
    mayPass: false,
  };
  const read = loadCatalog(file);
  expect(read).toEqual(refusal);
  expect(JSON.stringify(read)).toContain(`"${file} `);
  expect(await loadCatalogOnThread(file)).toEqual(refusal);
});

test("a socket is no file", async () => {
  const file = pathOf();
  const server = createServer().listen(file);
  expect(readCatalogText(file)).toMatchObject({ kind: "unreadable", mayPass: false });
  server.close();
});

test.skipIf(process.getuid?.() === 0)("a file without permission is unreadable until that changes", () => {
  const file = fileOf(AD);
  chmodSync(file, 0);
  expect(readCatalogText(file)).toMatchObject({
    why: "can't be read: permission denied (EACCES)",
    mayPass: false,
  });
});

/** On Linux, reading address 0 of a process's memory as a file is an error of input and output. */
test.skipIf(!existsSync("/proc/self/mem"))("an error of the disk may pass", () => {
  expect(loadCatalog("/proc/self/mem")).toEqual({
    kind: "faulty",
    faults: [{ path: "CATALOG_FILE", message: "/proc/self/mem can't be read: i/o error (EIO)" }],
    mayPass: true,
  });
});

const list = (member: string) => `[${Array.from({ length: 10 }, () => member).join(",")}]`;
const BOMB = Array.from({ length: 12 }, (_, n) => `- &a${n} ${list(n === 0 ? "1" : `*a${n - 1}`)}\n`).join(
  "",
);

test.each([
  ["a bomb of aliases", BOMB, 1, "more than 2,000,000 values"],
  ["a bomb in an ad", `${BOMB}${AD.replace("[running shoes]", "*a11")}`, 1, "more than 2,000,000 values"],
  ["a list that contains itself", "- &a [*a]\n", 1, "more than 2,000,000 values"],
  ["deep nesting", "[".repeat(100_000), 1, "nesting exceeded"],
  ["an open bracket", `${AD}- id: [`, 10, ""],
  ["nothing", "", 1, "the input is empty"],
])("YAML with %s is one fault with its place", (_what, text, line, message) => {
  expect(parseCatalogYaml(text)).toMatchObject({
    kind: "faulty",
    line,
    message: expect.stringContaining(message),
  });
});
