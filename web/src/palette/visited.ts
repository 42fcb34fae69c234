// Which sessions were looked at in this tab, the latest first: the one before is most often the next.

const STORED = "holdfast.visited";
const REMEMBERED = 20;

export function visited(): string[] {
  return (sessionStorage.getItem(STORED) ?? "").split(" ").filter(Boolean);
}

export function visit(session: string): void {
  const others = visited().filter((id) => id !== session);
  sessionStorage.setItem(STORED, [session, ...others].slice(0, REMEMBERED).join(" "));
}
