/** A soak of the client: a backend under kills, while the relay is down for a while. */
export { runSoak, type SoakResult } from "./run-soak.ts";
