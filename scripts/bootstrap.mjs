/**
 * The commands of package.json (`npm start`, `npm test`, `npm run chaos` …) run this first. It works on any Node from 18.3
 * on and without dependencies. It fetches the Node and the pnpm that Adrelay needs, installs the dependencies, and then
 * runs `scripts/<command>.ts`.
 */
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseCommandLine } from "./bootstrap/command-line.mjs";
import { prepare } from "./bootstrap/install.mjs";
import { BootstrapError, runScript } from "./bootstrap/run-process.mjs";
import { toolFolders } from "./bootstrap/toolchain.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HOME = join(ROOT, ".adrelay");
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** @param {string} line */
const say = (line) => console.error(`adrelay: ${line}`);

process.exitCode = await main(process.argv.slice(2));

/** Resolves to the exit code. @param {readonly string[]} words */
async function main(words) {
  const request = parseCommandLine(words);
  switch (request.kind) {
    case "help":
      console.log(request.text);
      return 0;
    case "faulty":
      say(`${request.why}\n\n${request.text}`);
      return EXIT_USAGE;
    default:
      return run(request).catch(explain);
  }
}

/** @param {{ command: string, args: readonly string[] }} request */
async function run({ command, args }) {
  const node = await prepare({ root: ROOT, home: HOME, say });
  const PATH = [...toolFolders(HOME, node), join(ROOT, "node_modules", ".bin"), process.env["PATH"]].join(
    delimiter,
  );
  const script = join(ROOT, "scripts", `${command}.ts`);
  return runScript({ node: node.path, script, args, cwd: ROOT, PATH });
}

/** @param {unknown} error */
function explain(error) {
  if (error instanceof BootstrapError) {
    say(error.message);
    return error.exitCode ?? EXIT_FAILED;
  }
  throw error;
}
