/**
 * The whole of an app's `main.ts`. It is a separate entry point, and loads nothing else statically, because the
 * compile cache works only for modules that are loaded after it was enabled.
 */
import { enableCompileCache } from "node:module";
import type { RunnableService } from "./service.ts";
import type { ConfigResult, Environment } from "./settings.ts";

/** The two functions that make a service. */
export interface ServiceModules<Config> {
  loadConfig(env: Environment): ConfigResult<Config>;
  compose(config: Readonly<Config>, env: Environment): Promise<RunnableService>;
}

/**
 * Enables the compile cache, loads the service's modules, and runs the service until a signal stops it. The
 * exit codes are those of `startService`.
 */
export async function runMain<Config>(
  name: string,
  env: Environment,
  load: () => Promise<ServiceModules<Config>>,
): Promise<void> {
  enableCompileCache();
  const { startService } = await import("./service.ts");
  const { loadConfig, compose } = await load();
  await startService({ name, loaded: loadConfig(env), compose: (config) => compose(config, env) });
}
