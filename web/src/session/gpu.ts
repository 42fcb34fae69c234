// Whether WebGL is drawn by a graphics card. Where the processor plays one, elements are faster, most of all the first time.

let known: boolean | undefined;

/** To compare the two ways of drawing: `localStorage["holdfast.draw"]` is `webgl` or `elements`. */
const STORED = "holdfast.draw";

export function hasGpu(): boolean {
  const said = localStorage.getItem(STORED);
  if (said) return said === "webgl";
  known ??= look();
  return known;
}

function look(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  // Chromium gives a context all the same, and says only here who draws.
  const says = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer = String(gl.getParameter(says?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}
