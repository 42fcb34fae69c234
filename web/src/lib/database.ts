// What only this origin's pages reach: IndexedDB, opened for one question and closed again.

/** Asks one store of a database something; all its stores are made with it. */
export async function within<T>(
  { name, stores }: { name: string; stores: readonly string[] },
  store: string,
  mode: IDBTransactionMode,
  ask: (store: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => {
    for (const one of stores) opening.result.createObjectStore(one);
  };
  const database = await done(opening);
  try {
    return await done(ask(database.transaction(store, mode).objectStore(store)));
  } finally {
    database.close();
  }
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("this browser keeps nothing"));
  });
}
