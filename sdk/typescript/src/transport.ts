// What carries frames: a unix socket in Node, a WebSocket everywhere. Knows nothing of what is in them.

/** What a transport tells. */
export interface Receiver {
  /** A frame arrived: kind and payload. */
  frame(content: Uint8Array): void;
  /** It is over; nothing more comes. Told once. */
  closed(why: unknown): void;
}

/** One carrier that is open. */
export interface Transport {
  /** It may swallow everything without a word. */
  readonly isNetwork?: boolean;
  /** Who speaks on this carrier alone; else the dialer says. */
  readonly prover?: Prover;
  /** Sends a JSON text and the bytes that belong to it. */
  send(json: Uint8Array, bytes: Uint8Array): void;
  /** Ends it. */
  close(): void;
  /** Whether somebody waits for an answer: a process that waits for none may end by itself. */
  hold?(isWaiting: boolean): void;
}

/** An actor, and its signature over what spec/protocol.md says. */
export interface Proven {
  actor: { id: string; handle: string };
  signature: string;
}

/** Who proves itself on a connection, where the carrier does not say who speaks. */
export interface Prover {
  /** Answers a host's challenge. */
  identify(challenge: string): Proven | Promise<Proven>;
}

/** How to open another connection to the same host. */
export interface Dialer {
  /** Where to, for messages. */
  readonly where: string;
  /** Opens one. Fails with `disconnected` where trying again may help. */
  dial(receiver: Receiver, signal: AbortSignal): Promise<Transport>;
  /** Who speaks; none: the carrier says (a token, a cookie). */
  readonly prover?: Prover;
}
