// Keeps the shell as this worker knows it, by digest, so that it opens while its relay is away. The page itself is kept by the shell, and
// opened only with the host's signature.

const FILES = __FILES__;
const KEPT = "holdfast-shell-__VERSION__";

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
