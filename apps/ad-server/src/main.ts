import { runMain } from "@adrelay/service-kit/main";

await runMain("ad-server", process.env, async () => ({
  loadConfig: (await import("./config.ts")).loadAdServerConfig,
  compose: (await import("./compose.ts")).composeAdServer,
}));
