export function open(port: number, target: string): Promise<{ url: string; shut: () => void }>;
