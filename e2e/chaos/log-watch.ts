/** Reads every log line of every app as it comes: for bugs, for what a user wrote, for injections not booked. */

/** In every text, prompt and address of a run's traffic: it must stand in no log and in no Redis that is done. */
export const CANARY = "canary-of-a-user";

/** These lines are bugs, whatever goes on around the process. */
const BUG_EVENTS =
  /"event":"(uncaught_exception|unhandled_rejection|request_failed|background_work_failed|payload_gone|job_unreadable)"/;
const UNTRACKED = /"event":"injection_untracked".*"ad_response_id":"([0-9a-f-]{36})"/;
const EXAMPLES_MAX = 20;

export class LogWatch {
  lines = 0;
  readonly bugs: string[] = [];
  readonly leaks: string[] = [];
  /** Injections that were answered without being on the books for certain. */
  readonly untracked = new Set<string>();

  read(app: string, line: string): void {
    this.lines += 1;
    if (BUG_EVENTS.test(line) || !line.startsWith("{")) {
      keepSome(this.bugs, `${app}: ${line}`);
    }
    if (line.includes(CANARY)) {
      keepSome(this.leaks, `${app}: ${line}`);
    }
    const [, id] = UNTRACKED.exec(line) ?? [];
    if (id !== undefined) {
      this.untracked.add(id);
    }
  }
}

function keepSome(list: string[], line: string): void {
  if (list.length < EXAMPLES_MAX) {
    list.push(line);
  }
}
