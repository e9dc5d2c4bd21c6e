/**
 * Fetches other gateways for models, at fixed versions, into .adrelay/peers. They are compared with ours and are no dependencies:
 * nothing but `npm run bench -- --peers` fetches or starts them.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const PEERS = {
  portkey: { title: "Portkey gateway 1.15.2", package: "@portkey-ai/gateway@1.15.2" },
  litellm: { title: "LiteLLM 1.108.7", package: "litellm[proxy]==1.108.7" },
} as const;
export type PeerName = keyof typeof PEERS;

/** Where a peer is, or the reason why it is not. */
export type Installed =
  | { readonly kind: "installed"; readonly folder: string }
  | { readonly kind: "failed"; readonly why: string };

/** With the later releases that it allows, Portkey answers each stream with 500. */
const PORTKEY_SERVER = "@hono/node-server@1.13.8";
const PEERS_DIR = fileURLToPath(new URL("../../.adrelay/peers", import.meta.url));
const STEP_TIMEOUT_MS = 600_000;
const WHY_CHARS_MAX = 500;

/** Installs a peer unless it is there already. Never rejects. */
export async function installPeer(name: PeerName, say: (line: string) => void): Promise<Installed> {
  const [, version] = PEERS[name].title.split(/ (?=\S+$)/);
  const folder = join(PEERS_DIR, `${name}-${version}`);
  if (existsSync(scriptOf(name, folder))) {
    return { kind: "installed", folder };
  }
  say(`fetching ${PEERS[name].title}`);
  mkdirSync(folder, { recursive: true });
  try {
    for (const [program, args] of stepsOf(name, folder)) {
      await promisify(execFile)(program, args, { timeout: STEP_TIMEOUT_MS, cwd: folder });
    }
    return { kind: "installed", folder };
  } catch (error) {
    return { kind: "failed", why: String(error).slice(0, WHY_CHARS_MAX) };
  }
}

/** The file that starts a peer. It is written last. */
export function scriptOf(name: PeerName, folder: string): string {
  switch (name) {
    case "portkey":
      return join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js");
    case "litellm":
      return join(folder, "bin/litellm");
    default:
      return name satisfies never;
  }
}

type Step = readonly [program: string, args: readonly string[]];

function stepsOf(name: PeerName, folder: string): readonly Step[] {
  switch (name) {
    case "portkey": {
      const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--legacy-peer-deps"];
      return [["npm", ["install", "--prefix", folder, ...flags, PEERS.portkey.package, PORTKEY_SERVER]]];
    }
    case "litellm":
      return [
        ["python3", ["-m", "venv", folder]],
        [join(folder, "bin/pip"), ["install", "--quiet", PEERS.litellm.package]],
      ];
    default:
      return name satisfies never;
  }
}
