declare module "*?raw" {
  const text: string;
  export default text;
}

/** The digest of the frame's own script, by which the policy allows it. */
declare const __FRAME_HASH__: string;
