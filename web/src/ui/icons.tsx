// Small pictures, drawn with the colour of the text around them.

const PATHS = {
  back: "M15 5l-7 7 7 7",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  close: "M6 6l12 12M18 6L6 18",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  bell: "M6 16V11a6 6 0 1 1 12 0v5l1.5 2h-15zM10 21h4",
  bellOff: "M6 16V11a6 6 0 0 1 9-5.2M18 11v5l1.5 2h-11M10 21h4M4 4l16 16",
  human: "M12 4a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM5 20c.6-4 3.4-6 7-6s6.400 2 7 6",
  agent: "M6 9h12v10H6zM12 9V5M9.500 13.500h.01M14.500 13.500h.01M3 13v3M21 13v3M12 4.500h.01",
  service: "M5 5h14v5H5zM5 14h14v5H5zM8.500 7.500h.01M8.500 16.500h.01",
  device: "M8 3h8v18H8zM11.500 18h1",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  keyboard: "M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8",
  snow: "M12 3v18M4.200 7.500l15.600 9M19.800 7.500l-15.600 9",
  past: "M4 5v5h5M4.600 10a8 8 0 1 1-.6 4M12 8v4.500l3 2",
  flow: "M5 4h6v5H5zM13 15h6v5h-6zM8 9v4c0 3 2 4.500 5 4.500",
  grid: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  down: "M12 5v13M6 13l6 6 6-6",
  up: "M12 19V6M6 11l6-6 6 6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

/** Holdfast's own, in its own colours: drawn here, since the page may have no address to fetch a picture from. */
export function Mark({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 64 64" aria-hidden="true" focusable="false">
      <rect width="64" height="64" rx="15" fill="#0f5e57" />
      <g fill="none" stroke="#d9f5ee" stroke-width="5" stroke-linecap="round" stroke-linejoin="round">
        <path d="M19 17l11 9-11 9" />
        <path d="M37 35h9" />
        <path d="M14 50c5-5 9-5 18-5s13 0 18 5" stroke="#5fd0bd" />
      </g>
    </svg>
  );
}
