import { runMain } from "@adrelay/service-kit/main";

await runMain("demo-model", process.env, async () => {
  const { DEMO_MODEL_SETTINGS, loadDemoModelConfig } = await import("./config.ts");
  const { composeDemoModel } = await import("./compose.ts");
  return { settings: DEMO_MODEL_SETTINGS, loadConfig: loadDemoModelConfig, compose: composeDemoModel };
});
