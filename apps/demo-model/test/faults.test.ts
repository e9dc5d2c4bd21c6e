/** Each fault does to a call what docs/demo-model.md says. */
import { createHash, hash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { type DemoModel, eventually, startDemoModel } from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CallOptions,
  call,
  eventsOf,
  readAll,
  readChunks,
  SURFACES,
  type Surface,
} from "./model-client.ts";

let model: DemoModel;
beforeAll(async () => {
  model = await startDemoModel();
});
afterAll(() => model.stop());

/** The last event of a whole stream. */
const LAST = {
  "chat/completions": "[DONE]",
  responses: "response.completed",
  messages: "message_stop",
} as const;

const ask = (surface: Surface, options: CallOptions) => call(model.url, surface, options);
const stream = async (surface: Surface, options: CallOptions) => {
  const response = await ask(surface, options);
  const read = await readAll(response);
  return { status: response.status, headers: response.headers, ...read, events: eventsOf(read.bytes) };
};
const lastRecord = async () => (await model.calls()).at(-1);

describe.each(SURFACES)("the faults of %s", (surface) => {
  const isLast = ({ name, data }: { name: string | undefined; data: string }) =>
    (name ?? data) === LAST[surface];

  test("number and size of a text's events are what was asked for", async () => {
    const { events, isWhole } = await stream(surface, { faults: "events=200;size=40" });
    const texts = events.flatMap(
      ({ data }) => /"(?:content|delta|text)":"((?:lorem|ipsum)[^"]*)"/.exec(data)?.[1] ?? [],
    );
    const pieces = texts.filter((text) => text.length === 40);
    expect(pieces.length).toBe(200);
    expect(isWhole).toBe(true);
    expect(events.findIndex(isLast)).toBe(events.length - 1);
    expect((await lastRecord())?.sent.text.length).toBe(8000);
  });

  test("the text before a call of a tool can be chosen, too, and each answer tells the digest of its prompt", async () => {
    const text = "Say so first, then use the tool.";
    const tool = { name: "search", parameters: {}, input_schema: {} };
    const more = { tools: [{ type: "function", ...tool, function: tool }] };
    for (const isStream of [true, false]) {
      const response = await ask(surface, { text, more, isStream, faults: "events=2;size=9;mark=first" });
      expect(response.headers.get("x-demo-prompt-sha256")).toBe(hash("sha256", text));
      expect(await response.text()).toMatch(/"search"/);
      expect((await lastRecord())?.sent.text).toBe("first.0 lfirst.1 l");
    }
  });

  test("the connection is closed or reset after as many events as were asked for", async () => {
    for (const fault of ["cut", "reset"]) {
      const cut = await stream(surface, { faults: `${fault}-after=5, events=20` });
      expect(cut).toMatchObject({ status: 200, isWhole: false });
      expect(cut.events.length).toBe(5);
      expect((await lastRecord())?.sent).toMatchObject({
        end: "fault",
        status: 200,
        bytes: cut.bytes.length,
      });
    }
  });

  test("an early end looks regular, but lacks the last event", async () => {
    const ended = await stream(surface, { faults: "end-after=5, events=20" });
    expect(ended).toMatchObject({ status: 200, isWhole: true });
    expect(ended.events.length).toBe(5);
    const undone = await stream(surface, { faults: "no-done, events=20" });
    expect(undone.isWhole).toBe(true);
    expect(undone.events.length).toBeGreaterThan(20);
    expect(undone.events.some(isLast)).toBe(false);
  });

  test("a stalled stream sends nothing more and stays open", async () => {
    const hangUp = new AbortController();
    const response = await ask(surface, { faults: "stall-after=3, events=20", signal: hangUp.signal });
    const reading = readAll(response);
    await eventually(async () => expect((await lastRecord())?.sent.end).toBe("fault"));
    hangUp.abort();
    const { bytes, isWhole } = await reading;
    expect(isWhole).toBe(false);
    expect(eventsOf(bytes).length).toBe(3);
  });

  test("an error event ends the stream", async () => {
    const { events, isWhole } = await stream(surface, { faults: "error-event-after=4, events=20" });
    expect(isWhole).toBe(true);
    expect(events.length).toBe(5);
    expect(events.at(-1)?.data).toMatch(/"(server_error|overloaded_error)"/);
  });

  test("usage can come behind the event that ends the text", async () => {
    const { events } = await stream(surface, { faults: "usage-after-end, events=2" });
    const ending =
      surface === "chat/completions" ? /"finish_reason":"stop"/ : /response.completed|message_stop/;
    const endAt = events.findIndex(({ data }) => ending.test(data));
    const usageAt = events.findLastIndex(({ data }) => data.includes('"usage":{'));
    expect(endAt).toBeGreaterThan(0);
    expect(usageAt).toBeGreaterThan(endAt);
  });

  test("a compressed stream arrives event by event, and whole", async () => {
    const faults = "gzip, events=20, delay=5";
    const { headers, chunks } = await readChunks(model.url, surface, { faults });
    expect(headers["content-encoding"]).toBe("gzip");
    expect(chunks.length).toBeGreaterThan(20);
    expect(eventsOf(gunzipSync(Buffer.concat(chunks))).some(isLast)).toBe(true);
  });

  test("every byte can be a chunk of its own", async () => {
    const { chunks } = await readChunks(model.url, surface, { faults: "split=every-byte, events=2" });
    expect(chunks.filter(({ length }) => length !== 1)).toEqual([]);
    expect(eventsOf(Buffer.concat(chunks)).some(isLast)).toBe(true);
  });

  test("a status is answered in the interface's form, as often as asked for", async () => {
    const options = { faults: "status=429;times=1", text: `first of ${surface}` };
    const refused = await ask(surface, options);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toMatch(/rate_limit/);
    expect((await stream(surface, options)).status).toBe(200);
  });

  test("an answer that isn't streamed is cut after as many bytes", async () => {
    const response = await ask(surface, { faults: "cut-after=50", isStream: false });
    const { bytes, isWhole } = await readAll(response);
    expect([response.status, bytes.length, isWhole]).toEqual([200, 50, false]);
    const compressed = await ask(surface, { faults: "gzip", isStream: false });
    expect(compressed.headers.get("content-encoding")).toBe("gzip");
    expect(await compressed.json()).toMatchObject({ model: "m" });
  });
});

test("a connection can be reset before the headers, and headers can be late", async () => {
  await expect(ask("messages", { faults: "reset-before-headers" })).rejects.toThrow(
    expect.objectContaining({ cause: expect.objectContaining({ code: "ECONNRESET" }) }),
  );
  const startedAtMs = performance.now();
  const late = await stream("messages", { faults: "slow-headers=150" });
  expect(late.isWhole).toBe(true);
  expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(149);
});

test("the pause between events is the one that the call asks for", async () => {
  const startedAtMs = performance.now();
  await stream("chat/completions", { faults: "events=10, delay=20" });
  expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(200);
});

test("a fault that doesn't exist is refused by its name", async () => {
  const response = await ask("chat/completions", { faults: "gzip, no-such-fault" });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("no-such-fault");
});

test("records show what was received and sent, to the byte", async () => {
  const before = (await model.calls()).at(-1)?.number ?? 0;
  const headers = { "X-Case": "Kept" };
  const { bytes } = await stream("responses", { text: "é1.0", headers, faults: "events=3;size=5" });
  const aborted = new AbortController();
  const running = await ask("messages", { faults: "events=1000, delay=20", signal: aborted.signal });
  aborted.abort();
  await expect(running.text()).rejects.toThrow();
  await eventually(async () => expect((await lastRecord())?.sent.end).toBe("caller_gone"));
  const [first, second, ...others] = await model.calls(before);
  expect(others).toEqual([]);
  expect(first).toMatchObject({ method: "POST", path: "/v1/responses", number: before + 1 });
  expect(first?.headers["x-case"]).toBe("Kept");
  expect(first?.body.toString()).toBe('{"model":"m","input":"é1.0","stream":true}');
  expect(first?.sent).toEqual({
    status: 200,
    end: "complete",
    bytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    text: "loremloremlorem",
  });
  expect(second?.sent.text.length).toBeLessThan(40_000);
});

test("a slow reader holds the stream back", async () => {
  const hangUp = new AbortController();
  const response = await ask("chat/completions", { faults: "events=1000;size=60000", signal: hangUp.signal });
  let seenBytes = -1;
  const sentBytes = await eventually(async () => {
    const { bytes, end } = (await lastRecord())?.sent ?? { bytes: -2, end: "none" };
    const same = bytes === seenBytes;
    seenBytes = bytes;
    expect([same, end]).toEqual([true, "running"]);
    return bytes;
  });
  expect(sentBytes).toBeLessThan(30_000_000);
  hangUp.abort();
  await response.body?.cancel().catch(() => {});
});
