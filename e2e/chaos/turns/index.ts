/** The turns of the chaos suite: streams through the model proxy. */
export { describeTurnFault, planTurnFaults } from "./faults.ts";
export { runTurns } from "./run-turns.ts";
