/**
 * `npm run audit`: says whether severe advisories are known about our packages. Exits with 1 if there are some, and with
 * 2 if the registry doesn't tell.
 */
import { auditPackages, describeAudit } from "./supply-chain/audit.ts";

const EXIT = { clean: 0, found: 1, unknown: 2 } as const;

const audit = await auditPackages();
console.log(describeAudit(audit));
process.exitCode = EXIT[audit.kind];
