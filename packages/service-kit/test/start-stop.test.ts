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
  startHeartbeat,
} from "../src/index.ts";

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
      start: () => {
        part.start();
        lifecycle.onStop("the part", part.stop);
      },
      // A stop before any start has nothing to stop; the part itself must then refuse to start.
      stop: async () => {
        await lifecycle.stop(1000);
        await part.stop();
      },
      isRunning: part.isRunning,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

startStopSuite(
  "an HTTP server",
  () => new HttpServer(express(), { name: "a test", host: "127.0.0.1", port: 0 }),
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

startStopSuite(
  "the durability guard",
  async () => {
    const connection = connectRedis(redis.url, "request", log);
    connections.push(connection);
    // ioredis adds its own listeners until the connection is ready.
    await eventually(() => expect(connection.status).toBe("ready"));
    const guard = new DurabilityGuard(connection, "require", log);
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
  startHeartbeat(heartbeat, lifecycle);
  await eventually(() => expect(beats).toBeGreaterThan(0));
  await Promise.all([lifecycle.stop(1000), lifecycle.stop(1000)]);
  expect(leaves).toBe(1);
});

test("a server that was stopped can't be started again, and its port is free", async () => {
  const server = new HttpServer(express(), { name: "a test", host: "127.0.0.1", port: 0 });
  await server.start();
  const { port } = server;
  await server.stop();
  await server.start();
  const other = new HttpServer(express(), { name: "another", host: "127.0.0.1", port });
  await other.start();
  expect(other.port).toBe(port);
  await other.stop();
});

test("a server whose port is in use says where and why it can't listen", async () => {
  const first = new HttpServer(express(), { name: "the first", host: "127.0.0.1", port: 0 });
  await first.start();
  const second = new HttpServer(express(), { name: "the second", host: "127.0.0.1", port: first.port });
  await expect(second.start()).rejects.toThrow(
    `the second can't listen on 127.0.0.1:${first.port}: the port is in use`,
  );
  await second.stop();
  await first.stop();
});
