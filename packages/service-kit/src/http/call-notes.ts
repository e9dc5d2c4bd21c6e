import type { Response } from "express";
import { type Notes, recordOf } from "./request-record.ts";

/** What the handling of a request has to say in its one log line. */
export class CallNotes {
  add(response: Response, fields: Notes): void {
    Object.assign(recordOf(response).notes, fields);
  }

  of(response: Response): Notes {
    return recordOf(response).notes;
  }
}
