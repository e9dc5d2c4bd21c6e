/** The list of what is shipped: the apps, and all packages that they need to run. */
import { BootstrapError } from "../bootstrap/run-process.mjs";
import { runPnpm } from "./run-pnpm.ts";

/** The apps, each with the packages that it needs. Tools of development and tests aren't shipped. */
const SHIPPED = [
  "app-gateway",
  "app-worker",
  "app-proxy",
  "app-ad-server",
  "app-demo-model",
  "app-cli",
  "client",
].flatMap((app) => ["--filter-prod", `@adrelay/${app}...`]);

/** CycloneDX JSON. It is made from the lock file and the installed packages, without the network. */
export async function readSbom(): Promise<string> {
  const form = ["--sbom-format", "cyclonedx", "--sbom-spec-version", "1.6", "--sbom-type", "application"];
  const { exitCode, stdout, stderr } = await runPnpm(["sbom", "--prod", ...form, ...SHIPPED]);
  if (exitCode !== 0) {
    throw new BootstrapError(`pnpm sbom failed: ${stderr}`);
  }
  return stdout;
}
