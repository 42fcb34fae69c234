// Keeps the page itself, so that it opens without a network and says that it is cut off. What a host says is never kept.

const KEPT = "holdfast-shell-1";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(["/", "/icon.svg", "/icon-waits.svg", "/manifest.webmanifest"])));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  const others = caches.keys().then((names) => Promise.all(names.filter((name) => name !== KEPT).map((name) => caches.delete(name))));
  event.waitUntil(others.then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin || url.pathname.startsWith("/v1")) return;
  if (request.mode === "navigate") event.respondWith(fresh());
  else if (url.pathname.startsWith("/assets/")) event.respondWith(kept(request));
});

// The page as the host has it now; where the host is not reached, as it was.
async function fresh() {
  const cache = await caches.open(KEPT);
  try {
    const page = await fetch("/", { credentials: "same-origin" });
    if (page.ok) await cache.put("/", page.clone());
    return page;
  } catch {
    return (await cache.match("/")) ?? Response.error();
  }
}

// Names of these have a hash of their content: what is there is right.
async function kept(request) {
  const cache = await caches.open(KEPT);
  const had = await cache.match(request);
  if (had) return had;
  const got = await fetch(request);
  if (got.ok) await cache.put(request, got.clone());
  return got;
}
