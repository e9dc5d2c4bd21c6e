import { z } from "zod";

/** Asks the admin API; an answer that isn't 2xx is an error of the measurement. */
export class AdminApi {
  readonly #url: string;
  readonly #token: string;

  constructor(opsUrl: string, token: string) {
    this.#url = `${opsUrl}/admin/v1`;
    this.#token = token;
  }

  async call(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(this.#url + path, {
      method,
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) {
      throw new AdminApiError(`${method} ${path}: ${response.status} ${await response.text()}`);
    }
    return response.json();
  }

  async page(query: string) {
    return pageSchema.parse(await this.call("GET", `/acknowledgments?${query}`));
  }

  async startReplay(order: unknown) {
    return replayViewSchema.parse(await this.call("POST", "/replays", order));
  }

  async replay(id: string) {
    return replayViewSchema.parse(await this.call("GET", `/replays/${id}`));
  }

  async stats() {
    return statsSchema.parse(await this.call("GET", "/stats"));
  }
}

export class AdminApiError extends Error {
  override readonly name = "AdminApiError";
}

const pageSchema = z.object({
  acknowledgments: z.array(z.object({ ad_response_id: z.string() })),
  next_cursor: z.string().nullable(),
});
const replayViewSchema = z.object({
  replay_id: z.string(),
  state: z.string(),
  matched: z.number(),
  replayed: z.number(),
});
const statsSchema = z.object({ states: z.record(z.string(), z.number()) });
