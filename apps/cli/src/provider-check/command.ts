/** The command `adrelay provider check`. It calls the provider itself, and needs neither a gateway nor a token. */
import { baseUrlSchema, type DoctorCheck, headerKeySchema, headerNameSchema } from "@adrelay/contract";
import { defineLocalCommand } from "../command.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { showCheck } from "../status-and-doctor.ts";
import type { ProviderTarget } from "./call-provider.ts";
import { checkProvider } from "./check-provider.ts";

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
      .group(["url", "key", "key-header", "prompt", "prompt-without-ad"], "Options:"),
  run: async (args, { terminal, isJson, env, signal, timeoutMs }) => {
    const target: ProviderTarget = {
      url: checked("url", args.url ?? env["PROVIDER_URL"], baseUrlSchema),
      key: checked("key", args.key ?? env["PROVIDER_API_KEY"], headerKeySchema),
      keyHeader: checkedHeader(args.keyHeader ?? env["PROVIDER_API_KEY_HEADER"]),
      timeoutMs,
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
