/** The chaos suite, for `npm run chaos`. */
export { formatChecks, haveAllHeld } from "./checks/check.ts";
export { describeFault } from "./fault.ts";
export { planFaults } from "./fault-plan.ts";
export { runChaos } from "./run-chaos.ts";
export { describeTurnFault, planTurnFaults, runTurns } from "./turns/index.ts";
