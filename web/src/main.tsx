import { render } from "preact";
import { App } from "./app.js";
import { noteLink } from "./lib/guest.js";
import { enter, followLinks } from "./lib/login.js";
import { phone } from "./lib/phone.js";
import { followViewport } from "./lib/viewport.js";
import "./css/base.css";
import "./css/home.css";
import "./css/palette.css";
import "./css/session.css";

followViewport();
followLinks();
noteLink();
void enter();
const root = document.getElementById("app");
if (root) render(<App />, root);

// Service workers need a secure context: https, or this machine.
if (!phone && "serviceWorker" in navigator && import.meta.env.PROD) {
  navigator.serviceWorker.register("/sw.js").catch(() => undefined);
}
