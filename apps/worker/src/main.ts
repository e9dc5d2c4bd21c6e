import { runMain } from "@adrelay/service-kit/main";

await runMain("worker", process.env, async () => ({
  loadConfig: (await import("./config.ts")).loadWorkerConfig,
  compose: (await import("./compose.ts")).compose,
}));
