/** The doctor's check of log-ins to this gateway's ops listener. */
import type { DoctorCheck } from "@adrelay/contract";
import { type LoginGuard, RECENT_LOGIN_MINUTES } from "@adrelay/service-kit";

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
