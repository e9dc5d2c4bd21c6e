import { z } from "zod";

/** A header's name (RFC 9110, section 5.6.2). */
export const headerNameSchema = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be the name of a header");

/** A key as it can stand in a header: a line break of a secret's file, say, can't. */
export const headerKeySchema = z.string().regex(/^[\x21-\x7e]+$/, "must be printable ASCII without blanks");

/** A URL that paths are put below. */
export const baseUrlSchema = z
  .url({ protocol: /^https?$/, error: "must be an http:// or https:// URL" })
  .refine((url) => !/[?#]/.test(url), "must have neither query nor fragment");
