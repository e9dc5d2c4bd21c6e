/** The first turn through the proxy that `npm start` shows: an answer with an ad that streams, and its acknowledgment. */
import { ACKNOWLEDGMENTS_PATH } from "@adrelay/contract";
import { z } from "zod";
import { DEMO_INJECTION, DemoError, followDelivery, indent, makeCall } from "./demo.ts";
import type { RunFile } from "./home.ts";

const TURN_TIMEOUT_MS = 20_000;
/** The first call of a new process may need more time for its ad than the budget allows. */
const ATTEMPTS = 3;

const CALL = {
  model: "demo",
  stream: true,
  messages: [{ role: "user", content: DEMO_INJECTION.prompt }],
} as const;

type Run = Pick<RunFile, "proxy" | "gateway" | "apiKey" | "keyHeaders">;

/** The context of the user: without these three headers a call gets no ad. */
const { session_id, user_agent, user_ip } = DEMO_INJECTION.request_context;
const CONTEXT = {
  "X-Adrelay-Session-Id": session_id,
  "X-Adrelay-User-Agent": user_agent,
  "X-Adrelay-User-IP": user_ip,
};

/** Asks the demo model for hardly a pause between two events, so that the demo doesn't hold up the start. */
const QUICK = { "X-Demo-Fault": "delay=2" };

/** A command that streams an answer through the proxy, to be pasted. */
export function turnCommand({
  proxy,
  apiKey,
  keyHeaders,
  demoModel,
}: Run & Pick<RunFile, "demoModel">): string {
  const headers = {
    [keyHeaders.proxy]: apiKey || "KEY",
    Authorization: `Bearer ${demoModel === undefined ? "KEY-OF-THE-MODEL" : "any-key"}`,
    "Content-Type": "application/json",
    ...CONTEXT,
  };
  const options = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`);
  return `curl -sN ${proxy}/v1/chat/completions ${options.join(" ")} -d '${JSON.stringify(CALL)}'`;
}

/** Sends one real turn through the proxy, and prints each step. */
export async function runDemoTurn(run: Run, say: (line: string) => void): Promise<void> {
  say(`  POST ${run.proxy}/v1/chat/completions  "${CALL.messages[0].content}"`);
  const { id, text } = await streamWithAd(run, say);
  say(indent(text));
  const call = makeCall(run);
  await followDelivery(() => call("GET", `${ACKNOWLEDGMENTS_PATH}${id}/`), say);
}

interface AnsweredTurn {
  readonly id: string;
  readonly text: string;
}

async function streamWithAd(run: Run, say: (line: string) => void): Promise<AnsweredTurn> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await fetch(`${run.proxy}/v1/chat/completions`, {
      method: "POST",
      headers: {
        [run.keyHeaders.proxy]: run.apiKey,
        Authorization: "Bearer demo",
        "Content-Type": "application/json",
        ...QUICK,
        ...CONTEXT,
      },
      body: JSON.stringify(CALL),
      signal: AbortSignal.timeout(TURN_TIMEOUT_MS),
    });
    const { text, events } = readStream(await answer.text());
    const ad = answer.headers.get("X-Adrelay-Ad") ?? "none";
    const id = answer.headers.get("X-Adrelay-Ad-Response-Id");
    say(`  ${answer.status}  X-Adrelay-Ad: ${ad}; ${events} events streamed`);
    if (answer.status === 200 && ad === "injected" && id !== null) {
      return { id, text };
    }
    if (attempt === ATTEMPTS || !ad.startsWith("fallback")) {
      throw new DemoError(`no ad was put into the prompt (${answer.status}, X-Adrelay-Ad: ${ad})`);
    }
  }
}

const eventSchema = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })),
});

/** The text of a stream of chat completions. The demo model's events are known, so no parser is needed. */
function readStream(body: string): { text: string; events: number } {
  const events = [...body.matchAll(/^data: (\{.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
  const texts = z
    .array(eventSchema)
    .parse(events)
    .map(({ choices }) => choices[0]?.delta.content ?? "");
  return { events: events.length, text: texts.join("") };
}
