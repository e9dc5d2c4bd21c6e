/** What a restricted user of a real Redis may not do is named, by the line of rights in docs/operations.md. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { loadShippedScripts } from "../src/bullmq/shipped-scripts.ts";
import { loadMissingRights } from "../src/redis/rights.ts";
import { openTestRedis } from "./store-fixture.ts";

const { server, redis } = await openTestRedis();
const sourceFolder = fileURLToPath(new URL("../src/", import.meta.url));
const operations = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8");

/** The rules of the line `ACL SETUSER adrelay …` in the documentation, without the password. */
const documented = (/^ACL SETUSER adrelay on >PASSWORD (.*)$/m.exec(operations)?.[1] ?? "").split(" ");

let users = 0;
/** Connections of a new user with these rules. */
async function connectAs(rules: readonly string[]) {
  users += 1;
  const username = `user${users}`;
  await redis.call("ACL", "SETUSER", username, "on", ">secret", ...rules);
  const options = { username, password: "secret", enableReadyCheck: false, maxRetriesPerRequest: 1 };
  const [commands, subscriber] = [new Redis(server.url, options), new Redis(server.url, options)];
  onTestFinished(() => {
    commands.disconnect();
    subscriber.disconnect();
  });
  return { commands, subscriber };
}

async function forbiddenFor(rules: readonly string[]) {
  const { commands, subscriber } = await connectAs(rules);
  await once(subscriber, "ready");
  return loadMissingRights(commands, subscriber);
}

test("a user with the documented rights may do everything", async () => {
  expect(documented.length).toBeGreaterThan(5);
  expect(await forbiddenFor(documented)).toEqual({ needed: [], wanted: [] });
});

test("what a user lacks is named, each command", async () => {
  const lacking = ["-zadd", "-hset", "-evalsha", "-info", "-publish", "-bzpopmin", "-config"];
  expect(await forbiddenFor([...documented, ...lacking])).toEqual({
    needed: ["bzpopmin", "evalsha", "hset", "zadd"],
    wanted: ["config", "info", "publish"],
  });
});

test("without EVAL nothing else is known, and EVAL is named", async () => {
  await redis.script("FLUSH");
  expect((await forbiddenFor([...documented, "-eval"])).needed).toEqual(["eval"]);
});

test("a user without channels lacks the commands on them", async () => {
  const rules = documented.filter((rule) => !rule.startsWith("&"));
  // Before 7.0, a script may publish on any channel.
  expect((await forbiddenFor(rules)).wanted.filter((command) => command !== "publish")).toEqual([
    "subscribe",
  ]);
});

test("a user with keys of another name lacks every command on keys", async () => {
  const rules = documented.filter((rule) => !rule.startsWith("~"));
  expect((await forbiddenFor([...rules, "~other:*"])).needed.length).toBeGreaterThan(0);
});

test("nothing is left behind, and a full Redis or a replica is not a lack of rights", async () => {
  await redis.config("SET", "maxmemory", "1");
  expect(await loadMissingRights(redis)).toEqual({ needed: [], wanted: [] });
  await redis.config("SET", "maxmemory", "0");
  expect(await redis.exists("{adrelay:0}:rights")).toBe(0);
  await redis.replicaof("127.0.0.1", 1);
  expect(await loadMissingRights(redis)).toEqual({ needed: [], wanted: [] });
  await redis.replicaof("NO", "ONE");
});

test("every command that a script runs is tried", () => {
  const files = readdirSync(sourceFolder, { recursive: true, encoding: "utf8" });
  const ours = files
    .filter((file) => /\.(lua|ts)$/.test(file) && !file.includes("redis/rights."))
    .map((file) => readFileSync(sourceFolder + file, "utf8"));
  const USED =
    /^(?:add(?:Standard)?Job|moveTo(?:Active|Delayed|Finished)|moveStalled|extendLock|promote|reprocess|retry|removeJob|getCounts)/;
  const theirs = Object.values(loadShippedScripts()).flatMap(({ name, content }) =>
    USED.test(name) ? content : [],
  );
  const run = [...ours, ...theirs].flatMap((text) => [
    ...text.matchAll(/(?:redis\.p?call|rcall)\(["']([A-Z]+)["']/g),
  ]);
  const commands = new Set(run.map(([, command = ""]) => command.toLowerCase()));
  const [tried, asked] = ["lua", "ts"].map((kind) =>
    readFileSync(`${sourceFolder}redis/rights.${kind}`, "utf8"),
  );
  const isTried = (command: string) =>
    tried?.includes(`{'${command}'`) === true || asked?.includes(`forbids("${command}")`) === true;
  // A trial of these would do their work. That they are forbidden is found when they are due.
  expect([...commands].filter((command) => !isTried(command))).toEqual(["bgrewriteaof", "bgsave"]);
});

test("every command that is sent is tried", () => {
  const CONNECTION = ["call", "disconnect", "off", "on", "once", "unsubscribe"];
  const files = readdirSync(sourceFolder, { recursive: true, encoding: "utf8" });
  const sent = files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => [...readFileSync(sourceFolder + file, "utf8").matchAll(/\bredis\.([a-z]+)\(/g)])
    .map(([, command = ""]) => command);
  const tried = ["lua", "ts"]
    .map((kind) => readFileSync(`${sourceFolder}redis/rights.${kind}`, "utf8"))
    .join();
  const isTried = (command: string) =>
    tried.includes(`{'${command}'`) || tried.includes(`forbids("${command}")`);
  expect(sent).toContain("hscan");
  expect([...new Set(sent)].filter((one) => !CONNECTION.includes(one) && !isTried(one))).toEqual([]);
});
