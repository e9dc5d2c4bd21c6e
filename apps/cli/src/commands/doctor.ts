import { type DoctorCheck, doctorReportSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { showAnswer } from "../session.ts";
import { printable, type Terminal } from "../terminal.ts";

export const addDoctor = defineCommand({
  words: "doctor",
  describe: "Looks at all that the relay stands on; fails if it finds a fault",
  options: (yargs) => yargs,
  run: async (_args, session) => {
    const answer = await session.client.call({ path: "/doctor", schema: doctorReportSchema });
    const exit = showAnswer(session, answer, ({ checks }) => {
      for (const check of checks) {
        showCheck(session.terminal, check);
      }
    });
    const hasFault = answer.kind === "ok" && answer.value.checks.some(({ status }) => status === "fail");
    return hasFault ? EXIT.refused : exit;
  },
});

function showCheck(terminal: Terminal, { name, status, detail }: DoctorCheck): void {
  const { green, yellow, red } = terminal.color;
  const paint = { ok: green, warn: yellow, fail: red }[status];
  terminal.print(`${paint(status.padEnd(4))}  ${printable(`${name}: ${detail}`)}`);
}
