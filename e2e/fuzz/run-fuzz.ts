/** Runs the fuzzer over one document after the other, against a real stack. */
import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type FuzzTarget, startFuzzStack } from "./fuzz-stack.ts";
import { provideSchemathesis } from "./schemathesis-tool.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const DOCUMENTS = fileURLToPath(new URL("../../docs/openapi/", import.meta.url));
const OUTPUT_LINES = 200;

interface FuzzOptions {
  /** For each document: cases are made until then. A phase that has begun is brought to its end. Without it, each is made once. */
  readonly secondsPerDocument?: number;
  /** The most cases of each operation and phase at a time. */
  readonly casesMax: number;
  readonly seed: number;
  /** From then on no further document is begun. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** What the fuzzer found in one document. */
interface FuzzResult {
  readonly name: FuzzTarget["name"];
  readonly cases: number;
  readonly operations: string;
  readonly hasPassed: boolean;
  /** The fuzzer's own report. */
  readonly report: string;
}

type FuzzOutcome =
  | { readonly kind: "ran"; readonly results: readonly FuzzResult[] }
  | { readonly kind: "not_run"; readonly why: string };

/** Fuzzes all three documents. Everything that it starts is stopped in the end. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzOutcome> {
  const tool = await provideSchemathesis(options.say);
  if (tool.kind === "not_here") {
    return { kind: "not_run", why: tool.why };
  }
  const stack = await startFuzzStack();
  try {
    const results: FuzzResult[] = [];
    for (const target of stack.targets) {
      if (options.signal.aborted) {
        return { kind: "not_run", why: "the run was ended" };
      }
      results.push(await fuzzOne(target, { modules: tool.modules, secrets: stack.secrets }, options));
    }
    return { kind: "ran", results };
  } finally {
    await stack.stop();
  }
}

interface Surroundings {
  readonly modules: string;
  readonly secrets: Readonly<Record<string, string>>;
}

async function fuzzOne(
  target: FuzzTarget,
  { modules, secrets }: Surroundings,
  options: FuzzOptions,
): Promise<FuzzResult> {
  const args = [
    ...["-m", "schemathesis.cli", "--config-file", join(FOLDER, "schemathesis.toml")],
    ...["run", join(DOCUMENTS, `${target.name}.json`), "--url", target.url, "--no-color"],
    ...["--seed", String(options.seed), "--max-examples", String(options.casesMax)],
    ...(options.secondsPerDocument === undefined ? [] : ["--max-time", String(options.secondsPerDocument)]),
  ];
  const { exit, output } = await run(args, {
    PATH: process.env["PATH"] ?? "",
    PYTHONPATH: [modules, FOLDER].join(delimiter),
    PYTHONDONTWRITEBYTECODE: "1",
    PYTHONUTF8: "1",
    ...secrets,
  });
  return {
    name: target.name,
    cases: Number(/(\d+) generated/.exec(output)?.[1] ?? 0),
    operations: /Tested: +(\d+)/.exec(output)?.[1] ?? "0",
    hasPassed: exit === 0,
    report: output.split("\n").slice(-OUTPUT_LINES).join("\n"),
  };
}

function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn("python3", args, { env, cwd: FOLDER, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return new Promise<{ readonly exit: number | null; readonly output: string }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exit) => resolve({ exit, output }));
  });
}
