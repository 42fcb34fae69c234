/** Sessions that were started from this page: their starter has the turn, and they take this window's size. */
export const startedHere = new Set<string>();
