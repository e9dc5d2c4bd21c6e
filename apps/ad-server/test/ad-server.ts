import { fileURLToPath } from "node:url";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { type AppProcess, startApp } from "@adrelay/testkit";

/** A catalogue of two ads that both fit PROMPTS.ok, for tests in which no other ad may be found. */
export const SHOES_FILE = fileURLToPath(new URL("../testdata/shoes.yaml", import.meta.url));
export const KEY = "key-of-a-publisher";
export const OTHER_KEY = "key-of-another-one";
export const UNKNOWN_ID = "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f";
export const PROMPTS = {
  ok: "Which running shoes should I buy for my first marathon?",
  rejected: "I want to end my life tonight",
  no_fill: "What is the derivative of x squared times sine x?",
} as const;

/** An answer as tests read it. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** The ad server as a real process with its own Redis. */
export interface TestAdServer {
  readonly url: () => string;
  readonly opsUrl: () => string;
  readonly redis: TestRedis;
  readonly app: () => AppProcess;
  /** Kills the process with kill -9 and starts a new one with the same Redis. */
  crashAndRestart(): Promise<void>;
  dispose(): Promise<void>;
}

/** Starts the ad server and its Redis. `env` overrides the settings for tests. */
export async function startAdServer(env: Readonly<Record<string, string>> = {}): Promise<TestAdServer> {
  const redis = await startTestRedis();
  const launch = () =>
    startApp("ad-server", {
      AD_SERVER_API_KEYS: `${KEY}, ${OTHER_KEY}`,
      AD_SERVER_PORT: "0",
      REDIS_URL: redis.url,
      ...env,
    });
  let app = await launch();
  return {
    redis,
    app: () => app,
    url: () => `http://127.0.0.1:${String(app.listening["port"])}`,
    opsUrl: () => `http://127.0.0.1:${String(app.listening["ops_port"])}`,
    crashAndRestart: async () => {
      app.kill("SIGKILL");
      await app.exited;
      app = await launch();
    },
    dispose: async () => {
      app.kill("SIGKILL");
      await app.exited;
      await redis.dispose();
    },
  };
}

/** The body of an injection from the US. */
export function injectionOf(prompt: string, more: object = {}) {
  return {
    prompt,
    request_context: { session_id: "sess-1", user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" },
    optional_context: { country: "US", age: 34 },
    ...more,
  };
}

/** Posts a text unchanged, or an object as JSON. A header that is null isn't sent. */
export async function post(
  url: string,
  body: string | object,
  headers: Readonly<Record<string, string | null>> = {},
): Promise<Answer> {
  const wanted = { [API_KEY_HEADER]: KEY, "Content-Type": "application/json", ...headers };
  const sent = Object.entries(wanted).flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
  const response = await fetch(url, {
    method: "POST",
    headers: Object.fromEntries(sent),
    // As bytes, since fetch would add its own Content-Type to a string.
    body: new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body)),
  });
  return answerOf(response);
}

export async function get(url: string, key = KEY): Promise<Answer> {
  return answerOf(await fetch(url, { headers: { [API_KEY_HEADER]: key } }));
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const value: unknown = text === "" ? {} : JSON.parse(text);
  const body = typeof value === "object" && value !== null ? { ...value } : {};
  return { status: response.status, headers: response.headers, body };
}

/** The calls of a publisher to an ad server. */
export function callerOf(server: TestAdServer) {
  const start = (prompt: string, more: object = {}) =>
    post(`${server.url()}${INJECTION_PATH}`, injectionOf(prompt, more));
  const acknowledge = (id: string, text: string, headers: Record<string, string> = {}) =>
    post(`${server.url()}${ACKNOWLEDGE_PATH}`, { ad_response_id: id, llm_response: text }, headers);
  return {
    start,
    acknowledge,
    /** Requests an ad and returns the response's id and product. */
    served: async (prompt: string = PROMPTS.ok) => {
      const { body } = await start(prompt);
      return { id: String(body["ad_response_id"]), product: String(body["product_name"]) };
    },
    lookUp: (id: string, key?: string) => get(`${server.url()}/acknowledgments/${id}`, key),
  };
}
