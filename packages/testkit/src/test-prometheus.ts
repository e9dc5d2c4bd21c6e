import { describeMissing, findPrometheus, type PrometheusPrograms } from "@adrelay/local-prometheus";

/** The programs, or why a test that needs them is skipped. */
export type TestPrometheus =
  | { readonly kind: "found"; readonly programs: PrometheusPrograms }
  | { readonly kind: "skip"; readonly why: string };

/** A Prometheus that could have been installed here and wasn't fails the test rather than skipping it. */
export class PrometheusMissingError extends Error {
  override readonly name = "PrometheusMissingError";
}

/** Finds Prometheus and promtool, or installs them where that is possible. */
export async function findTestPrometheus(): Promise<TestPrometheus> {
  const found = await findPrometheus({ log: () => {} });
  if (found.kind === "found") {
    return found;
  }
  if (found.couldBe) {
    throw new PrometheusMissingError(describeMissing(found));
  }
  return { kind: "skip", why: describeMissing(found) };
}
