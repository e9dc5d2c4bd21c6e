/** How tests call the demo model, in each of its interfaces. */
export const SURFACES = ["chat/completions", "responses", "messages"] as const;
export type Surface = (typeof SURFACES)[number];

const KEYS = { authorization: "Bearer key-of-a-test", "anthropic-version": "2023-06-01" };

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

/** Posts a call, streamed unless told otherwise. */
export function call(url: string, surface: Surface, options: CallOptions = {}): Promise<Response> {
  const { text = "Which shoes?", faults, isStream = true, more, headers, signal } = options;
  const { "anthropic-version": version, ...key } = KEYS;
  return fetch(`${url}/v1/${surface}`, {
    method: "POST",
    headers: {
      ...key,
      ...(surface === "messages" ? { "anthropic-version": version } : {}),
      "content-type": "application/json",
      ...(faults === undefined ? {} : { "x-demo-fault": faults }),
      ...headers,
    },
    body: JSON.stringify(bodyOf(surface, text, { stream: isStream, ...more })),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** What came of a body, and whether it came to a regular end. */
export async function readAll(
  response: Response,
): Promise<{ bytes: Buffer; sizes: number[]; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  const result = (isWhole: boolean) => ({
    bytes: Buffer.concat(chunks),
    sizes: chunks.map(({ length }) => length),
    isWhole,
  });
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
