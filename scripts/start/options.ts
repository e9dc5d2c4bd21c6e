import { parseArgs } from "node:util";

/** What `npm start` was asked for. */
export type StartOptions =
  | { readonly kind: "run"; readonly port: number | undefined; readonly hasDemo: boolean }
  | { readonly kind: "help" }
  | { readonly kind: "faulty"; readonly why: string };

export const START_HELP = `Usage: npm start -- [--port N] [--no-demo]

Runs the whole of Adrelay on this machine until Ctrl-C: Redis, ad server, gateway, worker.
Data are kept under .adrelay/ (or ADRELAY_HOME) and outlive a restart; so do the keys.

  --port N     port of the gateway (default: GATEWAY_PORT, or 8080)
  --no-demo    don't send the first injection and acknowledgment
  --help       this text

Settings come from the environment and from .env; .env.example lists them all.
`;

const PORT_MAX = 65_535;

export function parseStartOptions(args: readonly string[]): StartOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      allowNegative: true,
      options: {
        port: { type: "string" },
        demo: { type: "boolean", default: true },
        help: { type: "boolean" },
      },
    });
    if (values.help === true) {
      return { kind: "help" };
    }
    const port = values.port === undefined ? undefined : Number(values.port);
    if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= PORT_MAX)) {
      return { kind: "faulty", why: `--port must be a whole number from 1 to ${PORT_MAX}` };
    }
    return { kind: "run", port, hasDemo: values.demo };
  } catch (error) {
    return { kind: "faulty", why: error instanceof Error ? error.message : String(error) };
  }
}
