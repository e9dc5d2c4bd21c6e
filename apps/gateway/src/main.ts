import { runMain } from "@adrelay/service-kit/main";

await runMain("gateway", process.env, async () => {
  const { GATEWAY_SETTINGS, loadGatewayConfig, keyVariables } = await import("./config.ts");
  const { compose } = await import("./compose.ts");
  return { settings: GATEWAY_SETTINGS, otherNames: keyVariables, loadConfig: loadGatewayConfig, compose };
});
