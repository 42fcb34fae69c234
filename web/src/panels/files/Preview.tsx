// A look into a file: text, Markdown or a picture. Nothing of it becomes markup, and nothing of it runs.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Files } from "@holdfast/client";
import { shown, shownLine } from "../../lib/text.js";
import { Icon } from "../../ui/icons.js";
import { Line, Lines } from "../../ui/Text.js";
import { attempt } from "../../ui/told.js";
import { blocks, kindOf, type Block } from "./model.js";

/** Of a longer text this much is shown; a picture is read whole. */
const TEXT_BYTES = 512 * 1024;
const IMAGE_BYTES = 16 * 1024 * 1024;

export function Preview({ files, path, onClose, onSave }: { files: Files; path: string; onClose: () => void; onSave: () => void }) {
  const name = path.split("/").pop() ?? path;
  const [bytes, setBytes] = useState<Uint8Array | undefined>();
  useEffect(() => {
    let isGone = false;
    setBytes(undefined);
    const max = kindOf(name, new Uint8Array()) === "image" ? IMAGE_BYTES : TEXT_BYTES;
    void attempt(() => files.read(path, { max })).then((read) => isGone || setBytes(read));
    return () => (isGone = true);
  }, [path]);
  return (
    <section class="file" aria-label={`File ${shownLine(name)}`}>
      <header>
        <button type="button" class="quiet icon-only" aria-label="Back to the list" onClick={onClose}>
          <Icon name="back" size={16} />
        </button>
        <h3>
          <Line text={name} />
        </h3>
        <button type="button" class="small" onClick={onSave}>
          Download
        </button>
      </header>
      {bytes && <Content name={name} bytes={bytes} />}
    </section>
  );
}

function Content({ name, bytes }: { name: string; bytes: Uint8Array }) {
  const kind = kindOf(name, bytes);
  if (kind === "image") return <Picture bytes={bytes} />;
  if (kind === "other") return <p class="muted">This is no text.</p>;
  const text = new TextDecoder().decode(bytes);
  const cut = bytes.length >= TEXT_BYTES && <p class="muted">Only the beginning is shown.</p>;
  return (
    <>
      {kind === "markdown" ? <Markdown text={text} /> : <pre class="file-text">{<Lines text={text} />}</pre>}
      {cut}
    </>
  );
}

/** Decoded by the browser into pixels, and drawn: no address that could be opened, and no drawing that could hold a script. */
function Picture({ bytes }: { bytes: Uint8Array }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const draw = async () => {
      const image = await createImageBitmap(new Blob([bytes as BlobPart]));
      const target = canvas.current;
      if (!target) return;
      [target.width, target.height] = [image.width, image.height];
      target.getContext("2d")?.drawImage(image, 0, 0);
      image.close();
    };
    draw().catch(() => setBroken(true));
  }, [bytes]);
  return isBroken ? <p class="muted">This picture cannot be shown.</p> : <canvas ref={canvas} class="picture" role="img" aria-label="Picture" />;
}

function Markdown({ text }: { text: string }) {
  return (
    <div class="markdown">
      {blocks(text).map((block, at) => (
        <Part key={at} block={block} />
      ))}
    </div>
  );
}

function Part({ block }: { block: Block }) {
  switch (block.kind) {
    case "heading":
      return (
        <p class={`heading level-${block.level}`} role="heading" aria-level={Math.min(block.level + 3, 6)}>
          <Inline text={block.text} />
        </p>
      );
    case "code":
      return (
        <pre class="file-text">
          <Lines text={block.text} />
        </pre>
      );
    case "list":
      return (
        <ul>
          {block.items.map((item, at) => (
            <li key={at}>
              <Inline text={item} />
            </li>
          ))}
        </ul>
      );
    case "text":
      return (
        <p>
          <Inline text={block.text} />
        </p>
      );
  }
}

/** Code, strong and emphasised words. Links stay what was written: where they lead is to be seen. */
function Inline({ text }: { text: string }) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/);
  return (
    <bdi>
      {parts.map((part, at) => {
        if (at % 2 === 0) return shown(part);
        if (part.startsWith("`")) return <code key={at}>{shown(part.slice(1, -1))}</code>;
        if (part.startsWith("**")) return <strong key={at}>{shown(part.slice(2, -2))}</strong>;
        return <em key={at}>{shown(part.slice(1, -1))}</em>;
      })}
    </bdi>
  );
}
