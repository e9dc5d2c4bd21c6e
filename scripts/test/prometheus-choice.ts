import { describeMissing, findPrometheus } from "@adrelay/local-prometheus";

/**
 * Finds or installs a Prometheus for this process and those that it starts, and says what came of it. False if
 * that is a fault: it could have been installed here. Where it couldn't, the tests that need one are skipped.
 */
export async function providePrometheus(say: (line: string) => void): Promise<boolean> {
  const found = await findPrometheus({ log: say });
  // Looked for once: what isn't on PATH by now won't be later.
  process.env["ADRELAY_PROMETHEUS"] = "path";
  if (found.kind === "found") {
    say(`Prometheus: ${found.programs.prometheus}`);
    return true;
  }
  say(`Prometheus: ${describeMissing(found)}`);
  say(found.couldBe ? "" : "The tests of rules and dashboards on a real Prometheus are skipped.");
  return !found.couldBe;
}
