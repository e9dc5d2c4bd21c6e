/** The chaos suite, for `npm run chaos`. */
export { describeFault } from "./fault.ts";
export { planFaults } from "./fault-plan.ts";
export { formatChecks, hasHeld } from "./report.ts";
export { runChaos } from "./run-chaos.ts";
