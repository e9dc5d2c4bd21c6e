/** A program that uses the published types as an older compiler sees them. */
import { createRelay, type Injection, RelayError } from "@adrelay/client";
import { fileOutbox } from "@adrelay/client/node";

interface Delta {
  readonly content?: string | null;
}

export async function chat(
  prompt: string,
  stream: (prompt: string) => AsyncIterable<Delta>,
): Promise<string> {
  const relay = createRelay({
    url: "http://127.0.0.1:8080",
    apiKey: "key",
    outbox: fileOutbox({ directory: "/tmp/outbox" }),
    onEvent: (event) => {
      if (event.kind === "lost" && event.error instanceof RelayError) {
        console.error(event.adResponseId, event.error.code);
      }
    },
  });
  const request = { prompt, request_context: { session_id: "s-1" } };
  let text = "";
  const answer = await relay.withAd(request, stream, { textOf: ({ content }) => content });
  for await (const { content } of answer) {
    text += content ?? "";
  }
  const injection: Injection = await relay.inject(request);
  // @ts-expect-error without an ad there is nothing to acknowledge
  await injection.acknowledge("");
  return text;
}
