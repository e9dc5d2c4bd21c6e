/** The demo model as a process: a model's server whose faults each call chooses, and which shows what it received. */
import { z } from "zod";
import { type AppProcess, startApp } from "./processes.ts";

const callsSchema = z.object({
  /** All calls since the start, also those whose records are gone. */
  count: z.number(),
  calls: z.array(
    z.object({
      number: z.number(),
      method: z.string(),
      path: z.string(),
      raw_headers: z.array(z.string()),
      body_base64: z.base64(),
      sent: z.object({
        status: z.number(),
        end: z.enum(["running", "complete", "fault", "caller_gone"]),
        bytes: z.number(),
        sha256: z.string(),
        text: z.string(),
      }),
    }),
  ),
});

/** A call that the demo model received, and what it sent for it. */
interface ModelCallRecord {
  readonly number: number;
  readonly method: string;
  /** With its query, as it came. */
  readonly path: string;
  /** By their names in lower case; of several with one name, the last. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly sent: z.infer<typeof callsSchema>["calls"][number]["sent"];
}

export interface DemoModel {
  /** Without a path: the base URL of Anthropic's clients. */
  readonly url: string;
  /** The base URL of OpenAI's clients. */
  readonly openAiUrl: string;
  readonly app: AppProcess;
  /** The records of the calls with a number above `after`, the oldest first. */
  calls(after?: number): Promise<ModelCallRecord[]>;
  stop(): Promise<void>;
}

/** Starts it without pauses between events, and with records of 1000 calls. `env` overrides the settings. */
export async function startDemoModel(env: Readonly<Record<string, string>> = {}): Promise<DemoModel> {
  const app = await startApp("demo-model", {
    DEMO_MODEL_PORT: "0",
    DEMO_MODEL_DELAY_MS: "0",
    DEMO_MODEL_RECORDS: "1000",
    SHUTDOWN_TIMEOUT_MS: "5000",
    ...env,
  });
  const url = `http://127.0.0.1:${String(app.listening["port"])}`;
  return {
    url,
    openAiUrl: `${url}/v1`,
    app,
    calls: async (after = 0) => {
      const response = await fetch(`${url}/demo/calls?after=${after}`);
      return callsSchema.parse(await response.json()).calls.map(recordOf);
    },
    stop: async () => {
      await app.stop();
    },
  };
}

function recordOf(call: z.infer<typeof callsSchema>["calls"][number]): ModelCallRecord {
  const { number, method, path, raw_headers: raw, body_base64: body, sent } = call;
  const pairs = raw.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? ""]] : []));
  return {
    number,
    method,
    path,
    sent,
    headers: Object.fromEntries(pairs),
    body: Buffer.from(body, "base64"),
  };
}
