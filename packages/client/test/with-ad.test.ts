import { eventually } from "@adrelay/testkit";
import { expect, test } from "vitest";
import type { Relay } from "../src/index.ts";
import { type Fixture, injectAd, problem, REQUEST, setup } from "./client-fixture.ts";

const TEXTS = ["One ", "two ", "", "three ", "four."];

/** What the source of a stream was told. */
interface Source {
  asked: number;
  hasEnded: boolean;
}

class ModelError extends Error {
  override readonly name = "ModelError";
}

async function* generate(source: Source, failAt = Number.POSITIVE_INFINITY) {
  try {
    for (const text of TEXTS) {
      if (source.asked === failAt) {
        throw new ModelError("the model broke off");
      }
      source.asked += 1;
      yield text;
    }
  } finally {
    source.hasEnded = true;
  }
}

function readable(source: Source, failAt = Number.POSITIVE_INFINITY): ReadableStream<string> {
  const chunks = generate(source, failAt);
  return new ReadableStream(
    {
      pull: async (controller) => {
        const { done, value } = await chunks.next();
        return done === true ? controller.close() : controller.enqueue(value);
      },
      cancel: async () => {
        await chunks.return();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Each kind of stream, as a program would get it from a model's client. */
const KINDS = [
  ["async iterable", generate],
  ["ReadableStream", readable],
] as const;

const POINTS = TEXTS.map((_text, at) => at);
const CASES = KINDS.flatMap(([kind, open]) => POINTS.map((at) => [kind, at, open] as const));

async function readAll(stream: AsyncIterable<string>, upTo = Number.POSITIVE_INFINITY): Promise<string[]> {
  const read: string[] = [];
  if (upTo === 0) {
    return read;
  }
  for await (const text of stream) {
    read.push(text);
    if (read.length === upTo) {
      break;
    }
  }
  return read;
}

/** The one text that was acknowledged. */
async function acknowledgedText({ relay, peer, textsOf, eventsOf }: Fixture): Promise<unknown> {
  await eventually(() => expect(eventsOf("accepted")).toHaveLength(1));
  await relay.flush();
  const [id = ""] = eventsOf("injected").map(({ adResponseId }) => adResponseId);
  const texts = textsOf(id);
  expect(texts).toHaveLength(1);
  expect(peer.posts).toHaveLength(2);
  return texts[0];
}

const newSource = (): Source => ({ asked: 0, hasEnded: false });

function newAbort() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason: Error) => controller.abort(reason) };
}

test.each(KINDS)(
  "the chunks of an %s pass unchanged, and their text is acknowledged",
  async (_kind, open) => {
    const fixture = await setup();
    const prompts: string[] = [];
    const stream = await fixture.relay.withAd(REQUEST, (prompt) => {
      prompts.push(prompt);
      return open(newSource());
    });
    expect(await readAll(stream)).toEqual(TEXTS);
    expect(prompts).toEqual(["a prompt with an ad"]);
    expect(await acknowledgedText(fixture)).toBe(TEXTS.join(""));
  },
);

test.each(CASES)(
  "a consumer of an %s that leaves after chunk %i was shown what it has",
  async (_kind, at, open) => {
    const fixture = await setup();
    const source = newSource();
    const stream = await fixture.relay.withAd(REQUEST, () => open(source));
    const read = await readAll(stream, at + 1);
    expect(await acknowledgedText(fixture)).toBe(read.join(""));
    expect(source).toEqual({ asked: at + 1, hasEnded: true });
  },
);

test.each(CASES)("an %s that fails after %i chunks fails for the consumer alike", async (_kind, at, open) => {
  const fixture = await setup();
  const stream = await fixture.relay.withAd(REQUEST, () => open(newSource(), at));
  await expect(readAll(stream)).rejects.toThrow(ModelError);
  expect(await acknowledgedText(fixture)).toBe(TEXTS.slice(0, at).join(""));
});

test.each(CASES)(
  "an abort of an %s after chunk %i ends it, and counts what was shown",
  async (_kind, at, open) => {
    const fixture = await setup();
    const controller = new AbortController();
    const source = newSource();
    const stream = await fixture.relay.withAd(REQUEST, () => open(source), { signal: controller.signal });
    const read: string[] = [];
    const reading = (async () => {
      for await (const text of stream) {
        read.push(text);
        if (read.length === at + 1) {
          controller.abort();
        }
      }
    })();
    await reading;
    expect(read).toEqual(TEXTS.slice(0, at + 1));
    expect(await acknowledgedText(fixture)).toBe(read.join(""));
    await eventually(() => expect(source).toEqual({ asked: at + 1, hasEnded: true }));
  },
);

test.each(KINDS)("an abort of an %s without an ad ends it, too", async (_kind, open) => {
  const { relay, peer } = await setup();
  peer.onStart(() => problem(500, "internal_error"));
  const { signal, abort } = newAbort();
  const source = newSource();
  const stream = await relay.withAd(REQUEST, () => open(source), { signal });
  const chunks = stream[Symbol.asyncIterator]();
  await chunks.next();
  abort(new ModelError("the user left"));
  expect(await chunks.next()).toEqual({ done: true, value: undefined });
  await eventually(() => expect(source).toEqual({ asked: 1, hasEnded: true }));
});

test("an abort while the model is silent ends the consumer's wait", async () => {
  const fixture = await setup();
  const { signal, abort } = newAbort();
  const late = Promise.withResolvers<void>();
  async function* slow() {
    yield "early";
    await late.promise;
    yield "late";
  }
  const stream = await fixture.relay.withAd(REQUEST, slow, { signal });
  await stream.next();
  const waiting = stream.next();
  abort(new ModelError("the user left"));
  expect(await waiting).toEqual({ done: true, value: undefined });
  late.resolve();
  expect(await acknowledgedText(fixture)).toBe("early");
});

test("nothing is read ahead: a chunk that nobody asked for doesn't count", async () => {
  const fixture = await setup();
  const source = newSource();
  const stream = await fixture.relay.withAd(REQUEST, () => readable(source));
  const reader = stream.getReader();
  await reader.read();
  expect(source.asked).toBe(1);
  await reader.cancel();
  expect(await acknowledgedText(fixture)).toBe(TEXTS[0]);
});

test("a consumer that goes silent counts as gone after a while", async () => {
  const fixture = await setup({ idleStreamMs: 50 });
  const stream = await fixture.relay.withAd(REQUEST, () => generate(newSource()));
  await stream.next();
  expect(await acknowledgedText(fixture)).toBe(TEXTS[0]);
});

test("a model that is silent for long doesn't end the wait of its consumer", async () => {
  const fixture = await setup({ idleStreamMs: 20 });
  async function* slow() {
    await new Promise((resolve) => setTimeout(resolve, 150));
    yield "late";
  }
  expect(await readAll(await fixture.relay.withAd(REQUEST, slow))).toEqual(["late"]);
  expect(await acknowledgedText(fixture)).toBe("late");
});

test("await using ends a stream, and a stream that is never read is acknowledged as empty", async () => {
  const fixture = await setup();
  const source = newSource();
  {
    await using stream = await fixture.relay.withAd(REQUEST, () => generate(source));
    expect(typeof stream.next).toBe("function");
  }
  expect(await acknowledgedText(fixture)).toBe("");
});

test("an answer in one piece is acknowledged as a whole, and an object by its text", async () => {
  const fixture = await setup();
  const completion = { choices: [{ message: { content: "An answer." } }] };
  const textOf = ({ choices }: typeof completion) => choices[0]?.message.content;
  expect(await fixture.relay.withAd(REQUEST, async () => completion, { textOf })).toBe(completion);
  expect(await acknowledgedText(fixture)).toBe("An answer.");
});

test("an object's text may be missing, and a textOf that throws only loses its chunk", async () => {
  const fixture = await setup();
  async function* parts() {
    yield* [{ text: "a" }, { tool: 1 }, { text: "b" }, { broken: true }, { text: "c" }];
  }
  const textOf = (part: { text?: string; broken?: boolean }) => {
    if (part.broken === true) {
      throw new ModelError("no text");
    }
    return part.text;
  };
  let count = 0;
  for await (const _part of await fixture.relay.withAd(REQUEST, parts, { textOf })) {
    count += 1;
  }
  expect(count).toBe(5);
  expect(await acknowledgedText(fixture)).toBe("abc");
  expect(fixture.eventsOf("text_unreadable")).toHaveLength(1);
});

test("without textOf only texts count, and other chunks are reported", async () => {
  const fixture = await setup();
  async function* parts() {
    yield* ["a", null, { text: "an object" }, undefined, new Uint8Array(2), "b"];
  }
  const chunks: unknown[] = [];
  // Only JavaScript can do without.
  for await (const chunk of await fixture.relay.withAd(REQUEST, parts as () => AsyncIterable<string>)) {
    chunks.push(chunk);
  }
  expect(chunks).toHaveLength(6);
  expect(await acknowledgedText(fixture)).toBe("ab");
  expect(fixture.eventsOf("text_unreadable")).toHaveLength(2);
});

test("a model that fails before its answer fails alike, and the ad is acknowledged as empty", async () => {
  const fixture = await setup();
  const fail = (): Promise<string> => Promise.reject(new ModelError("no model"));
  await expect(fixture.relay.withAd(REQUEST, fail)).rejects.toThrow(new ModelError("no model"));
  expect(await acknowledgedText(fixture)).toBe("");
});

test("without an ad the model gets the caller's prompt, and its answer comes back as it is", async () => {
  const { relay, peer } = await setup();
  peer.onStart(() => problem(500, "internal_error"));
  const stream = readable(newSource());
  const prompts: string[] = [];
  const answer = await relay.withAd(REQUEST, (prompt) => {
    prompts.push(prompt);
    return stream;
  });
  expect(answer).toBe(stream);
  expect(await readAll(await relay.withAd(REQUEST, () => generate(newSource())))).toEqual(TEXTS);
  expect(prompts).toEqual([REQUEST.prompt]);
  expect(await relay.flush()).toBe(0);
  expect(peer.posts.filter(({ operation }) => operation === "acknowledge")).toEqual([]);
});

test.each(["using", "await using"])(
  "an ad that %s leaves unacknowledged is acknowledged as empty",
  async (way) => {
    const fixture = await setup();
    const leave = async (relay: Relay) => {
      if (way === "using") {
        using _ad = await relay.inject(REQUEST);
      } else {
        await using _ad = await relay.inject(REQUEST);
      }
    };
    await leave(fixture.relay);
    expect(await acknowledgedText(fixture)).toBe("");
  },
);

test("close waits for answers that somebody waits for: in one piece, of a stream, and in several calls", async () => {
  const { relay, textsOf, eventsOf } = await setup();
  const rest = Promise.withResolvers<string>();
  async function* slow() {
    yield "early, ";
    yield await rest.promise;
  }
  const whole = relay.withAd(REQUEST, () => rest.promise);
  await eventually(() => expect(eventsOf("injected")).toHaveLength(1));
  const stream = await relay.withAd(REQUEST, slow);
  await stream.next();
  const next = stream.next();
  const calls = relay.watch(await injectAd(relay));
  calls.ask();
  const silent = await relay.withAd(REQUEST, slow);
  await silent.next();
  const closing = relay.close({ timeoutMs: 20_000 });
  rest.resolve("late");
  expect([await whole, (await next).value, (await stream.next()).done]).toEqual(["late", "late", true]);
  calls.add("calls");
  calls.settle();
  expect(await closing).toBe(0);
  expect(eventsOf("injected").flatMap(({ adResponseId }) => textsOf(adResponseId))).toEqual([
    "late",
    "early, late",
    "calls",
    "early, ",
  ]);
  expect(eventsOf("lost")).toEqual([]);
});

test("close ends in its time, and acknowledges what still runs as far as it was shown", async () => {
  const { relay, textsOf, eventsOf } = await setup();
  const never = new Promise<string>(() => {});
  async function* hanging() {
    yield "early";
    yield await never;
  }
  void relay.withAd(REQUEST, () => never);
  await eventually(() => expect(eventsOf("injected")).toHaveLength(1));
  const stream = await relay.withAd(REQUEST, hanging);
  await stream.next();
  void stream.next();
  expect(await relay.close({ timeoutMs: 1000 })).toBe(0);
  const texts = eventsOf("injected").flatMap(({ adResponseId }) => textsOf(adResponseId));
  expect(texts).toEqual(["", "early"]);
});

test("the first text wins: the program's own, before the end of a using block", async () => {
  const fixture = await setup();
  {
    await using ad = await injectAd(fixture.relay);
    expect(await ad.acknowledge("moderated")).toMatchObject({ kind: "accepted", status: "ok" });
    expect(await ad.acknowledge("another")).toMatchObject({ kind: "accepted" });
  }
  expect(await acknowledgedText(fixture)).toBe("moderated");
});

test.each([
  ["null", null, ""],
  ["no text", undefined, ""],
  ["a text beyond what the relay takes", "x".repeat(300_000), "x".repeat(256 * 1024)],
])(
  "a program that acknowledges %s itself is taken at its word as far as it goes",
  async (_name, given, wanted) => {
    const fixture = await setup();
    const ad = await injectAd(fixture.relay);
    // JavaScript takes anything.
    expect(await ad.acknowledge(given as string)).toMatchObject({ kind: "accepted" });
    expect(await acknowledgedText(fixture)).toBe(wanted);
  },
);

test("a text beyond what the relay takes is cut, so that it is accepted", async () => {
  const fixture = await setup();
  const chunk = "x".repeat(100_000);
  async function* long() {
    yield* [chunk, chunk, chunk, chunk];
  }
  await readAll(await fixture.relay.withAd(REQUEST, long));
  expect(await acknowledgedText(fixture)).toBe("x".repeat(256 * 1024));
});
