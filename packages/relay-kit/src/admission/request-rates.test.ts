import { quotasOf } from "@adrelay/core";
import { openDirectory } from "@adrelay/provider";
import { expect, test } from "vitest";
import { Admission, type OperationName } from "./admission.ts";

const NO_LIMIT = { bytes: Number.POSITIVE_INFINITY };
const QUOTAS = quotasOf(
  {},
  {
    requestsPerSecond: 10,
    burst: 20,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    bytesBurst: Number.POSITIVE_INFINITY,
    injectionsInFlight: Number.POSITIVE_INFINITY,
    bytesInFlight: NO_LIMIT,
    queuedBytes: NO_LIMIT,
    deadBytes: NO_LIMIT,
    unknownBytes: NO_LIMIT,
  },
);

function onePublisher() {
  const provider = {
    url: "http://127.0.0.1:1",
    apiKey: "key-of-the-relay",
    apiKeyHeader: "X-Key",
    tlsFiles: { ca: undefined, clientCert: undefined, clientKey: undefined },
  };
  const opened = openDirectory({ file: undefined, apiKeys: [], provider, env: () => undefined });
  const [publisher] = opened.kind === "ok" ? opened.directory.current : [];
  return publisher ?? expect.fail("there is no publisher");
}

test("refused injections leave the ads that were sold their acknowledgments", () => {
  const admission = new Admission({ quotas: QUOTAS, callsMax: 1000, bytesMax: 1000, onRefused: () => {} });
  const publisher = onePublisher();
  const admittedOf = (operation: OperationName, wanted: number) =>
    Array.from({ length: wanted }, () =>
      admission.admit(publisher, { operation, announcedBytes: 0 }, 0),
    ).filter(({ kind }) => kind === "admitted").length;
  expect(admittedOf("start_injection", 100)).toBe(20);
  expect(admittedOf("look_up", 100)).toBe(20);
  expect(admittedOf("acknowledge", 20)).toBe(20);
  expect(admittedOf("acknowledge", 1)).toBe(0);
});
