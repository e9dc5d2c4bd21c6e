import { runMain } from "@adrelay/service-kit/main";

await runMain("gateway", process.env, async () => ({
  loadConfig: (await import("./config.ts")).loadGatewayConfig,
  compose: (await import("./compose.ts")).compose,
}));
