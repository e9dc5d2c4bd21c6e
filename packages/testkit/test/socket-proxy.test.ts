import { connect, createServer } from "node:net";
import { eventually, pause, startSocketProxy } from "@adrelay/testkit";
import { expect, test } from "vitest";

test("replies keep their order when a delay ends while some are under way", async () => {
  const echo = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await eventually(() => expect(echo.listening).toBe(true));
  const address = echo.address();
  const proxy = await startSocketProxy(typeof address === "object" && address !== null ? address.port : 0);
  const client = connect(proxy.port, "127.0.0.1").setNoDelay(true).setEncoding("utf8");
  let heard = "";
  client.on("data", (text: string) => {
    heard += text;
  });
  let sent = "";
  for (let at = 0; at < 200; at += 1) {
    proxy.setReplyDelay(at % 20 < 15 ? 20 + (at % 7) : 0);
    sent += `${at},`;
    client.write(`${at},`);
    await pause(1);
  }
  await eventually(() => expect(heard).toBe(sent));
  client.destroy();
  await proxy.close();
  echo.close();
});
