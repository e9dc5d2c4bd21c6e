/** A real worker and what happens to its calls in the field: pauses, unusual bytes, faults of the network. */
import { createServer, type Socket } from "node:net";
import { acknowledged, eventually, pause } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { openWorkerFixture } from "./worker-fixture.ts";

const open = () => openWorkerFixture((stop) => onTestFinished(async () => void (await stop())));

test("a worker that was stopped reads the answers that wait in its sockets, and books no time-out", async () => {
  const { provider, accept, find, startWorker } = await open();
  const count = 20;
  const worker = await startWorker(count, { DELIVERY_TIMEOUT_MS: "1000" });
  const stopped = new Promise<void>((resolve) => {
    provider.onAcknowledge(() => {
      if (provider.posts.length === count) {
        worker.kill("SIGSTOP");
        resolve();
      }
      // Answers go out while the worker is stopped.
      return { kind: "late", delayMs: 500, answer: acknowledged() };
    });
  });
  const ids = await Promise.all(Array.from({ length: count }, () => accept()));
  await stopped;
  // The stop is the case itself: nothing of the stopped process can be awaited.
  await pause(2500);
  worker.kill("SIGCONT");
  await eventually(async () => {
    const states = await Promise.all(ids.map(async (id) => (await find(id))?.state));
    expect(states.filter((state) => state !== "delivered")).toEqual([]);
  });
  expect(provider.posts).toHaveLength(count);
  expect(worker.logs.filter(({ event, outcome }) => event === "attempt" && outcome !== "deliver")).toEqual(
    [],
  );
});

test("an unasked 100 Continue doesn't keep an acknowledgment from being delivered by one post", async () => {
  const { accept, find, startWorker } = await open();
  let posts = 0;
  const body = JSON.stringify({
    ad_ack_id: "0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10",
    status: "ok",
    success: true,
  });
  const length = `Content-Length: ${body.length}\r\n`;
  const server = createServer((socket: Socket) => {
    socket
      .on("error", () => {})
      .on("data", () => {
        posts += 1;
        socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n${length}${length}\r\n${body}`);
      });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  await startWorker(1, { PROVIDER_URL: `http://127.0.0.1:${Object(server.address()).port}` });
  const id = await accept();
  await eventually(async () => expect((await find(id))?.state).toBe("delivered"));
  expect(posts).toBe(1);
});

test("the log line of an attempt has the cause of its failure", async () => {
  const { accept, startWorker } = await open();
  const worker = await startWorker(1, { PROVIDER_URL: "http://user-of:password-of@no-such-host.invalid" });
  await accept();
  await eventually(() =>
    expect(worker.logs).toContainEqual(
      expect.objectContaining({
        event: "attempt",
        outcome: "retry",
        code: "dns_failed",
        cause: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/),
      }),
    ),
  );
  expect(JSON.stringify(worker.logs) + worker.stderr()).not.toMatch(/user-of|password-of/);
});
