/** Each inside of ioredis that src/ioredis/ reaches into. A failure here says what an upgrade of ioredis has changed. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { manifestsThatName } from "@adrelay/testkit";
import { Command, Redis } from "ioredis";
import installed from "ioredis/package.json" with { type: "json" };
import { pino } from "pino";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { connectRedis, guardRedis, type RedisRole } from "../src/index.ts";
import { waitForRedis } from "../src/redis.ts";

const log = pino({ level: "silent" });
let server: TestRedis;

beforeEach(async () => {
  server = await startTestRedis();
});
afterEach(() => server.dispose());

function connect(role: RedisRole): Redis {
  const redis = connectRedis(server.url, role, log);
  onTestFinished(() => redis.disconnect());
  return redis;
}

test("the installed ioredis is the version that the folder was written for", () => {
  expect(installed.version).toBe(manifest.dependencies.ioredis);
  const readme = readFileSync(new URL("../src/ioredis/README.md", import.meta.url), "utf8");
  expect(readme).toContain(`Written for ioredis ${installed.version}.`);
});

test("every package pins exactly this ioredis", () => {
  const pins = manifestsThatName("ioredis");
  expect(pins.length).toBeGreaterThan(3);
  expect(pins.filter(({ range }) => range !== installed.version)).toEqual([]);
});

test("a command is in the command queue from its sending until its answer", async () => {
  const redis = connect("request");
  await guardRedis(redis, { mode: "warn" }, log);
  expect(redis.commandQueue.length).toBe(0);
  const command = new Command("echo", ["a text"], { replyEncoding: "utf8" });
  const reply = redis.sendCommand(command);
  expect(redis.commandQueue.length).toBe(1);
  expect(redis.commandQueue.peekAt(0)?.command).toBe(command);
  expect(command.isSettled).toBe(false);
  expect(await reply).toBe("a text");
  expect(command.isSettled).toBe(true);
  expect(redis.commandQueue.length).toBe(0);
});

test("a script lets go of its arguments once they are written, and gets its answer", async () => {
  const redis = connect("request");
  await guardRedis(redis, { mode: "warn" }, log);
  const reply = redis.eval("return ARGV[1]", 0, "a text");
  expect(redis.commandQueue.peekAt(0)?.command.args).toEqual([]);
  expect(await reply).toBe("a text");
  redis.defineCommand("twice", { numberOfKeys: 0, lua: "return ARGV[1] .. ARGV[1]" });
  const run = () => redis.call("script", "flush").then(() => Reflect.get(redis, "twice").call(redis, "ab"));
  expect([await run(), await run()]).toEqual(["abab", "abab"]);
});

test("every command goes through sendCommand, also one of a pipeline", async () => {
  const redis = connect("request");
  await guardRedis(redis, { mode: "warn" }, log);
  const sent: string[] = [];
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (...args) => {
    sent.push(args[0].name);
    return send(...args);
  };
  await redis.set("k", "v");
  await redis.pipeline().get("k").incr("n").exec();
  await redis.multi().get("k").exec();
  expect(sent).toEqual(["set", "get", "incr", "multi", "get", "exec"]);
});

test("a rejected command keeps its place, so that its late answer goes to no other command", async () => {
  const redis = connect("request");
  await guardRedis(redis, { mode: "warn" }, log);
  const early = redis.echo("early");
  redis.commandQueue.peekAt(0)?.command.reject(new TypeError("rejected"));
  const late = redis.echo("late");
  await expect(early).rejects.toThrow("rejected");
  expect(await late).toBe("late");
});

test("ioredis rejects waiting commands on a refused connection, and ours doesn't", async () => {
  const admin = connect("subscriber");
  await admin.config("SET", "requirepass", "another");
  const plain = new Redis(server.url, { maxRetriesPerRequest: null });
  onTestFinished(() => plain.disconnect());
  plain.on("error", () => {});
  await expect(plain.echo("a text")).rejects.toThrow("NOAUTH");
  const waiting = connect("worker");
  const isTurnedDown = new Promise((resolve) => waiting.once("error", resolve));
  const reply = waiting.echo("a text");
  await isTurnedDown;
  await admin.config("SET", "requirepass", "");
  expect(await reply).toBe("a text");
});

test("ioredis uses database 0 instead of one that Redis lacks, and ours is never ready", async () => {
  const plain = new Redis(`${server.url}/99`);
  onTestFinished(() => plain.disconnect());
  plain.on("error", () => {});
  await plain.set("k", "v");
  expect(await connect("subscriber").get("k")).toBe("v");
  for (const role of ["request", "worker", "subscriber"] as const) {
    const ours = connectRedis(`${server.url}/99`, role, log);
    onTestFinished(() => ours.disconnect());
    expect(await waitForRedis(ours, 5000)).toMatchObject({
      kind: "away",
      error: { message: expect.stringContaining("DB index") },
    });
  }
});

test("a refused INFO is answered in its place, and a duplicate of a worker's connection does the same", async () => {
  await connect("subscriber").call("ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-info");
  const url = server.url.replace("redis://", "redis://poor:secret@");
  const worker = connectRedis(url, "worker", log);
  const copy = worker.duplicate();
  for (const redis of [connectRedis(url, "request", log), worker, copy]) {
    onTestFinished(() => redis.disconnect());
    await waitForRedis(redis, 5000);
    expect(await redis.info()).toContain("redis_version:6.2.0");
  }
});

test("a subscription that is refused when it is renewed ends nothing", async () => {
  const admin = connect("subscriber");
  await admin.call("ACL", "SETUSER", "hearer", "on", ">secret", "~*", "resetchannels", "&heard", "+@all");
  const hearer = connectRedis(server.url.replace("redis://", "redis://hearer:secret@"), "subscriber", log);
  onTestFinished(() => hearer.disconnect());
  await hearer.subscribe("heard");
  const isBack = once(hearer, "ready");
  await admin.call("ACL", "SETUSER", "hearer", "resetchannels");
  await isBack;
  await expect(hearer.subscribe("heard")).rejects.toThrow(/NOPERM|No permissions/);
});
