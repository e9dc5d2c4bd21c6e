/** `npm run eval:ads`: see ad-model/README.md. */
import { returnToCallersFolder } from "./environment.ts";

returnToCallersFolder();
await import("../ad-model/eval-ads.ts");
