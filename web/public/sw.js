// Keeps the page itself, so that it opens without a network and says that it is cut off. What a host says is never kept.

const KEPT = "holdfast-shell-1";

self.addEventListener("install", (event) => {
  event.waitUntil(keep());
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
  else if (/^\/(icon|manifest)/.test(url.pathname)) event.respondWith(fetch(request).catch(() => atHand(request)));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data?.path ?? "/"));
});

// Where a notification leads: in the page that is open, else in a new one.
async function show(path) {
  const [open] = await self.clients.matchAll({ type: "window" });
  if (!open) return self.clients.openWindow(path);
  open.postMessage({ path });
  return open.focus();
}

// What the page needs to open, as it is now.
async function keep() {
  const cache = await caches.open(KEPT);
  const page = await fetch("/", { credentials: "same-origin", cache: "no-cache" });
  const parts = (await page.clone().text()).match(/\/assets\/[\w.-]+/g) ?? [];
  await cache.addAll(["/icon.svg", "/icon-waits.svg", "/manifest.webmanifest", ...parts]);
  await cache.put("/", page);
}

// A picture whose name says nothing of what is in it, where the host is not reached.
async function atHand(request) {
  return (await (await caches.open(KEPT)).match(request)) ?? Response.error();
}

// The page as the host has it now; where the host is not reached, as it was.
async function fresh() {
  const cache = await caches.open(KEPT);
  try {
    const page = await fetch("/", { credentials: "same-origin" });
    if (page.ok) await renew(cache, page.clone());
    return page;
  } catch {
    return (await cache.match("/")) ?? Response.error();
  }
}

// Keeps a page. Where it is another than before, what the old one was made of goes.
async function renew(cache, page) {
  const [before, now] = [await (await cache.match("/"))?.text(), await page.clone().text()];
  if (before === now) return;
  const old = (await cache.keys()).filter(({ url }) => new URL(url).pathname.startsWith("/assets/"));
  const isNamed = ({ url }) => now.includes(new URL(url).pathname);
  await Promise.all(old.filter((request) => !isNamed(request)).map((request) => cache.delete(request)));
  await cache.put("/", page);
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
