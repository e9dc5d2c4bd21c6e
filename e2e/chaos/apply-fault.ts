/** How each fault begins and ends. */
import { eventually, pause } from "@adrelay/testkit";
import type { Redis } from "ioredis";
import type { ChaosApp } from "./chaos-app.ts";
import { eraseInTurn } from "./erase-in-turn.ts";
import { APP_IDS, type AppId, type Fault, GATEWAY_IDS, type RedisFault } from "./fault.ts";
import type { ChaosStack } from "./stack.ts";

/** Keys that were rotated away. */
const STALE_KEYS = { ACME_KEY: "old-key-of-acme", GLOBE_KEY: "old-key-of-globe" };

/** Begins a fault, waits, and ends it. Resolves when everything works again, also what has to be restarted. */
export async function applyFault(stack: ChaosStack, fault: Fault, durationMs: number): Promise<void> {
  switch (fault.kind) {
    case "kill":
      return whileDown(appOf(stack, fault.app), (app) => app.crash(), durationMs);
    case "freeze": {
      const app = appOf(stack, fault.app);
      app.freeze();
      await pause(durationMs);
      return app.thaw();
    }
    case "rolling_restart":
      return restartInTurn(stack, fault.everyMs, durationMs);
    case "clock_skew": {
      const app = appOf(stack, fault.app);
      await app.stop();
      await app.start({ skewMs: fault.skewMs });
      await pause(durationMs);
      return whileDown(app, (one) => one.stop(), 0);
    }
    case "stale_key": {
      const app = appOf(stack, fault.app);
      await app.stop();
      await app.start({ env: STALE_KEYS });
      await pause(durationMs);
      return whileDown(app, (one) => one.stop(), 0);
    }
    case "reload":
      return rotateKeys(stack, durationMs);
    case "erase":
      return eraseInTurn(stack, fault.pauseMs, durationMs);
    case "redis":
      return applyToRedis(stack, fault.how, durationMs);
    case "link_cut":
      return stack.link(fault.app, fault.end).cut();
    case "link_swallow":
      // The other end stays silent forever: only a new connection helps.
      stack.link(fault.app, fault.end).swallow();
      return pause(durationMs);
    case "link_delay": {
      const link = stack.link(fault.app, fault.end);
      link.setReplyDelay(fault.delayMs);
      await pause(durationMs);
      return link.setReplyDelay(0);
    }
    case "provider": {
      const { accounts, how, share } = fault;
      const setFault = (active: Parameters<ChaosStack["provider"]["setFault"]>[1]) => {
        for (const account of accounts) {
          stack.provider.setFault(account, active);
        }
      };
      setFault({ how, share });
      await pause(durationMs);
      return setFault(undefined);
    }
    default:
      fault satisfies never;
  }
}

/** The files of all apps get new keys. Those of the gateways are broken for a while, which must change nothing. */
async function rotateKeys(stack: ChaosStack, durationMs: number): Promise<void> {
  const { publishers, publishersFileOf } = stack;
  await untilReloaded(stack, publishers.allowNext());
  publishers.useNext();
  publishers.breakFiles(new Set(GATEWAY_IDS.map(publishersFileOf)));
  // One gateway looks at once, and the other one notices it. Calls by the old keys end meanwhile.
  appOf(stack, "gateway-1").hangUp();
  await pause(durationMs);
  await untilReloaded(stack, publishers.endOld());
}

/** Resolves once both gateways have taken one of these files. */
async function untilReloaded({ logs }: ChaosStack, digests: readonly string[]): Promise<void> {
  const isReloaded = (app: AppId) => digests.includes(logs.reloaded.get(app) ?? "");
  await eventually(() => {
    const missing = GATEWAY_IDS.filter((app) => !isReloaded(app));
    if (missing.length > 0) {
      throw new NotReloadedError(missing.join());
    }
  });
}

/** A changed publishers' file was not taken. The message is the apps. */
class NotReloadedError extends Error {
  override readonly name = "NotReloadedError";
}

function appOf(stack: ChaosStack, id: AppId): ChaosApp {
  const app = stack.apps.get(id);
  if (app === undefined) {
    throw new RangeError(`there is no app ${id}`);
  }
  return app;
}

async function whileDown(
  app: ChaosApp,
  end: (app: ChaosApp) => Promise<void>,
  durationMs: number,
): Promise<void> {
  await end(app);
  await pause(durationMs);
  await app.start();
}

/** Restarts one app after the other: every `everyMs`, or later if the app before doesn't run again yet. */
async function restartInTurn(stack: ChaosStack, everyMs: number, durationMs: number): Promise<void> {
  const endsAtMs = performance.now() + durationMs;
  for (let turn = 0; performance.now() < endsAtMs; turn += 1) {
    const nextAtMs = performance.now() + everyMs;
    await whileDown(appOf(stack, APP_IDS[turn % APP_IDS.length] ?? "worker-1"), (app) => app.stop(), 0);
    await pause(Math.max(Math.min(nextAtMs, endsAtMs) - performance.now(), 0));
  }
}

async function applyToRedis(
  { redis, admin }: ChaosStack,
  how: RedisFault,
  durationMs: number,
): Promise<void> {
  switch (how) {
    case "kill":
      await redis.crash();
      await pause(durationMs);
      return redis.restart();
    case "restart":
      await redis.stop();
      await pause(durationMs);
      return redis.restart();
    case "freeze":
      await redis.freeze();
      await pause(durationMs);
      return redis.thaw();
    case "readonly":
      // A replica without a reachable master keeps its data and refuses writes.
      return between(admin, ["REPLICAOF 127.0.0.1 1"], ["REPLICAOF NO ONE"], durationMs);
    case "oom":
      return between(admin, ["CONFIG SET maxmemory 1"], ["CONFIG SET maxmemory 0"], durationMs);
    case "maxclients":
      return between(
        admin,
        ["CONFIG SET maxclients 1", "CLIENT KILL TYPE normal SKIPME yes", "CLIENT KILL TYPE pubsub"],
        ["CONFIG SET maxclients 10000"],
        durationMs,
      );
    default:
      how satisfies never;
  }
}

async function between(
  admin: Redis,
  begin: readonly string[],
  end: readonly string[],
  durationMs: number,
): Promise<void> {
  await runLines(admin, begin);
  await pause(durationMs);
  await runLines(admin, end);
}

async function runLines(admin: Redis, lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    const [name = "", ...args] = line.split(" ");
    await admin.call(name, ...args);
  }
}
