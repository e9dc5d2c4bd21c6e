import { runMain } from "@adrelay/service-kit/main";

await runMain("worker", process.env, async () => {
  const { WORKER_SETTINGS, loadWorkerConfig, keyVariables } = await import("./config.ts");
  const { compose } = await import("./compose.ts");
  return { settings: WORKER_SETTINGS, otherNames: keyVariables, loadConfig: loadWorkerConfig, compose };
});
