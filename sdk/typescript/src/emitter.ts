// Typed events: a listener hears what comes after it was added.

type Listener<T> = (value: T) => unknown;

export class Emitter<Events> {
  private readonly listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Hears an event from now on; what is given back stops that. */
  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void {
    const all = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, all);
    all.add(listener as Listener<never>);
    return () => all.delete(listener as Listener<never>);
  }

  /** Tells everybody, and gives what has to be waited for. A listener's fault is its own: it is reported, and nothing stops. */
  protected emit<E extends keyof Events>(event: E, value: Events[E]): Promise<unknown>[] {
    const promises: Promise<unknown>[] = [];
    for (const listener of [...(this.listeners.get(event) ?? [])]) {
      try {
        const result = (listener as Listener<Events[E]>)(value);
        if (result instanceof Promise) promises.push(result.catch(report));
      } catch (error) {
        report(error);
      }
    }
    return promises;
  }
}

function report(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
