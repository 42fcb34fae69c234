// Passes every request on with a token, for clients that cannot show one: with_token.mjs URL TOKEN
// Prints its own address when it listens.
import { createServer, request } from "node:http";

const [url, token] = process.argv.slice(2);
const target = new URL(url);

const server = createServer((from, to) => {
  const headers = { ...from.headers, authorization: `Bearer ${token}` };
  // Whoever names another host, as a page of another site would, is not helped.
  if (headers.host === `127.0.0.1:${server.address().port}`) headers.host = target.host;
  if (headers.origin === `http://127.0.0.1:${server.address().port}`) headers.origin = target.origin;
  const on = request(target, { path: from.url, method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    to.flushHeaders();
    answer.pipe(to);
  });
  on.on("error", () => to.destroy());
  to.on("close", () => on.destroy());
  from.pipe(on);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}${target.pathname}`));
