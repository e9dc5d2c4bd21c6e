/** The long-lived parts keep the contract of start and stop. */
import { createConnection } from "node:net";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually, pause } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import express from "express";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  connectRedis,
  DurabilityGuard,
  HttpServer,
  Lifecycle,
  Periodic,
  PeriodicHeartbeat,
  type RedisRole,
} from "../src/index.ts";
import { OtelTracing } from "../src/otel-tracing.ts";

const log = pino({ level: "silent" });

/** A task, and whether it is being run again and again. */
function makeTask() {
  let runs = 0;
  return {
    run: async () => {
      runs += 1;
    },
    isRunning: async () => {
      const before = runs;
      await pause(20);
      return runs > before;
    },
  };
}

function makePeriodic() {
  const task = makeTask();
  const periodic = new Periodic(task.run, 1, () => {});
  return { start: () => periodic.start(), stop: () => periodic.stop(), isRunning: task.isRunning };
}

startStopSuite("Periodic", makePeriodic, { isRunning: (part) => part.isRunning() });

startStopSuite(
  "a part of a lifecycle",
  () => {
    const lifecycle = new Lifecycle(log);
    const part = makePeriodic();
    return {
      start: () => lifecycle.start("the part", part),
      stop: () => lifecycle.stop(1000),
      isRunning: part.isRunning,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

startStopSuite(
  "an HTTP server",
  () => new HttpServer(express(), { name: "a test", host: "127.0.0.1", port: 0, log }),
  {
    isRunning: ({ port }) =>
      new Promise((resolve) => {
        const socket = createConnection(port, "127.0.0.1");
        socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
        socket.once("connect", () => socket.destroy());
      }),
  },
);

let redis: TestRedis;
const connections: { disconnect(): void }[] = [];
beforeAll(async () => {
  redis = await startTestRedis();
});
afterEach(() => {
  for (const connection of connections.splice(0)) {
    connection.disconnect();
  }
});
afterAll(() => redis.dispose());

/** A connection begins to connect when it is made, and ends when it is disconnected. */
function makeConnection(role: RedisRole) {
  const connection = connectRedis(redis.url, role, log);
  return {
    // Until it is connected, or has ended because a stop came first.
    start: async () => {
      if (connection.status !== "ready" && connection.status !== "end") {
        await new Promise((resolve) => connection.once("ready", resolve).once("end", resolve));
      }
    },
    stop: async () => {
      if (connection.status !== "end") {
        // Not `once` of node:events: it would reject if the handshake fails because of the stop.
        const ended = new Promise((resolve) => connection.once("end", resolve));
        connection.disconnect();
        await ended;
      }
    },
    isRunning: () => connection.status === "ready",
  };
}

for (const role of ["request", "worker", "subscriber"] as const) {
  startStopSuite(`a Redis connection of role ${role}`, () => makeConnection(role), {
    isRunning: (part) => part.isRunning(),
  });
}

startStopSuite("tracing", () => {
  const tracing = new OtelTracing("a test", log);
  return { start: () => tracing.startSpan({ name: "n", kind: "internal" }), stop: () => tracing.stop() };
});

startStopSuite(
  "the durability guard",
  async () => {
    const connection = connectRedis(redis.url, "request", log);
    connections.push(connection);
    // ioredis adds its own listeners until the connection is ready.
    await eventually(() => expect(connection.status).toBe("ready"));
    const guard = new DurabilityGuard(connection, { mode: "require" }, log);
    const listenersBefore = connection.listenerCount("ready");
    return {
      start: async () => {
        guard.start();
        await guard.check();
      },
      stop: () => guard.stop(),
      isRunning: () => connection.listenerCount("ready") > listenersBefore || guard.isDurable,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

startStopSuite(
  "a heartbeat",
  () => {
    const task = makeTask();
    const heartbeat = new PeriodicHeartbeat({ beat: task.run, leave: async () => {} }, 1);
    return { start: () => heartbeat.start(), stop: () => heartbeat.stop(), isRunning: task.isRunning };
  },
  { isRunning: (part) => part.isRunning() },
);

test("a heartbeat beats until its lifecycle stops, and then leaves once", async () => {
  let beats = 0;
  let leaves = 0;
  const lifecycle = new Lifecycle(log);
  const heartbeat = {
    beat: async () => {
      beats += 1;
    },
    leave: async () => {
      leaves += 1;
    },
  };
  const periodic = new PeriodicHeartbeat(heartbeat);
  await lifecycle.start("heartbeat", periodic);
  await eventually(() => expect(beats).toBeGreaterThan(0));
  await Promise.all([lifecycle.stop(1000), lifecycle.stop(1000), periodic.stop()]);
  expect(leaves).toBe(1);
});

test("a lifecycle that stops starts no further part", async () => {
  const lifecycle = new Lifecycle(log);
  const task = makeTask();
  await lifecycle.stop(1000);
  await lifecycle.start("late", new Periodic(task.run, 1, () => {}));
  expect(await task.isRunning()).toBe(false);
});

test("a server that was stopped can't be started again, and its port is free", async () => {
  const server = new HttpServer(express(), { name: "a test", host: "127.0.0.1", port: 0, log });
  await server.start();
  const { port } = server;
  await server.stop();
  await server.start();
  const other = new HttpServer(express(), { name: "another", host: "127.0.0.1", port, log });
  await other.start();
  expect(other.port).toBe(port);
  await other.stop();
});

test("a server whose port is in use says where and why it can't listen", async () => {
  const first = new HttpServer(express(), { name: "the first", host: "127.0.0.1", port: 0, log });
  await first.start();
  const second = new HttpServer(express(), { name: "the second", host: "127.0.0.1", port: first.port, log });
  await expect(second.start()).rejects.toThrow(
    `the second can't listen on 127.0.0.1:${first.port}: the port is in use`,
  );
  await second.stop();
  await first.stop();
});
