const DEFAULT_SECONDS = "60";
const SECONDS_MIN = 15;
const SECONDS_MAX = 24 * 3600;

export const OBSERVE_HELP = `Usage: npm run observe -- [--seconds N] [--keep]

Runs the whole of Adrelay beside a Prometheus with the shipped rules, under traffic and faults, and prints what every
panel of every dashboard shows and which alerts are raised. Everything is stopped and removed in the end.

  --seconds N  how long traffic lasts before the panels are read (default: ${DEFAULT_SECONDS}, at least ${SECONDS_MIN})
  --keep       go on after that until Ctrl-C, to look around in Prometheus
  --help       this text

Prometheus is taken from PATH, or installed by apt-get as root. Exit code: 0 if every panel shows something, 1 if not.
`;

/** Pure: what a call of `npm run observe` asks for. */
export function readObserveOptions({ values, words }) {
  const [word] = words;
  if (word !== undefined) {
    return { kind: "faulty", why: `observe takes no ${word}` };
  }
  const seconds = Number(values.seconds ?? DEFAULT_SECONDS);
  if (!(seconds >= SECONDS_MIN && seconds <= SECONDS_MAX)) {
    return {
      kind: "faulty",
      why: `--seconds wants a number from ${SECONDS_MIN} to ${SECONDS_MAX}, not ${values.seconds}`,
    };
  }
  return { kind: "run", durationMs: seconds * 1000, isKept: values.keep === true };
}
