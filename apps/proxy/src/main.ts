import { runMain } from "@adrelay/service-kit/main";

await runMain("proxy", process.env, async () => {
  const { PROXY_SETTINGS, loadProxyConfig, keyVariables } = await import("./config.ts");
  const { compose } = await import("./compose.ts");
  return { settings: PROXY_SETTINGS, otherNames: keyVariables, loadConfig: loadProxyConfig, compose };
});
