/** What each process of the relay is made from, whatever it does. */
import type { PublisherDirectory } from "@adrelay/provider";
import {
  type COMMON_SETTINGS,
  createLogger,
  createRegistry,
  type Environment,
  Lifecycle,
  openTracing,
  Periodic,
  type PROVIDER_SETTINGS,
  type Tracing,
} from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { z } from "zod";
import { PublishersWatch } from "../publishers/publishers-watch.ts";
import { FILES_LOOK_INTERVAL_MS } from "./file-watch.ts";

/** The settings that gateway, worker and proxy share. */
export type RelaySettings = z.infer<z.ZodObject<typeof COMMON_SETTINGS & typeof PROVIDER_SETTINGS>>;

export interface RelayConfig {
  readonly settings: RelaySettings;
  readonly publishers: PublisherDirectory;
}

/** The name of a process, as its log, its traces and its heartbeat show it. */
export type RelayRole = "gateway" | "worker" | "proxy";

/** What the parts of a process are made from. */
export interface RelayBase<Config extends RelayConfig = RelayConfig> {
  readonly role: RelayRole;
  readonly config: Config;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly tracing: Tracing;
  readonly registry: Registry;
}

/** Makes what the parts of a process are made from. The traces stop with the lifecycle. */
export async function openRelayBase<Config extends RelayConfig>(
  role: RelayRole,
  config: Config,
  env: Environment,
): Promise<RelayBase<Config>> {
  const log = createLogger(role, config.settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const tracing = await openTracing({ service: `adrelay-${role}`, env, log });
  lifecycle.onStopLast("traces", () => tracing.stop());
  return { role, config, log, lifecycle, tracing, registry: createRegistry() };
}

/** Keeps the publishers and keys as their files are. */
export async function watchPublishers({
  config,
  log,
  lifecycle,
  registry,
}: RelayBase): Promise<PublishersWatch> {
  const watch = new PublishersWatch({ directory: config.publishers, log, registry });
  const onError = (err: unknown) => log.error({ event: "publishers_look_failed", err });
  await lifecycle.start("publishers", new Periodic(() => watch.look(), FILES_LOOK_INTERVAL_MS, onError));
  return watch;
}
