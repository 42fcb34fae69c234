// For developing: serves `build` with the policy of a real host, and passes /v1 on to one. `node scripts/door.mjs PORT HOST_URL`.
//
// A host has the page it was built with; this shows the one that was built a moment ago. It adds no rights: who comes through it
// needs a login code of that host.

import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { extname, join, normalize } from "node:path";

const BUILT = new URL("../build", import.meta.url).pathname;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
  "worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

/** Opens the door; the answer says where, how to shut it, and how to break what goes through it. */
export function open(port, target) {
  const host = new URL(target);
  const server = createServer((asked, answer) => (asked.url.startsWith("/v1") ? pass(host, asked, answer) : page(asked, answer)));
  const sockets = new Set();
  let isStalled = false;
  server.on("upgrade", (asked, socket, head) => {
    // Nobody is told that nothing gets through.
    if (isStalled) return void sockets.add(socket);
    const up = connect(Number(host.port), host.hostname, () => {
      const lines = Object.entries(disguised(host, asked.headers)).map(([name, value]) => `${name}: ${value}`);
      up.write(`GET ${asked.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      up.write(head);
      up.pipe(socket).pipe(up);
    });
    for (const [one, other] of [
      [up, socket],
      [socket, up],
    ]) {
      // A key must not wait for the acknowledgement of the one before.
      one.setNoDelay(true);
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  return new Promise((opened) =>
    server.listen(port, "127.0.0.1", () => {
      /** Breaks every connection, as a network does. */
      const cut = () => {
        for (const socket of sockets) socket.destroy();
        server.closeAllConnections();
      };
      /** Lets nothing through any more and breaks nothing; or lets everything through that waited. */
      const stall = (stalled) => {
        isStalled = stalled;
        for (const socket of sockets) socket[stalled ? "pause" : "resume"]();
      };
      const shut = () => {
        cut();
        server.close();
      };
      opened({ url: `http://127.0.0.1:${server.address().port}`, cut, stall, shut });
    }),
  );
}

/** Headers as the host's own page sends them. */
function disguised(host, headers) {
  return { ...headers, host: host.host, ...(headers.origin ? { origin: host.origin } : {}) };
}

function pass(host, asked, answer) {
  const options = { method: asked.method, headers: disguised(host, asked.headers) };
  const up = request(new URL(asked.url, host), options, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  up.on("error", () => answer.destroy());
  asked.pipe(up);
}

function page(asked, answer) {
  let path = join(BUILT, normalize(new URL(asked.url, "http://door").pathname));
  if (!path.startsWith(BUILT) || !existsSync(path) || statSync(path).isDirectory()) path = join(BUILT, "index.html");
  answer.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
  answer.setHeader("content-security-policy", POLICY);
  answer.setHeader("cache-control", path.includes("/assets/") ? "public, max-age=31536000, immutable" : "no-cache");
  answer.end(readFileSync(path));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [port = "7434", target = "http://127.0.0.1:7433"] = process.argv.slice(2);
  console.log((await open(Number(port), target)).url);
}
