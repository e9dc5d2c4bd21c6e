import { cpus, release, totalmem } from "node:os";
import { startBenchRedis } from "../processes/bench-redis.ts";

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  readonly redis: string;
  readonly atIso: string;
}

const BYTES_PER_GB = 1e9;

export async function describeMachine(): Promise<Machine> {
  await using redis = await startBenchRedis();
  const [, version = "unknown"] = /^redis_version:(\S+)/m.exec(await redis.client.info("server")) ?? [];
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGb: Math.round(totalmem() / BYTES_PER_GB),
    kernel: release(),
    node: process.version,
    redis: version,
    atIso: new Date().toISOString(),
  };
}

export function formatMachine({ cpu, cores, memoryGb, kernel, node, redis, atIso }: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGb} GB, kernel ${kernel}, Node ${node}, Redis ${redis}, ${atIso}`;
}
