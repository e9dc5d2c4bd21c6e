/**
 * The whole of an app's `main.ts`. It is a separate entry point, and loads nothing else statically, because the
 * compile cache works only for modules that are loaded after it was enabled.
 */
import { enableCompileCache } from "node:module";
import { setFlagsFromString } from "node:v8";
import type { RunnableService } from "./service.ts";
import type { ConfigResult, Environment } from "./settings.ts";

/** What makes a service. */
export interface ServiceModules<Config> {
  /** The service's settings, by name. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Names of variables that aren't settings, but that settings name. */
  otherNames?(env: Environment): readonly string[];
  loadConfig(env: Environment): ConfigResult<Config>;
  compose(config: Readonly<Config>, env: Environment): Promise<RunnableService>;
}

/**
 * V8 may decide that what a line of code allocates lives long, and allocates it in the old space from then on, until the process ends. If
 * a busy moment makes it decide so of what belongs to a request, everything that the request holds waits for a full collection.
 * In four starts of ten that cost a gateway 15 % of its CPU time and half as much memory again (docs/adr/0070).
 */
const ALLOCATES_YOUNG = "--no-allocation-site-pretenuring";

/**
 * Enables the compile cache, loads the service's modules, and runs the service until a signal stops it. The
 * exit codes are those of `startService`.
 */
export async function runMain<Config>(
  name: string,
  env: Environment,
  load: () => Promise<ServiceModules<Config>>,
): Promise<void> {
  setFlagsFromString(ALLOCATES_YOUNG);
  enableCompileCache();
  const [{ startService }, { faultsOfNodesEnvFiles }, { misspeltNames }] = await Promise.all([
    import("./service.ts"),
    import("./env-file.ts"),
    import("./setting-names.ts"),
  ]);
  const { settings, otherNames, loadConfig, compose } = await load();
  const fileFaults = faultsOfNodesEnvFiles(process.execArgv);
  await startService({
    name,
    loaded: fileFaults.length > 0 ? { kind: "faulty", faults: fileFaults } : loadConfig(env),
    misspelt: misspeltNames(Object.keys(env), Object.keys(settings), otherNames?.(env)),
    compose: (config) => compose(config, env),
  });
}
