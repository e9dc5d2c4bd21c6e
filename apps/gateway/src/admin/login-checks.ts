/** The doctor's checks of who may log in to this gateway's ops listener, and of who tries. */
import type { DoctorCheck } from "@adrelay/contract";
import { type LoginGuard, RECENT_LOGIN_MINUTES } from "@adrelay/service-kit";
import type { OperatorsWatch } from "./operators-watch.ts";

/** A person who mistypes a token, or one service with an old one for a moment, makes fewer. */
const REFUSED_WARNED = 20;

/** Whether somebody sends many wrong tokens. Each process counts its own. */
export function checkLogins({ recentRefusals }: Pick<LoginGuard, "recentRefusals">): DoctorCheck {
  const name = "logins";
  const what = `${recentRefusals} wrong tokens at this gateway in the last ${RECENT_LOGIN_MINUTES} minutes`;
  return recentRefusals < REFUSED_WARNED
    ? { name, status: "ok", detail: what }
    : {
        name,
        status: "warn",
        detail: `${what}: somebody guesses, or has an old token. The log lines \`login_refused\` name the addresses`,
      };
}

/** Whether this gateway has the operators that their file names now. Each gateway has a file of its own. */
export function checkOperatorsFile({
  hasFile,
  isValid,
}: Pick<OperatorsWatch, "hasFile" | "isValid">): DoctorCheck {
  const name = "operators_file";
  if (!isValid) {
    const detail =
      "this gateway's file is faulty or gone, and the operators that it had before are in force. The event operators_refused of the log says what is wrong";
    return { name, status: "fail", detail };
  }
  return {
    name,
    status: "ok",
    detail: hasFile ? "this gateway has what is in its file" : "no such file is set",
  };
}
