/** The audit, with the real pnpm and a registry on a real socket. */
import { once } from "node:events";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { auditPackages, describeAudit } from "./audit.ts";

/** A registry that answers each question for advisories so. */
async function startRegistry(status: number, answer: unknown): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
}

function advisoryOf(severity: string, versions: string) {
  return {
    id: 1,
    url: "https://advisories.example/1",
    title: "A hole",
    severity,
    vulnerable_versions: versions,
    cwe: ["CWE-1"],
    cvss: { score: 7.5, vectorString: "CVSS:3.1/AV:N" },
  };
}

test("a severe advisory about a shipped package is found", async () => {
  const registry = await startRegistry(200, { undici: [advisoryOf("high", "<99")] });
  const audit = await auditPackages(registry);
  expect(audit.kind).toBe("found");
  expect(describeAudit(audit)).toContain("high: undici <99: A hole (https://advisories.example/1)");
});

test("advisories about other versions, and those that aren't severe, are no findings", async () => {
  const answer = { undici: [advisoryOf("high", "<1")], zod: [advisoryOf("moderate", "<99")] };
  const audit = await auditPackages(await startRegistry(200, answer));
  expect(audit).toEqual({ kind: "clean", packages: expect.any(Number) });
  expect(audit.kind === "clean" && audit.packages).toBeGreaterThan(100);
});

test("a registry without advisories is told apart from one that knows of none", async () => {
  const audit = await auditPackages(await startRegistry(405, {}));
  expect(describeAudit(audit)).toMatch(/^advisories can't be had from the registry: .*405/);
});

test("without a network, advisories are unknown", async () => {
  const audit = await auditPackages("http://127.0.0.1:9/");
  expect(describeAudit(audit)).toMatch(/^advisories can't be had from the registry: .*127\.0\.0\.1:9/);
});
