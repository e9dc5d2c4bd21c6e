/** How tests call the demo model, in each of its interfaces. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";

export const SURFACES = ["chat/completions", "responses", "messages"] as const;
export type Surface = (typeof SURFACES)[number];

/** A body that asks for an answer to one text. */
export function bodyOf(surface: Surface, text: string, more: object = {}): object {
  const messages = [{ role: "user", content: text }];
  switch (surface) {
    case "responses":
      return { model: "m", input: text, ...more };
    case "messages":
      return { model: "m", max_tokens: 1000, messages, ...more };
    case "chat/completions":
      return { model: "m", messages, ...more };
    default:
      return surface satisfies never;
  }
}

export interface CallOptions {
  readonly text?: string;
  readonly faults?: string;
  readonly isStream?: boolean;
  readonly more?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

function headersOf(surface: Surface, { faults, headers }: CallOptions): Record<string, string> {
  return {
    authorization: "Bearer key-of-a-test",
    "content-type": "application/json",
    ...(surface === "messages" ? { "anthropic-version": "2023-06-01" } : {}),
    ...(faults === undefined ? {} : { "x-demo-fault": faults }),
    ...headers,
  };
}

function textOf(surface: Surface, { text = "Which shoes?", isStream = true, more }: CallOptions): string {
  return JSON.stringify(bodyOf(surface, text, { stream: isStream, ...more }));
}

/** Posts a call, streamed unless told otherwise. */
export function call(url: string, surface: Surface, options: CallOptions = {}): Promise<Response> {
  return fetch(`${url}/v1/${surface}`, {
    method: "POST",
    headers: headersOf(surface, options),
    body: textOf(surface, options),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

/** The body as it came: fetch would decompress it, and join its chunks. */
export async function readChunks(url: string, surface: Surface, options: CallOptions) {
  const sent = request(`${url}/v1/${surface}`, { method: "POST", headers: headersOf(surface, options) });
  sent.end(textOf(surface, options));
  const [response]: IncomingMessage[] = await once(sent, "response");
  const chunks: Buffer[] = [];
  response?.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(response ?? sent, "end");
  return { headers: response?.headers ?? {}, chunks };
}

/** What came of a body, and whether it came to a regular end. */
export async function readAll(response: Response): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  const result = (isWhole: boolean) => ({ bytes: Buffer.concat(chunks), isWhole });
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
    }
    return result(true);
  } catch {
    return result(false);
  }
}

/** The events of a stream, as name and data. */
export function eventsOf(bytes: Buffer): { name: string | undefined; data: string }[] {
  return bytes
    .toString()
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => ({
      name: /^event: (.*)$/m.exec(event)?.[1],
      data: /^data: (.*)$/m.exec(event)?.[1] ?? "",
    }));
}
