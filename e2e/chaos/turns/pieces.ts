/** Finds out which calls an acknowledged text came from. */
import type { TurnEvidence } from "./evidence.ts";
import type { CallRecord } from "./stream-call.ts";

/** What a turn's steps were acknowledged with, by their calls. A step without a text isn't in it. */
export type Pieces =
  | { readonly kind: "read"; readonly texts: ReadonlyMap<CallRecord, string> }
  | { readonly kind: "faulty"; readonly why: string };

const BETWEEN_STEPS = "\n\n";

/** Whether the model saw the ad of which the caller was told. */
export const hasAd = ({ ad }: CallRecord): boolean => ad === "injected";

/** Each call's text begins with a mark of its own, and none has an empty line. */
export function readPieces({ calls, untold }: TurnEvidence, acknowledged: string): Pieces {
  const candidates = [...calls.filter(hasAd), ...untold];
  const texts = new Map<CallRecord, string>();
  for (const piece of acknowledged === "" ? [] : acknowledged.split(BETWEEN_STEPS)) {
    const call = candidates.find(({ modelText }) => piece !== "" && modelText.startsWith(piece));
    if (call === undefined || texts.has(call)) {
      return { kind: "faulty", why: `a piece of ${piece.length} characters isn't of its steps` };
    }
    const next = [...texts.keys()].find((earlier) => endsJoining(call) < earlier.startedAtMs);
    if (next !== undefined) {
      return { kind: "faulty", why: `step ${next.step} stands before step ${call.step}` };
    }
    texts.set(call, piece);
  }
  return { kind: "read", texts };
}

/** Steps are numbered as they join. A call whose headers have come has joined. */
const endsJoining = ({ headersAtMs = Number.POSITIVE_INFINITY }: CallRecord) => headersAtMs;
