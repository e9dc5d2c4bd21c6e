/** The settings of Node, its threads and its allocator, mostly to keep a process small. Only deploy/Dockerfile has them. */
import { readFileSync } from "node:fs";

const DOCKERFILE = new URL("../../../deploy/Dockerfile", import.meta.url);
const SETTING = /\b(NODE_OPTIONS|MALLOC_[A-Z_]+|UV_THREADPOOL_SIZE)=(?:"([^"]*)"|(\S+))/g;

/** As environment variables. What `env` sets wins: of Node's options the last one holds. */
export function imageMemorySettings(env: NodeJS.ProcessEnv = {}): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const line of readFileSync(DOCKERFILE, "utf8").split("\n")) {
    for (const [, name = "", quoted, plain = ""] of line.startsWith("ENV ") ? line.matchAll(SETTING) : []) {
      const [ours, theirs] = [quoted ?? plain, env[name]];
      settings[name] = name === "NODE_OPTIONS" ? `${ours} ${theirs ?? ""}`.trim() : (theirs ?? ours);
    }
  }
  return settings;
}

const SHARE = /--max-old-space-size-percentage=(\d+)/;

/** The same, with the heap that a container of so much memory would have. */
export function containerMemorySettings(containerMib: number): Record<string, string> {
  const settings = imageMemorySettings();
  const heapMib = (share: string) => Math.floor((Number(share) * containerMib) / 100);
  return {
    ...settings,
    NODE_OPTIONS: String(settings["NODE_OPTIONS"]).replace(
      SHARE,
      (_option, share: string) => `--max-old-space-size=${heapMib(share)}`,
    ),
  };
}
