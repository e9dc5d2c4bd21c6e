/** The command `adrelay publishers check`: the part of the doctor's report that is about publishers. */
import { type DoctorCheck, doctorReportSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { showFailure } from "../session.ts";
import { showCheck } from "../status-and-doctor.ts";

export const addPublishersCheck = defineCommand({
  words: "check",
  describe: "Checks each publisher's provider and key there, the publishers' file, and callers' keys",
  options: (yargs) => yargs,
  run: async (_args, session) => {
    const answer = await session.client.call({ path: "/doctor", schema: doctorReportSchema });
    if (answer.kind === "failed") {
      return showFailure(session, answer.failure);
    }
    const { at, checks: all } = answer.value;
    const checks = all.filter(isAboutPublishers);
    if (session.isJson) {
      session.terminal.print(JSON.stringify({ at, checks }));
    } else {
      for (const check of checks) {
        showCheck(session.terminal, check);
      }
    }
    return checks.some(({ status }) => status === "fail") ? EXIT.refused : EXIT.done;
  },
});

/** The checks of providers have the name of the account behind a colon. */
function isAboutPublishers({ name }: DoctorCheck): boolean {
  return /^(provider:|providers$|publisher)/.test(name);
}
