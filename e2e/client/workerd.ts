/** An edge worker in workerd, the open runtime of Cloudflare Workers. */
import { spawn } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freeLanePort } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";

export interface RunningWorker {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the worker of `programs` with the packed client. `folder` has both. */
export async function startWorker(
  workerd: string,
  folder: string,
  bindings: Readonly<Record<string, string>>,
): Promise<RunningWorker> {
  const port = await freeLanePort();
  // A worker's modules are named one by one, and found by these names.
  copyFileSync(join(folder, "node_modules/@adrelay/client/dist/esm/index.js"), join(folder, "client.mjs"));
  const file = join(folder, "worker.capnp");
  writeFileSync(file, configOf(port, bindings));
  const child = spawn(workerd, ["serve", file], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => {
    if (child.exitCode !== null) {
      throw new TypeError(`workerd ended: ${errors}`);
    }
    await fetch(`${url}/ready`);
  });
  return {
    url,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function configOf(port: number, bindings: Readonly<Record<string, string>>): string {
  const list = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = "${text}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .answers),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const answers :Workerd.Worker = (
  compatibilityDate = "2025-06-01",
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "answers.mjs", esModule = embed "answers.mjs"),
    (name = "@adrelay/client", esModule = embed "client.mjs"),
  ],
  bindings = [${list.join(", ")}],
);
`;
}
