/** `npm run -s sbom`: prints what is shipped, each package with its version, licence and hash, as CycloneDX JSON. */
import { readSbom } from "./supply-chain/sbom.ts";

process.stdout.write(await readSbom());
