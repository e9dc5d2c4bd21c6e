/** Each inside of BullMQ that src/bullmq/ reaches into. A failure here says what an upgrade of BullMQ has changed. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { eventually, manifestsThatName } from "@adrelay/testkit";
import {
  createRedisBackend,
  ErrorCode,
  type Job,
  type JobJson,
  type Processor,
  Queue,
  type RedisQueueBackend,
  raw2NextJobData,
  Worker,
} from "bullmq";
import installed from "bullmq/package.json" with { type: "json" };
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import manifest from "../package.json" with { type: "json" };
import { defineScripts } from "../src/bullmq/define-scripts.ts";
import { ARGS_AT, COMPLETE_KEY_COUNT, JOB_KEY_AT } from "../src/bullmq/job-scripts.ts";
import { makeReturnJobs, RETURN_JOBS_KEY_COUNT } from "../src/bullmq/return-jobs.ts";
import { fetchesJob, loadShippedScript, loadShippedScripts } from "../src/bullmq/shipped-scripts.ts";
import { ScriptLibrary } from "../src/redis/scripts.ts";
import { openTestRedis } from "./store-fixture.ts";

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });

const SCRIPTS = [
  {
    name: "moveToFinished",
    keyCount: COMPLETE_KEY_COUNT,
    packed: [ARGS_AT.options],
  },
  { name: "moveStalledJobsToWait", keyCount: RETURN_JOBS_KEY_COUNT, packed: [] },
] as const;

function openQueue(): Queue {
  const queue = new Queue("insides", { connection: redis, prefix: randomUUID() });
  onTestFinished(() => queue.close());
  return queue;
}

/** What a worker of BullMQ's own has called, in this order. */
type Call =
  | { readonly kind: "move_to_active" }
  | { readonly kind: "create_job"; readonly json: JobJson; readonly jobId: string }
  | { readonly kind: "move_to_completed"; readonly args: readonly unknown[]; readonly result: unknown };

/** BullMQ's worker, overridden in the places where ours is. It records what happens there, and changes nothing. */
function work(queue: Queue, run: Processor) {
  const calls: Call[] = [];
  class RecordingWorker extends Worker {
    protected override createJob(json: JobJson, jobId: string): Job {
      calls.push({ kind: "create_job", json, jobId });
      return super.createJob(json, jobId);
    }

    protected override moveToActive(...args: Parameters<Worker["moveToActive"]>): Promise<Job> {
      calls.push({ kind: "move_to_active" });
      return super.moveToActive(...args);
    }
  }
  const worker = new RecordingWorker(
    queue.name,
    run,
    { connection: redis, prefix: queue.opts.prefix ?? "", removeOnComplete: { count: 0 } },
    (name, options, connections) => {
      const backend: RedisQueueBackend = createRedisBackend(name, options, connections);
      const moveToCompleted = backend.moveToCompleted.bind(backend);
      backend.moveToCompleted = async (...args) => {
        const completed = await moveToCompleted(...args);
        calls.push({ kind: "move_to_completed", args, result: completed.result });
        return completed;
      };
      return backend;
    },
  );
  onTestFinished(() => worker.close());
  return { worker, calls };
}

test("the installed BullMQ is the version that the folder was written for", () => {
  expect(installed.version).toBe(manifest.dependencies.bullmq);
  const readme = readFileSync(new URL("../src/bullmq/README.md", import.meta.url), "utf8");
  expect(readme).toContain(`Written for BullMQ ${installed.version}.`);
});

test("every package pins exactly this BullMQ", () => {
  const pins = manifestsThatName("bullmq");
  expect(pins.length).toBeGreaterThan(1);
  expect(pins.filter(({ range }) => range !== installed.version)).toEqual([]);
});

test.each(SCRIPTS)("the module of BullMQ's scripts has $name, with $keyCount keys", ({ name, keyCount }) => {
  expect(loadShippedScript(name, keyCount)).toContain(`KEYS[${keyCount}]`);
  expect(() => loadShippedScript(name, keyCount + 1)).toThrow();
});

/** A script without its comments, in which Lua code is mentioned as well. */
function codeOf(lua: string): string {
  return lua.replaceAll(/--\[\[[\s\S]*?\]\]|--.*/g, "");
}

test.each(SCRIPTS)("$name unpacks its packed arguments by cmsgpack.unpack", ({ name, keyCount, packed }) => {
  const shipped = codeOf(loadShippedScript(name, keyCount));
  const unpacked = [...shipped.matchAll(/cmsgpack\.unpack\(ARGV\[(\d+)\]\)/g)].map(([, at]) => Number(at));
  expect(unpacked).toEqual(packed);
});

test("moveToCompletedArgs has the job's key and what differs by job in the places that our script fills", () => {
  const queue = openQueue();
  const { worker } = work(queue, async () => {});
  const backend = worker.backend as RedisQueueBackend;
  const job: Parameters<RedisQueueBackend["moveToCompletedArgs"]>[0] = worker["createJob"](
    { id: "the-job", name: "n", data: "{}" } as JobJson,
    "the-job",
  );
  const fetching = backend.moveToCompletedArgs(job, "null", { count: 0 }, "the-token", true);
  const stopping = backend.moveToCompletedArgs(job, "null", { count: 0 }, "the-token", false);
  const argOf = (command: readonly unknown[], at: number) => command[COMPLETE_KEY_COUNT + at - 1];
  expect(fetching[JOB_KEY_AT - 1]).toBe(queue.toKey("the-job"));
  expect(fetching.slice(0, COMPLETE_KEY_COUNT).filter((key) => String(key).includes("the-job"))).toHaveLength(
    1,
  );
  expect(argOf(fetching, ARGS_AT.jobId)).toBe("the-job");
  expect(Math.abs(Number(argOf(fetching, ARGS_AT.timestamp)) - Date.now())).toBeLessThan(5000);
  expect([argOf(fetching, ARGS_AT.fetchNext), argOf(stopping, ARGS_AT.fetchNext)]).toEqual([1, 0]);
  expect(String(argOf(fetching, ARGS_AT.options))).toContain("the-token");
});

test("a worker fetches by moveToActive first, and then by moveToCompleted with the arguments that ours reads", async () => {
  const queue = openQueue();
  await queue.addBulk(["first", "second"].map((name) => ({ name, data: { text: name } })));
  const results = [{ answer: 1 }, { answer: 2 }];
  const { calls, worker } = work(queue, async (job) => results[job.name === "first" ? 0 : 1]);
  await eventually(() => expect(calls.filter(({ kind }) => kind === "move_to_completed")).toHaveLength(2));
  await worker.close();
  const created = calls.filter((call) => call.kind === "create_job");
  const [completed, last] = calls.filter((call) => call.kind === "move_to_completed");
  expect(calls.slice(0, 4).map(({ kind }) => kind)).toEqual([
    "move_to_active",
    "create_job",
    "move_to_completed",
    "create_job",
  ]);
  const [job, result, , token, fetchNext] = completed?.args ?? [];
  expect(job).toMatchObject({ name: "first", id: created[0]?.jobId, token });
  expect([token, fetchNext]).toEqual([expect.any(String), true]);
  // The handler's result itself, and the fetched job's JSON itself: ours puts something into each.
  expect(result).toBe(results[0]);
  const [json, nextId] = z.array(z.unknown()).parse(completed?.result);
  expect(created[1]?.json).toBe(json);
  expect([nextId, created[1]?.json.data]).toEqual([created[1]?.jobId, '{"text":"second"}']);
  expect(last?.result).toEqual(expect.not.arrayContaining([expect.objectContaining({ name: "second" })]));
});

test("a job made from data that aren't JSON raises a SyntaxError", () => {
  const { worker } = work(openQueue(), async () => {});
  const json = { id: "1", name: "n", data: '{"a":1}' } as JobJson;
  expect(() => worker["createJob"]({ ...json, data: "no json" }, "1")).toThrow(SyntaxError);
  expect(worker["createJob"](json, "1").data).toEqual({ a: 1 });
});

test("raw2NextJobData makes a fetched job of a reply, and nothing of an empty one", () => {
  const [job, ...rest] = raw2NextJobData([["name", "hash", "data", '{"v":1}'], "the-job", 0, 5]);
  expect(job).toMatchObject({ name: "hash", data: '{"v":1}' });
  expect(rest).toEqual(["the-job", 0, 5]);
  expect(raw2NextJobData([0, 0, 0, 0])[0]).toBeFalsy();
});

test("finishedErrors makes an error with the script's code, and a backend says whether it closes", async () => {
  const { worker } = work(openQueue(), async () => {});
  const backend = worker.backend as RedisQueueBackend;
  const error = backend.finishedErrors({
    code: ErrorCode.JobLockNotExist,
    jobId: "the-job",
    command: "moveToFinished",
    state: "active",
  });
  expect(error).toMatchObject({ code: -2, message: expect.stringContaining("the-job") });
  expect([worker.closing, backend.closing]).toEqual([undefined, undefined]);
  await worker.close();
  expect(worker.closing).toBeDefined();
  expect(backend.closing).toBeDefined();
});

test("a job is a hash, a running one is in the list `active`, a failed one in the sorted set `failed`", async () => {
  const queue = openQueue();
  const { id = "" } = await queue.add("only", {});
  expect(await redis.hget(queue.toKey(id), "name")).toBe("only");
  const place = Promise.withResolvers<unknown>();
  const { worker } = work(queue, async () => {
    place.resolve(await redis.lpos(queue.toKey("active"), id));
    throw new TypeError("failed");
  });
  expect(await place.promise).toBe(0);
  await eventually(async () => expect(await redis.zscore(queue.toKey("failed"), id)).not.toBeNull());
  await worker.close();
});

test("the lock beside a running job and the mark of a search for stalled jobs have an end", async () => {
  const queue = openQueue();
  const { id = "" } = await queue.add("only", {});
  const running = Promise.withResolvers<void>();
  const { worker } = work(queue, () => running.promise);
  const lastMs = async (name: string) => redis.pttl(queue.toKey(name));
  await eventually(async () => expect(await lastMs(`${id}:lock`)).toBeGreaterThan(0));
  await eventually(async () => expect(await lastMs("stalled-check")).toBeGreaterThan(0));
  running.resolve();
  await eventually(async () => expect(await redis.exists(queue.toKey(`${id}:lock`))).toBe(0));
  await worker.close();
});

test("jobs of the list `wait` are taken first, then those of the sorted set `prioritized` by their score only", async () => {
  const queue = openQueue();
  await queue.addBulk(["second", "fourth", "third", "first"].map((name) => ({ name, data: {} })));
  const ids = await redis.lrange(queue.toKey("wait"), 0, -1);
  const [, third = "", fourth = "", second = ""] = ids;
  await redis.ltrim(queue.toKey("wait"), 0, 0);
  await redis.zadd(queue.toKey("prioritized"), 7, third, 8, fourth, 6, second);
  expect(await queue.getJobCounts("waiting", "prioritized")).toEqual({ waiting: 1, prioritized: 3 });
  const taken: string[] = [];
  const { worker } = work(queue, async ({ name }) => taken.push(name));
  await eventually(() => expect(taken).toHaveLength(4));
  expect(taken).toEqual(["first", "second", "third", "fourth"]);
  await worker.close();
});

test("a job that is made from its id only can be retried", async () => {
  const queue = openQueue();
  const { id = "" } = await queue.add("only", { text: "kept" });
  const { worker } = work(queue, async () => {
    throw new TypeError("failed");
  });
  await eventually(async () => expect(await queue.getFailedCount()).toBe(1));
  await worker.close();
  await new worker["Job"](queue, "", {}, {}, id).retry("failed", {
    resetAttemptsMade: true,
    resetAttemptsStarted: true,
  });
  expect(await queue.getJob(id)).toMatchObject({ name: "only", data: { text: "kept" }, attemptsMade: 0 });
  await expect(new worker["Job"](queue, "", {}, {}, "none").retry("failed")).rejects.toMatchObject({
    code: ErrorCode.JobNotExist,
  });
});

test("moveStalledJobsToWaitArgs has the keys, the limit, the prefix, a time and an interval", () => {
  const queue = openQueue();
  const { worker } = work(queue, async () => {});
  const { keys, jobPrefix } = makeReturnJobs(queue);
  const { maxStalledCount, stalledInterval } = worker.opts;
  expect((worker.backend as RedisQueueBackend)["moveStalledJobsToWaitArgs"]()).toEqual([
    ...keys,
    maxStalledCount,
    jobPrefix,
    expect.any(Number),
    stalledInterval,
  ]);
});

test("the token of a job's lock begins with its worker's id, and a job has a lock while it runs", async () => {
  const queue = openQueue();
  const { id = "" } = await queue.add("only", {});
  const token = Promise.withResolvers<string | null>();
  const { worker } = work(queue, async () => token.resolve(await redis.get(`${queue.toKey(id)}:lock`)));
  expect(await token.promise).toMatch(new RegExp(`^${worker.id}:\\d+$`));
  await eventually(async () => expect(await redis.exists(`${queue.toKey(id)}:lock`)).toBe(0));
});

test("three scripts of BullMQ fetch jobs, and reply with their fields and values", () => {
  const fetching = Object.values(loadShippedScripts()).filter(({ content }) => fetchesJob(content));
  expect(fetching.map(({ name }) => name).toSorted()).toEqual([
    "moveToActive",
    "moveToDelayed",
    "moveToFinished",
  ]);
  for (const { content } of fetching) {
    expect(content.match(/HGETALL/g)).toHaveLength(1);
    expect(content).toContain('return {rcall("HGETALL", jobKey), jobId, 0, 0}');
  }
});

test("BullMQ keeps the scripts that a connection has, and those of ours run on a full Redis", async () => {
  defineScripts(redis, new ScriptLibrary());
  const queue = openQueue();
  await queue.add("name", {}, { jobId: "job" });
  const worker = new Worker(queue.name, null, { connection: redis, prefix: queue.opts.prefix ?? "" });
  onTestFinished(() => worker.close());
  await worker.waitUntilReady();
  await redis.config("SET", "maxmemory", "1");
  onTestFinished(async () => void (await redis.config("SET", "maxmemory", "0")));
  const job = await worker.getNextJob("token", { block: false });
  expect(job?.id).toBe("job");
  await job?.moveToDelayed(Date.now() + 60_000, "token");
  await job?.promote();
  expect(await queue.getJobCounts("wait")).toEqual({ wait: 1 });
});
