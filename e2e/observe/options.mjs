/** The options of `npm run observe`. JavaScript, because the bootstrap reads them on any Node from 18 on. */

/**
 * @typedef {object} ObserveOptions
 * @property {"run"} kind
 * @property {number} durationMs
 * @property {boolean} isKept Whether the stack stays until Ctrl-C.
 */

const SECONDS_DEFAULT = 60;
const SECONDS_MIN = 15;
const SECONDS_MAX = 24 * 3600;

const help = `Usage: npm run observe -- [--seconds N] [--keep]

Runs all of Adrelay and a Prometheus with the shipped rules, under traffic and faults. Prints what every panel of every
dashboard shows and which alerts fire. In the end it stops and removes everything.

  --seconds N  length of the traffic before the panels are read (default: ${SECONDS_DEFAULT}, at least ${SECONDS_MIN})
  --keep       keep all running after that until Ctrl-C, so that you can use Prometheus
  --help       this text

Uses the Prometheus on PATH, or installs it with apt-get as root. Exit code: 0 if every panel shows data, 1 if not.
`;

/** How `npm run observe` is called. */
export const OBSERVE_COMMAND = { help, texts: ["seconds"], flags: ["keep"], read };

/**
 * @param {{ texts: Readonly<Record<string, string | undefined>>, flags: ReadonlySet<string> }} parsed
 * @returns {ObserveOptions | { kind: "faulty", why: string }}
 */
function read({ texts: { seconds: text }, flags }) {
  const seconds = Number(text ?? SECONDS_DEFAULT);
  if (!(seconds >= SECONDS_MIN && seconds <= SECONDS_MAX)) {
    return {
      kind: "faulty",
      why: `--seconds must be a number from ${SECONDS_MIN} to ${SECONDS_MAX}, not ${text}`,
    };
  }
  return { kind: "run", durationMs: seconds * 1000, isKept: flags.has("keep") };
}
