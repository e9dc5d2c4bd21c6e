import { runMain } from "@adrelay/service-kit/main";

await runMain("ad-server", process.env, async () => {
  const { AD_SERVER_SETTINGS, loadAdServerConfig } = await import("./config.ts");
  const { composeAdServer } = await import("./compose.ts");
  return { settings: AD_SERVER_SETTINGS, loadConfig: loadAdServerConfig, compose: composeAdServer };
});
