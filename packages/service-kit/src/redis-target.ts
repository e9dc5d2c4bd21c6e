/** Where Redis is and how it is reached, from the settings. Certificates are read once, at start. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { FieldFault } from "@adrelay/contract";
import { z } from "zod";
import type { RedisTarget } from "./redis.ts";

/** The settings of Redis' address. */
export interface RedisAddressSettings {
  readonly REDIS_URL: string;
  readonly REDIS_TLS_CA_FILE?: string | undefined;
  readonly REDIS_TLS_CERT_FILE?: string | undefined;
  readonly REDIS_TLS_KEY_FILE?: string | undefined;
  readonly REDIS_TLS_SERVERNAME?: string | undefined;
}

/** The path of a file with certificates in PEM. Becomes its content. */
export const certificatesFileType = pemFileType((pem) => new X509Certificate(pem));

/** The path of a file with a private key in PEM, without passphrase. Becomes its content. */
export const keyFileType = pemFileType(createPrivateKey);

function pemFileType(parse: (pem: string) => unknown) {
  return z.string().transform((path, context) => {
    try {
      const pem = readFileSync(path, "utf8");
      parse(pem);
      return pem;
    } catch (error) {
      const isUnread = error instanceof Error && "syscall" in error && "code" in error;
      // Somebody may have written the key itself in place of its path, so only the path of a file that was read is shown.
      const message = isUnread
        ? `the file that it names can't be read (${error.code})`
        : `the file ${path} is not in PEM, or is damaged or encrypted`;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    }
  });
}

/** What doesn't fit together in the settings. */
export function redisTargetFaults(settings: RedisAddressSettings): FieldFault[] {
  const { REDIS_URL, REDIS_TLS_CERT_FILE: cert, REDIS_TLS_KEY_FILE: key } = settings;
  const names = Object.entries(settings).flatMap(([name, value]) =>
    name.startsWith("REDIS_TLS_") && value !== undefined ? [name] : [],
  );
  if (!REDIS_URL.startsWith("rediss:")) {
    return names.map((path) => ({ path, message: "needs a REDIS_URL that begins with rediss://" }));
  }
  if ((cert === undefined) !== (key === undefined)) {
    const path = cert === undefined ? "REDIS_TLS_CERT_FILE" : "REDIS_TLS_KEY_FILE";
    return [{ path, message: "is not set: a client certificate and its key need each other" }];
  }
  const isPair =
    cert === undefined ||
    key === undefined ||
    new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  return isPair ? [] : [{ path: "REDIS_TLS_KEY_FILE", message: "doesn't belong to the certificate" }];
}

/** The target of these settings, which have no faults. */
export function redisTargetOf(settings: RedisAddressSettings): RedisTarget {
  const { REDIS_TLS_CA_FILE: ca, REDIS_TLS_CERT_FILE: cert, REDIS_TLS_KEY_FILE: key } = settings;
  const pems = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
  return {
    url: settings.REDIS_URL,
    secureContext: Object.keys(pems).length === 0 ? undefined : createSecureContext(pems),
    serverName: settings.REDIS_TLS_SERVERNAME,
  };
}
