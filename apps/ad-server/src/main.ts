import { startService } from "@adrelay/service-kit";
import { composeAdServer } from "./compose.ts";
import { loadAdServerConfig } from "./config.ts";

const settings = loadAdServerConfig(process.env);
await startService(
  "ad-server",
  settings.kind === "ok" ? { kind: "ok", compose: () => composeAdServer(settings.config) } : settings,
);
