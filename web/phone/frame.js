// The frame's own script: takes the page that the shell has checked, gives it what a frame without an origin lacks, and runs it.
addEventListener(
  "message",
  ({ source, data, ports: [port] }) => {
    if (source !== parent || !port) return;
    const stored = new Map(Object.entries(data.stored));
    const keep = (key, value) => {
      if (value === null) stored.delete(key);
      else stored.set(key, value);
    };
    const shelf = (tell) => ({
      getItem: (key) => stored.get(String(key)) ?? null,
      setItem: (key, value) => {
        keep(String(key), String(value));
        tell(String(key), String(value));
      },
      removeItem: (key) => {
        keep(String(key), null);
        tell(String(key), null);
      },
    });
    Object.defineProperty(window, "localStorage", { value: shelf((key, value) => port.postMessage({ store: [key, value] })) });
    Object.defineProperty(window, "sessionStorage", { value: shelf(() => undefined) });
    window.holdfastPhone = { port, path: data.path, host: data.host };
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(data.style);
    document.adoptedStyleSheets = [sheet];
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([data.script], { type: "text/javascript" }));
    document.body.append(script);
  },
  { once: true },
);
