import { enableCompileCache } from "node:module";

// Before anything else is loaded: a third of the time that the modules take, from the second start on.
enableCompileCache();

const { startService } = await import("@adrelay/service-kit");
const { loadAdServerConfig } = await import("./config.ts");
const { composeAdServer } = await import("./compose.ts");

const settings = loadAdServerConfig(process.env);
await startService(
  "ad-server",
  settings.kind === "ok" ? { kind: "ok", compose: () => composeAdServer(settings.config) } : settings,
);
