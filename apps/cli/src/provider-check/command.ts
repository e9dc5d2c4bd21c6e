/** The command `adrelay provider check`. It calls the provider itself, and needs neither a gateway nor a token. */
import { baseUrlSchema, type DoctorCheck, headerKeySchema, headerNameSchema } from "@adrelay/contract";
import { defineLocalCommand } from "../command.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { parseSpanMs } from "../selection-options.ts";
import { showCheck } from "../status-and-doctor.ts";
import type { ProviderTarget } from "./call-provider.ts";
import { checkProvider } from "./check-provider.ts";

/** The defaults of the settings. */
const INJECTION_TIMEOUT_MS = 2000;
const DELIVERY_TIMEOUT_MS = 10_000;

const PROMPT = "Which running shoes should I buy for my first marathon?";
const PROMPT_WITHOUT_AD = "What is 17 times 23?";

export const addProviderCheck = defineLocalCommand({
  words: "check",
  describe: "Tries an ad service end to end, and prints what the relay would do with each answer",
  options: (yargs) =>
    yargs
      .option("url", {
        type: "string",
        requiresArg: true,
        describe: "Address of the ad service (default: PROVIDER_URL)",
      })
      .option("key", {
        type: "string",
        requiresArg: true,
        describe: "Our key there (default: PROVIDER_API_KEY, which no list of processes shows)",
      })
      .option("key-header", {
        type: "string",
        requiresArg: true,
        describe: "Header with the key (default: PROVIDER_API_KEY_HEADER, or X-Service-API-Key)",
      })
      .option("prompt", {
        type: "string",
        requiresArg: true,
        default: PROMPT,
        describe: "A prompt that should get an ad",
      })
      .option("prompt-without-ad", {
        type: "string",
        requiresArg: true,
        default: PROMPT_WITHOUT_AD,
        describe: "A prompt that should get none",
      })
      .option("injection-timeout", {
        type: "string",
        requiresArg: true,
        describe: "Time limit of an injection (default: INJECTION_TIMEOUT_MS, or 2s)",
      })
      .option("delivery-timeout", {
        type: "string",
        requiresArg: true,
        describe: "Time limit of an acknowledgment (default: DELIVERY_TIMEOUT_MS, or 10s)",
      })
      .group(OPTIONS, "Options:"),
  run: async (args, { terminal, isJson, env, signal, timeoutMs }) => {
    const limits = [
      limitOf("injection-timeout", args.injectionTimeout ?? env["INJECTION_TIMEOUT_MS"]),
      limitOf("delivery-timeout", args.deliveryTimeout ?? env["DELIVERY_TIMEOUT_MS"]),
    ];
    const [injectionTimeoutMs = INJECTION_TIMEOUT_MS, deliveryTimeoutMs = DELIVERY_TIMEOUT_MS] = limits;
    const target: ProviderTarget = {
      url: checked("url", args.url ?? env["PROVIDER_URL"], baseUrlSchema),
      key: checked("key", args.key ?? env["PROVIDER_API_KEY"], headerKeySchema),
      keyHeader: checkedHeader(args.keyHeader ?? env["PROVIDER_API_KEY_HEADER"]),
      waitMs: Math.max(timeoutMs, ...limits.map((limitMs = 0) => limitMs)),
      injectionTimeoutMs,
      deliveryTimeoutMs,
      signal,
    };
    const checks: DoctorCheck[] = [];
    for await (const check of checkProvider(target, args)) {
      if (signal.aborted) {
        terminal.note("Interrupted.");
        return EXIT.interrupted;
      }
      checks.push(check);
      if (!isJson) {
        showCheck(terminal, check);
      }
    }
    if (isJson) {
      terminal.print(JSON.stringify({ checks }));
    }
    return checks.some(({ status }) => status === "fail") ? EXIT.refused : EXIT.done;
  },
});

const OPTIONS = [
  "url",
  "key",
  "key-header",
  "prompt",
  "prompt-without-ad",
  "injection-timeout",
  "delivery-timeout",
];

/** A time limit, in a form that the settings have, too. Undefined if none is given. */
function limitOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === "") {
    return undefined;
  }
  const limitMs = /^\d{1,8}$/.test(text.trim()) ? Number(text) : parseSpanMs(text.trim());
  if (limitMs === undefined || limitMs < 1 || limitMs > LIMIT_MAX_MS) {
    throw new UsageError(`--${name} must be a time span such as 500ms or 2s, at most 10 minutes`);
  }
  return limitMs;
}

/** As the settings have it. */
const LIMIT_MAX_MS = 600_000;

interface Checking {
  safeParse(value: unknown): { error?: { issues: { message: string }[] } | undefined };
}

/** Throws a UsageError that names the option and never its value: it may be a key. */
function checked(name: string, value: string | undefined, schema: Checking): string {
  if (value === undefined || value.trim() === "") {
    throw new UsageError(`--${name} is missing`);
  }
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  if (issue !== undefined) {
    throw new UsageError(`--${name} ${issue.message}`);
  }
  return value;
}

function checkedHeader(name: string | undefined): string | undefined {
  return name === undefined || name === "" ? undefined : checked("key-header", name, headerNameSchema);
}
