// Fingers on the terminal: one pans, two zoom. A tap is left to the terminal.

export interface Touched {
  /** Moved by so many pixels. */
  pan(dx: number, dy: number): void;
  /** Two fingers are apart by so many times what they were. */
  zoom(factor: number): void;
}

/** A finger that moves less still taps. */
const TAP_PX = 8;
/** Of the speed of a finger that lets go, what is left after each frame. */
const GLIDE = 0.94;

export function onTouch(element: HTMLElement, signal: AbortSignal, touched: Touched): void {
  let last: { x: number; y: number; at: number } | undefined;
  let apart: number | undefined;
  let isPan = false;
  let speed = { x: 0, y: 0 };
  let gliding = 0;
  const options = { signal, passive: false };
  element.addEventListener(
    "touchstart",
    (event) => {
      cancelAnimationFrame(gliding);
      const [one, two] = event.touches;
      if (!one) return;
      if (two) {
        apart = distance(one, two);
        last = undefined;
        event.preventDefault();
      } else {
        last = { x: one.clientX, y: one.clientY, at: event.timeStamp };
        isPan = false;
        speed = { x: 0, y: 0 };
      }
    },
    options,
  );
  element.addEventListener(
    "touchmove",
    (event) => {
      const [one, two] = event.touches;
      if (!one) return;
      event.preventDefault();
      if (two && apart) {
        const now = distance(one, two);
        // In steps that change a font size, so that slow fingers get there too.
        if (Math.abs(now / apart - 1) < 0.08) return;
        touched.zoom(now / apart);
        apart = now;
        return;
      }
      if (!last) return;
      const [dx, dy] = [one.clientX - last.x, one.clientY - last.y];
      if (!isPan && Math.hypot(dx, dy) < TAP_PX) return;
      isPan = true;
      const ms = Math.max(1, event.timeStamp - last.at);
      speed = { x: (dx / ms) * 16, y: (dy / ms) * 16 };
      last = { x: one.clientX, y: one.clientY, at: event.timeStamp };
      touched.pan(dx, dy);
    },
    options,
  );
  const end = (event: TouchEvent) => {
    if (event.touches.length > 0) return;
    if (isPan || apart) event.preventDefault();
    apart = undefined;
    last = undefined;
    if (isPan) glide();
    isPan = false;
  };
  element.addEventListener("touchend", end, options);
  element.addEventListener("touchcancel", end, options);
  const glide = () => {
    speed = { x: speed.x * GLIDE, y: speed.y * GLIDE };
    if (signal.aborted || Math.hypot(speed.x, speed.y) < 0.5) return;
    touched.pan(speed.x, speed.y);
    gliding = requestAnimationFrame(glide);
  };
}

function distance(one: Touch, two: Touch): number {
  return Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY);
}
