import { startService } from "@adrelay/service-kit";
import { compose } from "./compose.ts";
import { loadWorkerConfig } from "./config.ts";

const loaded = loadWorkerConfig(process.env);
await startService(
  "worker",
  loaded.kind === "ok" ? { kind: "ok", compose: () => compose(loaded.config, process.env) } : loaded,
);
