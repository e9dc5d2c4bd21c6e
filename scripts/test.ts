/** `npm test`: every check, with a real Redis and Prometheus. The last line counts what passed and what failed. */
import { fileURLToPath } from "node:url";
import {
  isProvided,
  pinnedTestEnv,
  providePrometheus,
  provideRedis,
  stopDescendants,
} from "@adrelay/dev-servers";
import { optionsOrExit, TEST_COMMAND, type TestOptions } from "./bootstrap/command-line.mjs";
import { type Check, planChecks, runCheck } from "./test/checks.ts";
import {
  type CheckOutcome,
  formatTally,
  judgePinnedServer,
  judgeRun,
  NOTHING,
  type Tally,
} from "./test/outcome.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const EXIT_ON = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

const say = (line: string) => console.log(line);

await main(optionsOrExit("npm test", TEST_COMMAND));

async function main(options: TestOptions): Promise<void> {
  const unlessStopped = handleSignals();
  const checks = planChecks(options);
  const needsRedis = checks.some((check) => check.needsRedis);
  const hasRedis = !needsRedis || (await unlessStopped(provideRedis(say)));
  const hasPrometheus = !needsRedis || (await unlessStopped(providePrometheus(say)));
  const outcomes: CheckOutcome[] = hasPrometheus
    ? []
    : [{ kind: "static", tally: { ...NOTHING, failed: 1 } }];
  for (const check of checks) {
    outcomes.push({ kind: check.kind, tally: await runOne(check, { hasRedis, unlessStopped }) });
  }
  const { tally, remark } = judgeRun(outcomes, options.filters);
  say(remark === "" ? "" : `\n${remark}`);
  say(formatTally(tally));
  process.exit(tally.failed === 0 ? 0 : 1);
}

type UnlessStopped = <T>(work: Promise<T>) => Promise<T>;

async function runOne(
  check: Check,
  { hasRedis, unlessStopped }: { readonly hasRedis: boolean; readonly unlessStopped: UnlessStopped },
): Promise<Tally> {
  say(`\n=== ${check.name}`);
  if (check.needsRedis && !hasRedis) {
    say(`=== ${check.name}: not run, because there is no Redis`);
    return { ...NOTHING, failed: 1 };
  }
  if (check.kind === "tests" && check.server !== undefined) {
    if (isProvided(check.server)) {
      say(`=== ${check.name}: done, because the integration tests ran on that server`);
      return NOTHING;
    }
    const absence = judgePinnedServer(await unlessStopped(pinnedTestEnv(check.server, say)));
    if (absence !== undefined) {
      say(`=== ${check.name}: ${absence.remark}`);
      return absence.tally;
    }
  }
  const startedMs = performance.now();
  const { tally, remark } = await unlessStopped(runCheck(check, ROOT));
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  say(`=== ${check.name}: ${formatTally(tally)} in ${seconds} s${remark === "" ? "" : ` (${remark})`}`);
  return tally;
}

/**
 * The first signal stops all descendants of this process, then the process itself. The death of the parent counts as
 * SIGTERM. From the signal on, promises that the returned function wraps never settle: stopped checks are not counted,
 * and no further check starts.
 */
function handleSignals(): UnlessStopped {
  let isStopping = false;
  const stopOn = (signal: keyof typeof EXIT_ON) => {
    if (!isStopping) {
      isStopping = true;
      console.error(`\nnpm test: stopping (${signal})`);
      void stopDescendants(process.pid).finally(() => process.exit(EXIT_ON[signal]));
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => stopOn(signal));
  }
  process.on("disconnect", () => stopOn("SIGTERM"));
  return async (work) => {
    const outcome = await work;
    return isStopping ? new Promise(() => {}) : outcome;
  };
}
