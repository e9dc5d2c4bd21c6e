const EXIT_USAGE = 2;

type Parsed = { readonly kind: "run" | "help" | "faulty" };
type Options<P extends Parsed> = Extract<P, { readonly kind: "run" }>;

/**
 * What a command was asked for, as its parser read it. The bootstrap has checked it: the exit is for a call of the
 * script alone.
 */
export function optionsOrExit<P extends Parsed>(command: string, parsed: P): Options<P> {
  if (isRun(parsed)) {
    return parsed;
  }
  console.error(`${command} -- --help tells what it takes`);
  process.exit(EXIT_USAGE);
}

function isRun<P extends Parsed>(parsed: P): parsed is Options<P> {
  return parsed.kind === "run";
}
