/** The options of `npm run pack:client` and `npm run pack:cli`. */

/** @typedef {{ kind: "run", folder: string | undefined }} PackOptions */

/** @type {import("../bootstrap/command-line.mjs").Command<PackOptions>} */
export const PACK_CLIENT_COMMAND = packCommand("npm run pack:client", "the client for callers");

/** @type {import("../bootstrap/command-line.mjs").Command<PackOptions>} */
export const PACK_CLI_COMMAND = packCommand("npm run pack:cli", "the command adrelay");

/**
 * @param {string} name As the user calls it.
 * @param {string} subject
 * @returns {import("../bootstrap/command-line.mjs").Command<PackOptions>}
 */
function packCommand(name, subject) {
  return {
    help: `Usage: ${name} [-- FOLDER]

Packs ${subject} as one archive for npm (.tgz), and prints its path.

  FOLDER       where the archive goes (default: .adrelay); it is made if it is missing, and nothing
               else in it changes
  --help       this text
`,
    texts: [],
    flags: [],
    takesWords: true,
    read: ({ words: [folder, surplus] }) =>
      surplus === undefined
        ? { kind: "run", folder }
        : { kind: "faulty", why: `only one folder can be given, not also ${surplus}` },
  };
}
