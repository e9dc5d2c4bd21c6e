/** What the ad server's user of Redis may not do is named, by the line of rights in docs/operations.md. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { AppStartError, eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { loadMissingRights } from "../src/store/rights.ts";
import { callerOf, get, PROMPTS, startAdServer, type TestAdServer } from "./ad-server.ts";

const sourceFolder = fileURLToPath(new URL("../src/", import.meta.url));
const operations = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8");
/** The rules of the line `ACL SETUSER adserver …` in the documentation, without the password. */
const documented = (/^ACL SETUSER adserver on >PASSWORD (.*)$/m.exec(operations)?.[1] ?? "").split(" ");

let server: TestAdServer;
let redis: Redis;
beforeAll(async () => {
  server = await startAdServer();
  redis = new Redis(server.redis.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

let users = 0;
/** The URL of a new user with these rules. */
async function urlOfUser(rules: readonly string[]): Promise<string> {
  users += 1;
  await redis.call("ACL", "SETUSER", `user${users}`, "on", ">secret", ...rules);
  return server.redis.url.replace("redis://", `redis://user${users}:secret@`);
}

async function neededBy(rules: readonly string[]) {
  const limited = new Redis(await urlOfUser(rules), { enableReadyCheck: false, maxRetriesPerRequest: 1 });
  onTestFinished(() => limited.disconnect());
  return (await loadMissingRights(limited)).needed;
}

test("a user with the documented rights may do everything", async () => {
  expect(documented.length).toBeGreaterThan(5);
  expect(await neededBy(documented)).toEqual([]);
});

test("what a user lacks is named, each command", async () => {
  const lacking = ["-evalsha", "-hincrby", "-zadd"];
  expect(await neededBy([...documented, ...lacking])).toEqual(["evalsha", "hincrby", "zadd"]);
  expect(await neededBy([...documented, "-eval"])).toContain("eval");
});

test("a user with keys of another name lacks commands on keys", async () => {
  const rules = documented.map((rule) => rule.replace("~{adserver}:*", "~{adrelay:0}:*"));
  expect((await neededBy(rules)).length).toBeGreaterThan(0);
});

test("every command that is run or sent is tried", () => {
  const files = readdirSync(sourceFolder, { recursive: true, encoding: "utf8" })
    .filter(
      (file) => /\.(lua|ts)$/.test(file) && !file.includes("store/rights.") && !file.endsWith(".test.ts"),
    )
    .map((file) => readFileSync(sourceFolder + file, "utf8"));
  const run = files.flatMap((text) => [...text.matchAll(/redis\.p?call\('([A-Z]+)'/g)]);
  const sent = files.flatMap((text) => [...text.matchAll(/\b(?:redis|pipeline)\.([a-z]+)\(/g)]);
  const commands = new Set([...run, ...sent].map(([, command = ""]) => command.toLowerCase()));
  const tried = ["lua", "ts"]
    .map((kind) => readFileSync(`${sourceFolder}store/rights.${kind}`, "utf8"))
    .join();
  const isTried = (command: string) => tried.includes(`{'${command}'`) || tried.includes(`.${command}(`);
  expect(commands).toContain("hset");
  const OF_CONNECTIONS = ["call", "disconnect", "exec", "pipeline"];
  expect([...commands].filter((one) => !isTried(one) && !OF_CONNECTIONS.includes(one))).toEqual([]);
});

test("the ad server works with the documented rights, and doesn't start without one of them", async () => {
  const limited = await startAdServer({
    REDIS_URL: await urlOfUser(documented),
    RATE_LIMIT_PER_SECOND: "50",
  });
  onTestFinished(() => limited.dispose());
  const { id, product } = await callerOf(limited).served();
  expect((await callerOf(limited).acknowledge(id, product)).status).toBe(200);
  expect((await get(`${limited.opsUrl()}/readyz`)).status).toBe(200);

  const start = startAdServer({ REDIS_URL: await urlOfUser([...documented, "-zadd"]) });
  const error = await start.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AppStartError);
  expect((error as AppStartError).stderr).toContain("our user may not run zadd");
});

test("on a full Redis the ad server is ready, and on a replica it isn't", async () => {
  await redis.config("SET", "maxmemory", "1");
  expect((await get(`${server.opsUrl()}/readyz`)).body).toMatchObject({ status: "ready" });
  await redis.config("SET", "maxmemory", "0");
  await redis.replicaof("127.0.0.1", 1);
  const refused = await get(`${server.opsUrl()}/readyz`);
  expect([refused.status, refused.body["checks"]]).toEqual([503, { redis: "ok", redis_writes: "failing" }]);
  await redis.replicaof("NO", "ONE");
  await eventually(async () => expect((await get(`${server.opsUrl()}/readyz`)).status).toBe(200));
  expect((await callerOf(server).start(PROMPTS.ok)).status).toBe(200);
});
