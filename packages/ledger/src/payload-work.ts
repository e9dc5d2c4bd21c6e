import type { AdResponseId } from "@adrelay/contract";
import { z } from "zod";
import { idOf } from "./keys.ts";

/** Something to be done in the queue after a dead letter left the dead letters. */
export interface PayloadWork {
  readonly action: "requeue" | "remove";
  readonly id: AdResponseId;
  /** The note of it in the ledger: each replay of a letter makes another one. */
  readonly note: string;
}

const noteSchema = z.string().transform((note): PayloadWork => {
  const [action, member = ""] = note.split(":");
  return { action: z.enum(["requeue", "remove"]).parse(action), id: idOf(member), note };
});

/** Reads a note of payload work: `requeue:ID:TIME` or `remove:ID`. */
export function parseNote(note: unknown): PayloadWork {
  return noteSchema.parse(note);
}

export function parseNotes(notes: unknown): PayloadWork[] {
  return z.array(noteSchema).parse(notes);
}
