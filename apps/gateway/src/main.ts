import { enableCompileCache } from "node:module";

// Before anything else is loaded: a third of the time that the modules take, from the second start on.
enableCompileCache();

const { startService } = await import("@adrelay/service-kit");
const { loadGatewayConfig } = await import("./config.ts");
const { compose } = await import("./compose.ts");

const loaded = loadGatewayConfig(process.env);
await startService(
  "gateway",
  loaded.kind === "ok" ? { kind: "ok", compose: () => compose(loaded.config, process.env) } : loaded,
);
