// Keeps the shell as this worker knows it, by digest, so that it opens while its relay is away. The page itself is kept by the shell, and
// opened only with the host's signature.

const FILES = {
  "/i/icon-192.png": "sha256-QNllsAc4Kq1SOJ/t6K/AkIGCr6jVKLsYXGwkceMfaO4=",
  "/i/icon.svg": "sha256-ygKJPVap4Wu2u1o2BkQJM0xHw4PNMtkYOjxmMHNdH3U=",
  "/i": "sha256-ORruWypHDzlHSlwJ7tqeJVErQQq4ShxIuK9L8Qfi83w=",
  "/i/manifest.webmanifest": "sha256-Po1xU4mYhKLeOPOQ4k2HrS8qjcMfAxAkvYLEvvoPEVg=",
  "/i/shell.css": "sha256-OCpFCASI66HPy/n+yd5CSRCPW5dx1EOGqhgw4aNRR6Q=",
  "/i/shell.js": "sha256-zDARQFlEC0qQatOBOU5CNgodjye1aJlHyTVqoDFrzcM="
};
const KEPT = "holdfast-shell-ace6cc9721f08ab3";

self.addEventListener("install", (event) => {
  const requests = Object.entries(FILES).map(([path, integrity]) => new Request(path, { integrity, cache: "no-cache" }));
  // Where one of them is of another version, this worker is not installed and the one before stays.
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(requests)));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith("holdfast-shell-") && name !== KEPT;
  const others = caches.keys().then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name))));
  event.waitUntil(others.then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== location.origin || !Object.hasOwn(FILES, pathname)) return;
  event.respondWith(kept(pathname));
});

async function kept(path) {
  const had = await (await caches.open(KEPT)).match(path);
  return had ?? fetch(path, { integrity: FILES[path] });
}
