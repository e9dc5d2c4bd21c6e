import { delimiter, join } from "node:path";
import { BootstrapError } from "./bootstrap-error.mjs";
import { clearStamp, isStampValid, writeStamp } from "./dependencies.mjs";
import { fetchPackage } from "./fetch-package.mjs";
import { withLock } from "./lock.mjs";
import { runTool } from "./run-tool.mjs";
import { locateNode, locatePnpm, toolFolders } from "./toolchain.mjs";

/**
 * Brings the tools and installs the dependencies, unless a quick look shows both in place. One process does it
 * at a time; what another has done meanwhile is not done again. Answers with the Node to use; rejects with a
 * BootstrapError.
 */
export async function prepare(place) {
  const node = locateNode(place.home);
  if (!isPrepared(place, node)) {
    await withLock(join(place.home, "bootstrap.lock"), place.say, (lock) => install({ ...place, lock }));
  }
  return node;
}

function isPrepared({ root, home }, { missing, version }) {
  return missing.length === 0 && isStampValid({ root, home, nodeVersion: version });
}

async function install(place) {
  const node = locateNode(place.home);
  if (isPrepared(place, node)) {
    return;
  }
  const pnpm = locatePnpm(place.home);
  for (const download of [...node.missing, ...pnpm.missing]) {
    await fetchPackage(place, download);
  }
  await installDependencies(place, { node, pnpm });
}

const LINES_MAX = 12;

async function installDependencies({ root, home, say, lock }, { node, pnpm }) {
  const installation = { root, home, nodeVersion: node.version };
  say("installing the dependencies with pnpm");
  clearStamp(installation);
  const PATH = [...toolFolders(home, node), process.env.PATH].join(delimiter);
  const args = ["install", "--frozen-lockfile", "--reporter=append-only"];
  const env = { ...pnpmSettings(), ...process.env, PATH };
  const installed = await runTool({ program: pnpm.path, args, cwd: root, env, lock });
  if (!installed.isOk) {
    const lastLines = installed.output.split("\n").slice(-LINES_MAX).join("\n");
    throw new BootstrapError(`pnpm could not install the dependencies; is there a network?\n${lastLines}`);
  }
  writeStamp(installation);
}

/**
 * No questions, and a broken network is found broken within seconds: pnpm waits for minutes of its own accord.
 * A registry that was given to npm by way of the environment is meant for pnpm too, which reads other names.
 */
function pnpmSettings() {
  const registry = process.env.npm_config_registry;
  return {
    pnpm_config_confirm_modules_purge: "false",
    pnpm_config_fetch_retries: "2",
    pnpm_config_fetch_retry_mintimeout: "1000",
    pnpm_config_fetch_retry_maxtimeout: "1000",
    ...(registry && { pnpm_config_registry: registry }),
  };
}
