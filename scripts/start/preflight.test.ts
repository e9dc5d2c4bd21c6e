import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { absentRedis } from "./preflight.ts";

test("a REDIS_URL where something listens and never answers is reported in time", async () => {
  const silent = createServer((socket) => socket.on("error", () => {}));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void silent.close());
  const url = `redis://127.0.0.1:${Object(silent.address()).port}`;
  expect(await absentRedis({ REDIS_URL: url }, 100)).toEqual([
    "REDIS_URL: no Redis answers there; without this setting npm start runs its own Redis",
  ]);
});

test("without a REDIS_URL nothing is called", async () => {
  expect(await absentRedis({})).toEqual([]);
});
