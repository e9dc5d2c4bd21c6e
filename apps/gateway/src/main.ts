import { startService } from "@adrelay/service-kit";
import { compose } from "./compose.ts";
import { loadGatewayConfig } from "./config.ts";

const loaded = loadGatewayConfig(process.env);
await startService(
  "gateway",
  loaded.kind === "ok" ? { kind: "ok", compose: () => compose(loaded.config, process.env) } : loaded,
);
