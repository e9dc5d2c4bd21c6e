/** What is wrong with TLS to Redis, and what to do. The texts follow the word "Redis". */
import { type ConnectionOptions, connect } from "node:tls";

const UNKNOWN_AUTHORITY =
  "has a certificate of an authority that this process doesn't know: see REDIS_TLS_CA_FILE";
const OTHER_NAME =
  "has a certificate for another name: see the host of REDIS_URL, or name it in REDIS_TLS_SERVERNAME";
const NOT_VALID_NOW = "has a certificate that isn't valid now: renew it, and see the clocks";
const NO_TLS = "doesn't speak TLS there: REDIS_URL must begin with redis://, or lead to the port for TLS";
/** A Redis without TLS takes our handshake for the beginning of a command, and waits for its end. */
const NO_ANSWER =
  "doesn't answer to TLS: it hangs, or speaks no TLS there, and REDIS_URL must begin with redis:// or lead to the port for TLS";
const OUR_CERTIFICATE =
  "doesn't accept our certificate: see REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE, and the authorities that Redis trusts";
const CLOSED =
  "closes the connection, and over TLS doesn't say why: it wants a client certificate (REDIS_TLS_CERT_FILE), or accepts no more connections (maxclients)";

const BY_CODE: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_UNTRUSTED: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  ERR_TLS_CERT_ALTNAME_INVALID: OTHER_NAME,
  CERT_HAS_EXPIRED: NOT_VALID_NOW,
  CERT_NOT_YET_VALID: NOT_VALID_NOW,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
};

/** Alerts that the other side sends about our certificate, in the names of Node: `ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED`. */
const ALERT_ABOUT_US = /^ERR_SSL_.*ALERT.*(CERTIFICATE|UNKNOWN_CA)/;

/** Why a connection over TLS failed; undefined if its error says nothing about TLS. */
export function explainTlsError(error: unknown): string | undefined {
  const code = String(Object(error).code);
  return ALERT_ABOUT_US.test(code) ? OUR_CERTIFICATE : BY_CODE[code];
}

/** Opens a connection over TLS, sends nothing, and says why the other side ends it; undefined if it doesn't. */
export function probeTls(options: ConnectionOptions, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(options);
    const end = (why: string | undefined) => {
      socket.destroy();
      resolve(why);
    };
    let isWaiting = false;
    socket.on("connect", () => (isWaiting = true)).on("secureConnect", () => (isWaiting = false));
    socket.setTimeout(timeoutMs, () => end(isWaiting ? NO_ANSWER : undefined));
    // If nothing listens, or the name is unknown, the error says so.
    socket.on("error", (error) => end(explainTlsError(error))).on("close", () => end(CLOSED));
  });
}

/** Whether the other side speaks TLS, whoever it is. Nothing is sent to it but the handshake. */
export function speaksTls(options: ConnectionOptions, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...options, rejectUnauthorized: false });
    const end = (speaks: boolean) => {
      socket.destroy();
      resolve(speaks);
    };
    socket.setTimeout(timeoutMs, () => end(false));
    socket.on("secureConnect", () => end(true));
    socket.on("error", (error) => end(ALERT_ABOUT_US.test(String(Object(error).code))));
    socket.on("close", () => end(false));
  });
}
