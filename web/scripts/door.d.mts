export interface Door {
  url: string;
  cut(): void;
  stall(isStalled: boolean): void;
  shut(): void;
}

export function open(port: number, target: string): Promise<Door>;
