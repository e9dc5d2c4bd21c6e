import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { acknowledged, eventually } from "@adrelay/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { memoryOutbox, type Outbox, type StoredAcknowledgment } from "../src/index.ts";
import { type FileOutboxOptions, fileOutbox } from "../src/node/index.ts";
import { injectAd, setup } from "./client-fixture.ts";

const PROCESS = fileURLToPath(new URL("outbox-process.ts", import.meta.url));

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "adrelay-outbox-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function open(directory: string, options: Partial<FileOutboxOptions> = {}): Outbox {
  const outbox = fileOutbox({ directory, ...options });
  onTestFinished(() => outbox.close());
  return outbox;
}

const ack = (text = "text"): StoredAcknowledgment => ({ adResponseId: randomUUID(), text, storedAtMs: 1 });

const logsIn = (directory: string) => readdirSync(directory).map((name) => join(directory, name));

/** Everything that an outbox can take over. */
async function takeAll(outbox: Outbox): Promise<StoredAcknowledgment[]> {
  const all: StoredAcknowledgment[] = [];
  for (;;) {
    const left = await outbox.takeLeftOver();
    if (left.length === 0) {
      return all;
    }
    all.push(...left);
  }
}

test.each([
  ["memory", () => memoryOutbox()],
  ["files", () => open(newDirectory())],
])("an outbox in %s adds, removes what it has and hasn't, and closes", async (_name, make) => {
  const outbox = make();
  const [one, two] = [ack(), ack()];
  await Promise.all([outbox.add(one), outbox.add(two)]);
  await outbox.remove(one.adResponseId);
  await outbox.remove(one.adResponseId);
  await outbox.remove(randomUUID());
  expect(await outbox.takeLeftOver()).toEqual([]);
  await outbox.close();
});

test("what a closed outbox holds is the next one's at once, and only once", async () => {
  const directory = newDirectory();
  const first = open(directory);
  const given = [ack("a\nb"), ack("\u{1f600} \ud800"), ack("")];
  await Promise.all(given.map((one) => first.add(one)));
  await first.remove(given[0]?.adResponseId ?? "");
  await first.close();
  const [second, third] = [open(directory), open(directory)];
  const taken = await Promise.all([takeAll(second), takeAll(third)]);
  expect(taken.flat()).toEqual(given.slice(1));
});

test("files are readable by their user alone, and deleted when they hold nothing", async () => {
  const directory = join(newDirectory(), "deep", "outbox");
  const outbox = open(directory);
  const one = ack();
  await outbox.add(one);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(logsIn(directory).map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
  await outbox.remove(one.adResponseId);
  await outbox.close();
  expect(logsIn(directory)).toEqual([]);
});

test("a thousand that come and go leave little on the disk, beside one that stays", async () => {
  const directory = newDirectory();
  const outbox = open(directory, { sync: false, logBytesMax: 10_000 });
  const staying = ack("staying");
  await outbox.add(staying);
  for (let at = 0; at < 100; at += 1) {
    const some = Array.from({ length: 10 }, () => ack("x".repeat(500)));
    await Promise.all(some.map((one) => outbox.add(one)));
    await Promise.all(some.map((one) => outbox.remove(one.adResponseId)));
  }
  const bytes = logsIn(directory).reduce((sum, path) => sum + statSync(path).size, 0);
  // A thousand texts are 500 kB. At most nine logs remain, each of little more than its limit.
  expect(bytes).toBeLessThan(160_000);
  await outbox.close();
  expect(await takeAll(open(directory))).toEqual([staying]);
});

test("more than fits into the logs that there should be is stored, and kept", async () => {
  const directory = newDirectory();
  const outbox = open(directory, { sync: false, logBytesMax: 1000 });
  const given = Array.from({ length: 40 }, () => ack("x".repeat(500)));
  for (const one of given) {
    await outbox.add(one);
  }
  await outbox.close();
  const taken = new Set((await takeAll(open(directory))).map(({ adResponseId }) => adResponseId));
  expect(given.filter(({ adResponseId }) => !taken.has(adResponseId))).toEqual([]);
});

test("a log that can't be read isn't merged, and loses nothing", async () => {
  const directory = newDirectory();
  const outbox = open(directory, { sync: false, logBytesMax: 1000 });
  const staying: StoredAcknowledgment[] = [];
  const fillLog = async () => {
    const [stays, ...others] = Array.from({ length: 4 }, () => ack("x".repeat(500)));
    await Promise.all([stays, ...others].map((one) => one && outbox.add(one)));
    await Promise.all(others.map((one) => outbox.remove(one.adResponseId)));
    staying.push(...(stays ? [stays] : []));
  };
  await fillLog();
  const [path = ""] = logsIn(directory);
  renameSync(path, `${path}.aside`);
  symlinkSync(path, path);
  for (let at = 0; at < 20; at += 1) {
    await fillLog();
  }
  renameSync(`${path}.aside`, path);
  await outbox.close();
  expect((await takeAll(open(directory))).map(({ adResponseId }) => adResponseId).sort()).toEqual(
    staying.map(({ adResponseId }) => adResponseId).sort(),
  );
});

test("a long log that holds nothing is emptied", async () => {
  const directory = newDirectory();
  const outbox = open(directory, { sync: false });
  const some = Array.from({ length: 10 }, () => ack("x".repeat(10_000)));
  await Promise.all(some.map((one) => outbox.add(one)));
  expect(logsIn(directory).map((path) => statSync(path).size)[0]).toBeGreaterThan(100_000);
  await Promise.all(some.map((one) => outbox.remove(one.adResponseId)));
  expect(logsIn(directory).map((path) => statSync(path).size)).toEqual([0]);
});

test("a log whose owner only stood still is taken over, and the owner writes on elsewhere", async () => {
  const directory = newDirectory();
  const slow = open(directory);
  const [before, after] = [ack("before"), ack("after")];
  await slow.add(before);
  const [path = ""] = logsIn(directory);
  utimesSync(path, 0, 0);
  const other = open(directory);
  expect(await takeAll(other)).toEqual([before]);
  await slow.add(after);
  await slow.remove(before.adResponseId);
  // That of the other one, and a new one of the owner.
  expect(logsIn(directory)).toHaveLength(2);
  expect(logsIn(directory)).not.toContain(path);
  await slow.close();
  expect(await takeAll(other)).toEqual([after]);
});

test("lines that a crash cut short lose nothing around them", async () => {
  const directory = newDirectory();
  const outbox = open(directory);
  const [one, two] = [ack("one"), ack("two")];
  await outbox.add(one);
  appendFileSync(logsIn(directory)[0] ?? "", '\n{"v":1,"add":{"adResponseId":"cut');
  await outbox.add(two);
  await outbox.close();
  expect(await takeAll(open(directory))).toEqual([one, two]);
});

test("foreign files in the directory stay, and a log whose host is another waits for its lease", async () => {
  const directory = newDirectory();
  const outbox = open(directory);
  const one = ack();
  await outbox.add(one);
  const [path = ""] = logsIn(directory);
  const foreign = path.replace(/outbox-[0-9a-f]{12}/, "outbox-000000000000");
  renameSync(path, foreign);
  appendFileSync(join(directory, "notes.txt"), "mine");
  const other = open(directory, { leaseMs: 60_000 });
  expect(await takeAll(other)).toEqual([]);
  utimesSync(foreign, new Date(0), new Date(Date.now() - 61_000));
  expect(await takeAll(other)).toEqual([one]);
  expect(readFileSync(join(directory, "notes.txt"), "utf8")).toBe("mine");
});

test("a log that can't be taken over keeps no other one from it, and is reported", async () => {
  const directory = newDirectory();
  const outbox = open(directory);
  const one = ack();
  await outbox.add(one);
  await outbox.close();
  // A folder in place of a log can't be read. One comes before the log, one behind it.
  const broken = ["000000000000", "ffffffffffff"].map((host) =>
    join(directory, `outbox-${host}-1-1-${randomUUID()}.jsonl`),
  );
  for (const path of broken) {
    mkdirSync(path);
    utimesSync(path, 0, 0);
  }
  const other = open(directory);
  expect(await other.takeLeftOver()).toEqual([one]);
  await expect(other.takeLeftOver()).rejects.toMatchObject({ code: "EISDIR" });
});

test.each([0, 0.5])(
  "after kill -9 at any moment nothing stored is lost, with %d removed",
  async (removeShare) => {
    const directory = newDirectory();
    const children = [1, 2].map(() => spawn(process.execPath, [PROCESS, directory, String(removeShare)]));
    const lines: string[] = [];
    for (const child of children) {
      let rest = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const parts = (rest + text).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts);
      });
    }
    await eventually(() => expect(lines.length).toBeGreaterThan(200), 40_000);
    const ends = children.map((child) => new Promise((resolve) => child.once("close", resolve)));
    for (const child of children) {
      child.kill("SIGKILL");
    }
    await Promise.all(ends);
    const taken = new Set((await takeAll(open(directory))).map(({ adResponseId }) => adResponseId));
    const idsOf = (word: string) =>
      lines.filter((line) => line.startsWith(word)).map((line) => line.split(" ")[1] ?? "");
    const removed = new Set(idsOf("removed"));
    const stored = idsOf("stored");
    expect(stored.length).toBeGreaterThan(100);
    expect(stored.filter((id) => !removed.has(id) && !taken.has(id))).toEqual([]);
    // Of those that were removed, only the last few moments' may come back.
    expect([...taken].filter((id) => removed.has(id)).length).toBeLessThan(20);
  },
);

test("a client takes over and sends what an earlier one left", async () => {
  const directory = newDirectory();
  const first = await setup({ outbox: fileOutbox({ directory }), retry: { firstMs: 60_000, maxMs: 60_000 } });
  first.peer.onAcknowledge(() => ({ kind: "reset" }));
  const ads = [await injectAd(first.relay), await injectAd(first.relay)];
  await Promise.all(ads.map((ad, at) => ad.acknowledge(`text ${at}`)));
  expect(await first.relay.close({ timeoutMs: 50 })).toBe(2);
  expect(first.eventsOf("lost")).toEqual([]);
  const second = await setup({ outbox: fileOutbox({ directory }) });
  await eventually(() => expect(second.eventsOf("accepted")).toHaveLength(2));
  expect(ads.map(({ adResponseId }) => second.textsOf(adResponseId))).toEqual([["text 0"], ["text 1"]]);
  expect(second.eventsOf("left_over")).toMatchObject([{ count: 2 }]);
});

test("an ad whose process died during the answer is acknowledged with an empty text, others with theirs", async () => {
  const directory = newDirectory();
  const first = await setup({ outbox: fileOutbox({ directory }), retry: { firstMs: 60_000, maxMs: 60_000 } });
  first.peer.onAcknowledge(() => ({ kind: "reset" }));
  const [open, ended] = [await injectAd(first.relay), await injectAd(first.relay)];
  await ended.acknowledge("text");
  await first.relay.close({ timeoutMs: 50 });
  const second = await setup({ outbox: fileOutbox({ directory }) });
  await eventually(() => expect(second.eventsOf("accepted")).toHaveLength(2));
  expect([open, ended].map(({ adResponseId }) => second.textsOf(adResponseId))).toEqual([[""], ["text"]]);
});

test("an answer that still runs at close stays its client's own, with its text", async () => {
  const directory = newDirectory();
  const first = await setup({ outbox: fileOutbox({ directory }) });
  const ad = await injectAd(first.relay);
  const closing = first.relay.close({ timeoutMs: 20_000 });
  const second = await setup({ outbox: fileOutbox({ directory }) });
  void ad.acknowledge("text");
  expect(await closing).toBe(0);
  expect(first.textsOf(ad.adResponseId)).toEqual(["text"]);
  await second.relay.close();
  expect(second.events).toEqual([]);
  expect(logsIn(directory)).toEqual([]);
});

test("the text of an ad replaces its open entry, also in another log", async () => {
  const directory = newDirectory();
  const outbox = open(directory, { logBytesMax: 200 });
  const one = ack("text");
  await outbox.add({ ...one, text: "", isOpen: true });
  await outbox.add(ack("x".repeat(300)));
  await outbox.add(one);
  expect(logsIn(directory)).toHaveLength(2);
  await outbox.close();
  const taken = await takeAll(open(directory));
  expect(taken.filter(({ adResponseId }) => adResponseId === one.adResponseId)).toEqual([one]);
});

test("a program that forgets its ads doesn't pile them up in the outbox", async () => {
  const stored: string[] = [];
  const counting: Outbox = {
    ...memoryOutbox(),
    isDurable: true,
    add: async ({ adResponseId }) => void stored.push(adResponseId),
  };
  const { relay } = await setup({ outbox: counting, pendingMax: 2 });
  const ads = [await injectAd(relay), await injectAd(relay), await injectAd(relay)];
  expect(stored).toEqual(ads.slice(0, 2).map(({ adResponseId }) => adResponseId));
});

test("an ad whose answer still runs isn't left over, also if its log was", async () => {
  const left = Promise.withResolvers<readonly StoredAcknowledgment[]>();
  const answers = [left.promise];
  const takeLeftOver = () => answers.shift() ?? Promise.resolve([]);
  const outbox = { ...memoryOutbox(), isDurable: true, takeLeftOver };
  const { relay, eventsOf, textsOf } = await setup({ outbox });
  const ad = await injectAd(relay);
  const other = ack("other");
  left.resolve([{ ...other, adResponseId: ad.adResponseId, text: "", isOpen: true }, other]);
  await eventually(() => expect(textsOf(other.adResponseId)).toEqual(["other"]));
  await ad.acknowledge("text");
  expect(textsOf(ad.adResponseId)).toEqual(["text"]);
  expect(eventsOf("accepted")).toHaveLength(2);
});

test("what an outbox takes over after a long while is sent", async () => {
  const left = Promise.withResolvers<readonly StoredAcknowledgment[]>();
  const answers = [left.promise, Promise.resolve([])];
  const takeLeftOver = () => answers.shift() ?? Promise.resolve([]);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { eventsOf, textsOf } = await setup({
    outbox: { ...memoryOutbox(), isDurable: true, takeLeftOver },
  });
  vi.advanceTimersByTime(6000);
  vi.useRealTimers();
  const one = ack("text");
  left.resolve([one]);
  await eventually(() => expect(eventsOf("accepted")).toHaveLength(1));
  expect(textsOf(one.adResponseId)).toEqual(["text"]);
  expect(eventsOf("outbox_failed")).toEqual([]);
});

test("what an outbox stores while close runs out of time isn't lost", async () => {
  const slow = Promise.withResolvers<void>();
  const removed: string[] = [];
  const outbox: Outbox = {
    ...memoryOutbox(),
    isDurable: true,
    add: ({ isOpen }) => (isOpen === true ? Promise.resolve() : slow.promise),
    remove: async (adResponseId) => void removed.push(adResponseId),
    close: async () => slow.resolve(),
  };
  const { relay, eventsOf, peer } = await setup({ outbox });
  peer.onAcknowledge(() => ({ kind: "reset" }));
  await injectAd(relay);
  const ad = await injectAd(relay);
  const acknowledging = ad.acknowledge("text");
  expect(await relay.close({ timeoutMs: 20 })).toBe(2);
  expect(await acknowledging).toEqual({ kind: "waiting" });
  expect([eventsOf("lost"), removed]).toEqual([[], []]);
});

test("an outbox that can't write is reported, and the acknowledgment is sent from memory", async () => {
  const file = join(newDirectory(), "a file");
  appendFileSync(file, "");
  const { relay, peer, eventsOf } = await setup({ outbox: fileOutbox({ directory: file }) });
  peer.onAcknowledge((_post, count) => (count === 0 ? { kind: "reset" } : acknowledged()));
  const ad = await injectAd(relay);
  await ad.acknowledge("text");
  await eventually(() => expect(eventsOf("accepted")).toHaveLength(1));
  expect(eventsOf("outbox_failed").length).toBeGreaterThan(0);
});

test("what a durable outbox couldn't store is lost at the end, and reported", async () => {
  const broken: Outbox = {
    ...memoryOutbox(),
    isDurable: true,
    add: () => {
      throw new TypeError("the database is away");
    },
  };
  const { relay, peer, eventsOf } = await setup({
    outbox: broken,
    retry: { firstMs: 60_000, maxMs: 60_000 },
  });
  peer.onAcknowledge(() => ({ kind: "reset" }));
  const ad = await injectAd(relay);
  expect(await ad.acknowledge("text")).toEqual({ kind: "waiting" });
  expect(await relay.close({ timeoutMs: 100 })).toBe(1);
  // Once for the ad when it came, once for its text.
  const failed = { error: { message: "TypeError: the database is away" } };
  expect(eventsOf("outbox_failed")).toMatchObject([failed, failed]);
  expect(eventsOf("lost")).toMatchObject([{ adResponseId: ad.adResponseId, error: { code: "closed" } }]);
});
