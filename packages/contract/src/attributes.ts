/**
 * Reads the attributes of an end user as callers send them. What they send often comes from proxies, databases of
 * addresses and forms, and differs from user to user. So a value that can't be read is unknown, which is undefined, and
 * is no reason to refuse the request: the chat must not break because of it.
 */
import { z } from "zod";

/** The genders that `optional_context.gender` can name. */
export const GENDERS = ["male", "female", "other"] as const;
/** The highest age that `optional_context.age` can give, in years. */
export const AGE_MAX = 120;
/** The highest number of an autonomous system: 32 bits. */
export const ASN_MAX = 4_294_967_295;

/** A text that isn't blank, as it was sent. */
export function readText(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

/** In characters. No place has a longer name, and composing takes a time that grows with the square of the marks of a letter. */
const NAME_CHARS_MAX = 1000;

/** The name of a region or city, composed (NFC), with one blank between words. A longer text is none. */
export function readName(value: unknown): string | undefined {
  const text = readText(value);
  const name = text === undefined || text.length > NAME_CHARS_MAX ? undefined : composed(text);
  return name?.toLowerCase() === "unknown" ? undefined : name;
}

function composed(text: string): string {
  return text.normalize("NFC").trim().replace(/\s+/gu, " ");
}

const genderSchema = z.enum(GENDERS);

export function readGender(value: unknown): (typeof GENDERS)[number] | undefined {
  return genderSchema.safeParse(readText(value)?.trim().toLowerCase()).data;
}

/** The number of an autonomous system: a number, or a text such as `64500` or `AS64500`. The number 0 names none. */
export function readAsn(value: unknown): number | undefined {
  const asn = numberOf(typeof value === "string" ? value.trim().replace(/^as\s?/i, "") : value);
  return asn !== undefined && Number.isInteger(asn) && asn >= 1 && asn <= ASN_MAX ? asn : undefined;
}

/**
 * An age in whole years. The age 0 is unknown, because it is what many programs send for an absent number. No value
 * that needs a guess is read, since a guess might make a child an adult.
 */
export function readAge(value: unknown): number | undefined {
  const age = numberOf(value);
  return age !== undefined && Number.isInteger(age) && age >= 1 && age <= AGE_MAX ? age : undefined;
}

/** Whether a value is a number that is nobody's age, such as a year of birth. */
export function isAgeTooHigh(value: unknown): boolean {
  return (numberOf(value) ?? 0) > AGE_MAX;
}

/** A JSON number, or a text of up to ten digits. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === "string" && /^\d{1,10}$/.test(value.trim())) {
    return Number(value);
  }
  return typeof value === "number" ? value : undefined;
}

/** What programs write for a country that they don't know, in three letters. */
const NO_CODES: ReadonlySet<string> = new Set(["UNK", "NAN", "NIL"]);

/** Whether a value is a code of three letters. The interface has codes of two. */
export function isLongCountryCode(value: unknown): boolean {
  const code = typeof value === "string" ? value.trim() : "";
  return /^[a-z]{3}$/i.test(code) && !NO_CODES.has(code.toUpperCase());
}

const addressSchema = z.union([z.ipv4(), z.ipv6()]);
/** An IPv4 address as the last 32 bits of an IPv6 address (RFC 4291, section 2.5.5.2). */
const MAPPED = /^(?:0{0,4}:){1,5}ffff:(?=[\d.]+$)/i;

/**
 * An IP address: also with a port, in brackets, in quotes, with a zone, or the first of a list, as in the headers that
 * proxies write. Behind a first entry that can't be read are only proxies.
 */
export function readAddress(value: unknown): string | undefined {
  const [first = ""] = typeof value === "string" ? value.slice(0, ADDRESS_CHARS_MAX).split(",") : [];
  const written = first.trim().replace(/^"(.*)"$/, "$1");
  const address = withoutPort(written)
    .replace(/%[\w.~-]+$/, "")
    .replace(MAPPED, "");
  return addressSchema.safeParse(address).data;
}

/** Far more than an address with a zone and a port. */
const ADDRESS_CHARS_MAX = 200;

/** An IPv6 address has a port only in brackets: without them it would be part of the address. */
function withoutPort(written: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(written) ?? [];
  const [, dotted] = /^([\d.]+):\d{1,5}$/.exec(written) ?? [];
  return bracketed ?? dotted ?? written;
}
