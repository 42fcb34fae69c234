export function open(port: number, target: string): Promise<{ url: string; cut: () => void; shut: () => void }>;
