/** Programs that must not compile. The compiler checks them: each wrong line is expected to be an error. */
import { expect, test } from "vitest";
import { createRelay, type Injection, type InjectionRequest } from "../src/index.ts";

interface Chunk {
  readonly delta: string;
}
declare const request: InjectionRequest;
declare const injection: Injection;
declare const texts: AsyncIterable<string>;
declare const chunks: AsyncIterable<Chunk>;
declare const readable: ReadableStream<Chunk>;

async function misuse() {
  // @ts-expect-error an address and a key are needed
  createRelay({ url: "http://relay" });
  const relay = createRelay({ url: "http://relay", apiKey: "key" });
  // @ts-expect-error only an ad can be acknowledged: find out first whether there is one
  injection.acknowledge("text");
  if (injection.kind === "injected") {
    // @ts-expect-error the shown text is needed
    injection.acknowledge();
    // @ts-expect-error a text that may be missing is none
    injection.acknowledge([""][1]);
    // @ts-expect-error the prompt can't be replaced
    injection.prompt = "another";
  } else {
    // @ts-expect-error without an ad there is no id
    injection.adResponseId;
  }
  // @ts-expect-error a session is needed
  relay.inject({ prompt: "p", request_context: {} });
  // @ts-expect-error a misspelt attribute
  relay.inject({ prompt: "p", request_context: { session_id: "s" }, optional_context: { contry: "US" } });
  // @ts-expect-error chunks that aren't texts need textOf
  relay.withAd(request, () => chunks);
  // @ts-expect-error the same for an answer as a whole
  relay.withAd(request, async () => ({ content: "text" }));
  // @ts-expect-error textOf is given the chunks' own type
  relay.withAd(request, () => chunks, { textOf: (chunk) => chunk.text });
  // @ts-expect-error textOf gives a text
  relay.withAd(request, () => chunks, { textOf: (chunk) => chunk });
}

async function use() {
  const relay = createRelay({ url: "http://relay", apiKey: "key" });
  const prompt: string = injection.prompt;
  const whole: string = await relay.withAd(request, async () => "text");
  const none: null = await relay.withAd(request, () => null, { textOf: () => "" });
  for await (const text of await relay.withAd(request, () => texts)) {
    text.toUpperCase();
  }
  for await (const { delta } of await relay.withAd(request, () => chunks, {
    textOf: (chunk) => chunk.delta,
  })) {
    delta.toUpperCase();
  }
  const stream: ReadableStream<Chunk> = await relay.withAd(request, async () => readable, {
    textOf: ({ delta }) => delta,
  });
  await using ad = await relay.inject(request);
  using sync = await relay.inject(request);
  await using answer = await relay.withAd(request, () => texts);
  return { prompt, whole, none, stream, ad, sync, answer };
}

test("misuse doesn't compile, and use does", () => {
  // The compiler has checked both. They are never called.
  expect([typeof misuse, typeof use]).toEqual(["function", "function"]);
});
