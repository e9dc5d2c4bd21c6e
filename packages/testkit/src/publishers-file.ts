/** A publishers' file for tests. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TestPublisher {
  readonly id: string;
  readonly providerUrl: string;
  /** Name of the environment variable that has the key at the provider. */
  readonly keyEnv: string;
  /** Further members as YAML, such as `unknown_ack: reject`. */
  readonly more?: string;
}

export interface PublishersFile {
  readonly path: string;
  remove(): void;
}

/** The key by which a publisher of the file calls the gateway. */
export function callerKeyOf(publisher: string): string {
  return `caller-${publisher}`;
}

/** Publishers with the same URL and the same variable share a provider account. */
export function writePublishersFile(publishers: readonly TestPublisher[]): PublishersFile {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-publishers-"));
  const entries = publishers.map(({ id, providerUrl, keyEnv, more }) => {
    const digest = createHash("sha256").update(callerKeyOf(id)).digest("hex");
    const provider = `{ url: "${providerUrl}", api_key_env: ${keyEnv} }`;
    return `  - { id: ${id}, name: ${id}, key_sha256: ["${digest}"], provider: ${provider}${more === undefined ? "" : `, ${more}`} }\n`;
  });
  const path = join(folder, "publishers.yaml");
  writeFileSync(path, `publishers:\n${entries.join("")}`);
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
