/** Requests as no client sends them: byte by byte, with any Host, and without an end. */
import { connect } from "node:net";

const ANSWER_TIMEOUT_MS = 60_000;

/** Such as `404 unknown_replay`; the code is - if the body has none. */
export async function sendRaw(origin: string, text: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new TypeError("no answer")));
  let answer = "";
  socket.setEncoding("utf8");
  return new Promise((resolve, reject) => {
    const finish = () => resolve(errorIn(answer));
    socket.on("data", (chunk: string) => {
      answer += chunk;
      if (/\r\n\r\n.*\}\s*$/s.test(answer)) {
        finish();
        socket.destroy();
      }
    });
    // A refused request may be reset before all of it was sent: what came as an answer counts.
    socket.once("error", (error) => (answer === "" ? reject(error) : finish()));
    socket.once("close", finish);
    socket.write(text);
  });
}

/** Begins a POST whose body never ends. Call the function that is returned to end it. */
export function holdRequest(
  origin: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): () => void {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`POST ${path} HTTP/1.1`, "Host: localhost", ...lines, "Content-Length: 100", "", "{"];
  socket.write(head.join("\r\n"));
  return () => socket.destroy();
}

function errorIn(answer: string): string {
  const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? "none";
  return `${status} ${codeIn(answer)}`;
}

export function codeIn(body: string): string {
  return /"code":"([a-z_]+)"/.exec(body)?.[1] ?? "-";
}
