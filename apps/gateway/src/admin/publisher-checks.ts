/** The doctor's checks of the publishers' file and of callers' keys. */
import type { DoctorCheck } from "@adrelay/contract";
import { stateOfKey } from "@adrelay/core";
import type { PublisherDirectory } from "@adrelay/provider";
import type { Heartbeat, RelayProcess } from "@adrelay/store";
import { listNames } from "./known-publishers.ts";

/** Whether all processes have the same publishers' file, and it is the one that is there. */
export async function checkPublishersFile(
  heartbeat: Pick<Heartbeat, "loadProcesses">,
): Promise<DoctorCheck[]> {
  const processes = await heartbeat.loadProcesses();
  return [checkValidity(processes), checkAgreement(processes)];
}

function checkValidity(processes: readonly RelayProcess[]): DoctorCheck {
  const name = "publishers_file";
  const old = processes.filter(({ publishersFile }) => publishersFile?.isValid === false);
  return old.length === 0
    ? { name, status: "ok", detail: "no process refuses the file that is there" }
    : {
        name,
        status: "fail",
        detail: `${old.map(nameOf).join(", ")}: the publishers' file, or a file with a key or certificate, is faulty or gone, and what it had before is in force. \`publishers lint FILE\` and the event publishers_refused of the log say what is wrong`,
      };
}

function checkAgreement(processes: readonly RelayProcess[]): DoctorCheck {
  const name = "publishers_file_everywhere";
  const withFile = processes.filter(({ publishersFile }) => typeof publishersFile?.digest === "string");
  const byDigest = Map.groupBy(withFile, ({ publishersFile }) => publishersFile?.digest ?? "");
  const list = [...byDigest].map(([digest, own]) => `${digest}: ${own.map(nameOf).join(", ")}`);
  return byDigest.size > 1
    ? {
        name,
        status: "warn",
        detail: `processes have different publishers' files. ${list.join("; ")}. Within seconds after a change that is normal`,
      }
    : { name, status: "ok", detail: list.join() || "no process has a publishers' file" };
}

function nameOf({ role, host, pid }: RelayProcess): string {
  return `${role} ${host}/${pid}`;
}

/** Whether keys have expired, or will within 14 days. */
export function checkKeys(publishers: PublisherDirectory): DoctorCheck[] {
  const nowMs = Date.now();
  const keys = publishers.current.flatMap(({ id, keys: own }) =>
    own.map((key) => ({ name: `${id}/${key.id}`, state: stateOfKey(key, nowMs), ...key })),
  );
  const expiring = keys.filter(({ state }) => state === "expiring");
  const expired = keys.filter(({ state }) => state === "expired");
  const name = "publisher_keys";
  const checks: DoctorCheck[] = [];
  if (expiring.length > 0) {
    const list = expiring.map((key) => `${key.name} on ${new Date(key.expiresAtMs ?? 0).toISOString()}`);
    checks.push({ name, status: "warn", detail: `these expire within 14 days: ${listNames(list)}` });
  }
  if (expired.length > 0) {
    const list = listNames(expired.map((key) => key.name));
    checks.push({ name, status: "warn", detail: `these have expired, and are refused: ${list}` });
  }
  return checks.length > 0 ? checks : [{ name, status: "ok", detail: "none expires within 14 days" }];
}
