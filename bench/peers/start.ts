/** Starts the other gateways for models, each as one process in front of the model of the benchmark. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@adrelay/dev-servers";
import { startChild } from "../processes.ts";
import type { Bench } from "../rounds.ts";
import type { Served } from "../sides.ts";
import { type PeerName, scriptOf } from "./install.ts";

export interface PeerPlace {
  /** Where the peer is installed. */
  readonly folder: string;
  readonly modelUrl: string;
  /** The name of the model that will be asked for. */
  readonly modelName: string;
}

export interface Peer extends Served {
  /** How a call says where it goes. */
  readonly headers: Readonly<Record<string, string>>;
}

export async function startPeer(bench: Bench, name: PeerName, place: PeerPlace): Promise<Peer> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  switch (name) {
    case "portkey": {
      const child = await startChild({
        name,
        script: scriptOf(name, place.folder),
        args: [`--port=${port}`, "--headless"],
        env: { NODE_ENV: "production" },
        folder: bench.folder,
        readyUrl: origin,
      });
      const headers = {
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `${place.modelUrl}/v1`,
      };
      return { ...child, origin, headers };
    }
    case "litellm": {
      const child = await startChild({
        name,
        program: join(place.folder, "bin/python"),
        script: scriptOf(name, place.folder),
        args: ["--config", writeConfig(bench, place), "--host", "127.0.0.1", "--port", `${port}`],
        env: LITELLM_SETTINGS,
        folder: bench.folder,
        readyUrl: `${origin}/health/liveliness`,
        startTimeoutMs: LITELLM_START_TIMEOUT_MS,
      });
      return { ...child, origin, headers: {} };
    }
    default:
      return name satisfies never;
  }
}

/** It loads for a long time on a busy machine. */
const LITELLM_START_TIMEOUT_MS = 240_000;
/** Without a key of its own, which it would look up for each call. */
const LITELLM_SETTINGS = {
  // All events of the measured streams are alike. By itself LiteLLM ends a stream after a hundred of those.
  REPEATED_STREAMING_CHUNK_LIMIT: "1000000",
  LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
  LITELLM_LOCAL_MODEL_COST_MAP: "True",
  LITELLM_TELEMETRY: "False",
  LITELLM_LOG: "ERROR",
};

/** LiteLLM routes by the name of the model. */
function writeConfig({ folder }: Bench, { modelUrl, modelName }: PeerPlace): string {
  const params = { model: `openai/${modelName}`, api_base: `${modelUrl}/v1`, api_key: "key" };
  const file = join(folder, "litellm.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ model_list: [{ model_name: modelName, litellm_params: params }] }));
  return file;
}
