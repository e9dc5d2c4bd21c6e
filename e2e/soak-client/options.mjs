/** The options of `npm run soak:client`. JavaScript, because the bootstrap reads them on any Node from 18 on. */

/**
 * @typedef {object} SoakCommandOptions
 * @property {"run"} kind
 * @property {number} ads
 * @property {number} downMs
 * @property {number} kills
 * @property {string | undefined} seed The caller chooses one if it is undefined.
 */

const ADS_MAX = 10_000_000;
const DOWN_SECONDS_MAX = 3600;
const KILLS_MAX = 1000;

const help = `Usage: npm run soak:client -- [--ads N] [--down-seconds N] [--kills N] [--seed S]

Runs a chat backend with @adrelay/client and a file outbox against a real relay. Many of its answers break off at a random
point. The backend is killed and started again, and the relay is down for a while. Then checks that every ad that the backend
got is acknowledged at the service once.

  --ads N            how many ads the backend gets in all (default: 10000)
  --down-seconds N   how long the relay is down, once (default: 60)
  --kills N          how often the backend is killed, once of it while the relay is down (default: 10)
  --seed S           a text that decides the times of the kills and the answers (default: a new one, printed first)
  --help             this text

Exit code: 0 if all checks held, 1 if not, 130 after Ctrl-C.
`;

/** How `npm run soak:client` is called. */
export const SOAK_COMMAND = {
  help,
  texts: ["ads", "down-seconds", "kills", "seed"],
  flags: [],
  read,
};

/**
 * @param {{ texts: Readonly<Record<string, string | undefined>> }} parsed
 * @returns {SoakCommandOptions | { kind: "faulty", why: string }}
 */
function read({ texts }) {
  const ads = Number(texts["ads"] ?? 10_000);
  const downSeconds = Number(texts["down-seconds"] ?? 60);
  const kills = Number(texts["kills"] ?? 10);
  for (const [name, value, max] of /** @type {const} */ ([
    ["ads", ads, ADS_MAX],
    ["down-seconds", downSeconds, DOWN_SECONDS_MAX],
    ["kills", kills, KILLS_MAX],
  ])) {
    if (!(Number.isInteger(value) && value >= 1 && value <= max)) {
      return { kind: "faulty", why: `--${name} must be a whole number from 1 to ${max}, not ${texts[name]}` };
    }
  }
  return { kind: "run", ads, downMs: downSeconds * 1000, kills, seed: texts["seed"] };
}
