// The sealed channel: byte for byte as the vectors have it, and against a real host behind a real relay.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { connect as connectTcp } from "node:net";
import { MessageChannel as NodeChannel } from "node:worker_threads";
import { WebSocket } from "ws";
import { describe, expect, it, onTestFinished } from "vitest";
import { accept, checkPage, fetchPage, newDeviceKey, readInvite, relayDialer, servePort, type Way } from "../src/channel.js";
import { Channel, Kind, REKEY_FRAMES } from "../src/channel/frames.js";
import { exchangeKey, exchangeSecret } from "../src/channel/keys.js";
import { begin, type Ephemeral, type Invited } from "../src/channel/noise.js";
import { Client } from "../src/client.js";
import { portDialer, type PortLike } from "../src/port.js";
import { fromHex, toHex } from "../src/proof.js";
import { Home, program, until } from "./home.js";

const vectors = JSON.parse(readFileSync(new URL("../../../spec/vectors/channel.json", import.meta.url), "utf8"));

interface Frame {
  from: string;
  kind: number;
  body: string;
  message: string;
}

async function ephemeral(): Promise<Ephemeral> {
  const secret = fromHex(vectors.client_ephemeral);
  const base = new Uint8Array(32);
  base[0] = 9;
  const point = await crypto.subtle.importKey("raw", base, "X25519", false, []);
  const key = await exchangeSecret(secret);
  return { secret: key, public: new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: point }, key, 256)) };
}

async function begun(invited?: Invited) {
  return begin(fromHex(vectors.host.public), await newDeviceKey(fromHex(vectors.client.secret)), invited, await ephemeral());
}

describe("the vectors", () => {
  it("a key has the same two forms", async () => {
    for (const { secret, public: id, x25519 } of [vectors.host, vectors.client]) {
      expect((await newDeviceKey(fromHex(secret))).id).toBe(id);
      expect(toHex(exchangeKey(fromHex(id)))).toBe(x25519);
    }
    const key = await newDeviceKey();
    await expect(crypto.subtle.exportKey("pkcs8", key.sign)).rejects.toThrow();
    await expect(crypto.subtle.exportKey("pkcs8", key.exchange)).rejects.toThrow();
  });

  it("weak keys of hosts are refused", async () => {
    const one = new Uint8Array(32);
    one[0] = 1;
    expect(() => exchangeKey(one)).toThrow();
    expect(() => exchangeKey(new Uint8Array(31))).toThrow();
    const zero = new Uint8Array(32);
    await expect(begin(zero, await newDeviceKey())).rejects.toThrow();
  });

  for (const mode of ["known", "invited"] as const) {
    it(`${mode}: handshake and frames are those bytes`, async () => {
      const invited = mode === "invited" ? { id: fromHex(vectors.invite.id), secret: fromHex(vectors.invite.secret) } : undefined;
      const vector = vectors[mode];
      const { first, finish } = await begun(invited);
      expect(toHex(first)).toBe(vector.message_1);
      const { channel, welcome } = await finish(fromHex(vector.message_2));
      expect(welcome).toEqual({ known: true, ...(vector.says ? { handle: vector.says } : {}) });
      expect(toHex(channel.binding)).toBe(vector.binding);
      const sent = (vector.frames as Frame[]).filter(({ from }) => from === "client");
      const sealed: string[] = [];
      for (const [kind, body, now] of [[0, "68656c6c6f", 0], [1, "", 0], [0, "616761696e", 600_000], [3, "", 600_000]] as const) {
        for (const message of await channel.seal(kind, fromHex(body), now)) sealed.push(toHex(message));
      }
      expect(sealed).toEqual(sent.map(({ message }) => message));
      for (const { kind, body, message } of (vector.frames as Frame[]).filter(({ from }) => from === "host")) {
        const opened = await channel.open(fromHex(message));
        expect({ kind: opened.kind, body: toHex(opened.body) }).toEqual({ kind, body });
      }
      await expect(channel.open(fromHex(vector.frames.at(-1).message))).rejects.toThrow();
      await expect(channel.seal(Kind.alive, fromHex(""))).rejects.toThrow();
    });
  }

  it("a host that does not know the key says so, and a changed answer opens nothing", async () => {
    const refused = await (await begun()).finish(fromHex(vectors.unknown.message_2));
    expect(refused.welcome).toEqual({ known: false });
    for (const at of [0, 31, 40, 60]) {
      const changed = fromHex(vectors.known.message_2);
      changed[at] = (changed[at] as number) ^ 1;
      await expect((await begun()).finish(changed), `byte ${at}`).rejects.toThrow();
    }
    await expect((await begun()).finish(new Uint8Array(2000))).rejects.toThrow();
    await expect((await begun()).finish(new Uint8Array(4))).rejects.toThrow();
  });

  it("a frame that is flipped, repeated, left out or put before another ends the channel", async () => {
    const [one, two] = (vectors.known.frames as Frame[]).filter(({ from }) => from === "host").map(({ message }) => fromHex(message));
    const fresh = async () => (await (await begun()).finish(fromHex(vectors.known.message_2))).channel;
    const flipped = one!.slice();
    flipped[3] = (flipped[3] as number) ^ 0x80;
    for (const [name, messages] of Object.entries({ flipped: [flipped], repeated: [one!, one!], "left out": [two!], empty: [new Uint8Array(0)] })) {
      const channel = await fresh();
      const open = async () => {
        for (const message of messages) await channel.open(message);
      };
      await expect(open(), name).rejects.toThrow();
      // Nothing is accepted after it, the right one neither.
      await expect(channel.open(one!), name).rejects.toThrow();
    }
  });

  it("a key is changed after so many frames, at both ends", async () => {
    const [a, b] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const [ours, theirs] = [await Channel.make(a, a, b), await Channel.make(a, b, a)];
    // Counting a million frames takes minutes: the count is set instead.
    (ours as unknown as { out: { frames: number } }).out.frames = REKEY_FRAMES;
    const messages = await ours.seal(Kind.data, fromHex("01"), 0);
    expect(messages.length).toBe(2);
    const kinds = [];
    for (const message of messages) kinds.push((await theirs.open(message)).kind);
    expect(kinds).toEqual([Kind.rekey, Kind.data]);
  });

  it("an invite's link is read, and a damaged one is not", () => {
    const invite = readInvite(vectors.invite.link);
    expect(invite).toMatchObject({ host: vectors.host.public, name: "gpu", relays: ["https://relay.example", "https://other.example:8443"] });
    expect([toHex(invite.id), toHex(invite.secret)]).toEqual([vectors.invite.id, vectors.invite.secret]);
    const code = vectors.invite.link.split("#")[1] as string;
    for (const bad of ["", "x", code.slice(0, -4), `${code}AAAA`, `B${code.slice(1)}`, "A".repeat(4000), code.replace("A", "%")]) {
      expect(() => readInvite(bad), bad).toThrow();
    }
  });

  it("a page is good with the host's own signature alone", async () => {
    const { version, signature, files } = vectors.page;
    const page = { version, signature, files: files.map((file: object) => ({ ...file, bytes: 0 })), contents: [] };
    // The digests of the vectors are of no file: what is checked first is the bytes.
    await expect(checkPage(vectors.host.public, page)).rejects.toThrow(/other bytes/);
  });
});

/** A relay, at a port of its own or one that another had. */
async function relay(home: Home, port = 0): Promise<{ url: string; port: number; kill: () => Promise<void> }> {
  const child = spawn(program(), ["relay", "--listen", `127.0.0.1:${port}`], { env: home.env, stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const kill = async () => {
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  let text = "";
  child.stdout.on("data", (chunk) => (text += String(chunk)));
  const url = await until("the relay", () => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]);
  return { url, port: Number(new URL(url).port), kill };
}

const webSocket: Way["webSocket"] = (url) => new WebSocket(url) as unknown as ReturnType<Way["webSocket"]>;

/** A host behind a relay, a person there, and a browser's way to it. */
async function invited(home: Home, url: string, ...args: string[]) {
  const human = await home.human("ann");
  const asAnn = (...args: string[]) => home.holdfast("--as", "human:ann", ...args);
  await asAnn("relay", "add", url);
  const { link } = JSON.parse(await asAnn("--json", "invite", ...(args.length > 0 ? args : ["--host-wide"]))) as { link: string };
  const invite = readInvite(link);
  const way: Way = { host: invite.host, relays: invite.relays, device: await newDeviceKey(), webSocket };
  return { human, asAnn, invite, way };
}

const never = new AbortController().signal;

function clientOf(way: Way): Client {
  const client = new Client(relayDialer(way), { name: "test" });
  onTestFinished(() => client.close());
  return client;
}

describe("a real host", () => {
  it("enrols a browser once, and says why not the second time", async () => {
    const home = Home.make();
    const { invite, way } = await invited(home, (await relay(home)).url);
    const enrolled = await accept(way, invite, "human:phone", "test", never);
    expect(enrolled.actor).toEqual({ id: way.device.id, handle: "human:phone" });
    const client = clientOf(way);
    expect((await client.call("actor.me", {})).actor.handle).toBe("human:phone");
    const second = { ...way, device: await newDeviceKey() };
    await expect(accept(second, invite, "human:other", "test", never)).rejects.toMatchObject({ code: "invite_over", message: /already used/ });
    await expect(clientOf(second).call("actor.me", {})).rejects.toMatchObject({ code: "unidentified" });
    const forged = { ...invite, secret: new Uint8Array(32) };
    await expect(accept(second, forged, "human:other", "test", never)).rejects.toMatchObject({ code: "disconnected" });
  });

  it("gives the page it signed, and a changed one or another host's is refused", async () => {
    const home = Home.make();
    const { invite, way } = await invited(home, (await relay(home)).url);
    await accept(way, invite, "human:phone", "test", never);
    const page = await fetchPage(way, "test", undefined, never);
    expect(page.files.map(({ name }) => name)).toEqual(["page.css.gz", "page.js.gz"]);
    expect(page.contents[1]?.length).toBeGreaterThan(50_000);
    expect(await fetchPage(way, "test", page, never)).toBe(page);
    const contents = page.contents.map((content) => content.slice());
    (contents[1] as Uint8Array)[100]! ^= 1;
    await expect(checkPage(way.host, { ...page, contents })).rejects.toThrow(/other bytes/);
    await expect(checkPage(vectors.host.public, page)).rejects.toThrow(/another key/);
    await expect(checkPage(way.host, { ...page, version: "9" })).rejects.toThrow(/another key/);
  });

  it("goes on after its relay was killed and replaced: output by offset, input once", async () => {
    const home = Home.make();
    const first = await relay(home);
    const { invite, way, asAnn } = await invited(home, first.url);
    await accept(way, invite, "human:phone", "test", never);
    await asAnn("new", "-d", "-n", "work", "--", "/bin/bash", "--norc", "--noprofile");
    const client = clientOf(way);
    const session = await client.session("work");
    const attached = session.attach({ size: "80x24" });
    let seen = "";
    attached.on("paint", ({ bytes }) => void (seen = Buffer.from(bytes).toString()));
    attached.on("output", ({ bytes }) => void (seen += Buffer.from(bytes).toString()));
    await attached.ready;
    const write = (text: string) => attached.type(text);
    await write("echo one-$((40+2))\n");
    await until("the first answer", () => seen.includes("one-42"));
    await first.kill();
    const typing = write("echo two-$((40+2))\n");
    await relay(home, first.port);
    await typing;
    await until("the second answer", () => seen.includes("two-42"));
    expect(seen.split("two-42").length).toBe(2);
    await attached.close();
    await asAnn("end", "work", "--grace", "0");
  });

  it("is thrown out within a second when it is revoked", async () => {
    const home = Home.make();
    const { invite, way, asAnn } = await invited(home, (await relay(home)).url);
    await accept(way, invite, "human:phone", "test", never);
    const client = clientOf(way);
    await client.call("actor.me", {});
    let brokeAt = 0;
    client.link.broke = () => (brokeAt = Date.now());
    await asAnn("devices", "revoke", "human:phone");
    const revokedAt = Date.now();
    await until("the end of the connection", () => brokeAt > 0);
    expect(brokeAt - revokedAt).toBeLessThan(1_000);
    await expect(client.call("actor.me", {})).rejects.toMatchObject({ code: "unidentified" });
  });

  it("ends the channel at the first byte that was changed on the way, and goes on by another", async () => {
    const home = Home.make();
    const { url } = await relay(home);
    const { invite, way } = await invited(home, url);
    await accept(way, invite, "human:phone", "test", never);
    const tap = await hostileTap(Number(new URL(url).port));
    const client = clientOf({ ...way, relays: [tap.url] });
    expect((await client.call("actor.me", {})).actor.handle).toBe("human:phone");
    let broke = 0;
    client.link.broke = () => (broke += 1);
    tap.flip();
    // Asked again over the next channel, which is left alone.
    expect((await client.call("actor.me", {})).actor.handle).toBe("human:phone");
    expect(broke).toBe(1);
  });

  it("is spoken to through another window's port, which signs for this channel alone", async () => {
    const home = Home.make();
    const { invite, way } = await invited(home, (await relay(home)).url);
    await accept(way, invite, "human:phone", "test", never);
    let over = 0;
    const open = () => {
      const { port1, port2 } = new NodeChannel();
      servePort(port2 as unknown as PortLike, relayDialer(way), () => (over += 1));
      return port1 as unknown as PortLike;
    };
    const client = new Client(portDialer("gpu", open), { name: "test" });
    onTestFinished(() => client.close());
    expect((await client.call("actor.me", {})).actor.handle).toBe("human:phone");
    const stranger = { ...way, device: await newDeviceKey() };
    const shut = () => {
      const { port1, port2 } = new NodeChannel();
      servePort(port2 as unknown as PortLike, relayDialer(stranger));
      return port1 as unknown as PortLike;
    };
    await expect(new Client(portDialer("gpu", shut), { name: "test" }).call("actor.me", {})).rejects.toMatchObject({ code: "unidentified" });
    client.close();
    await until("the end of the other half", () => over === 1);
  });
});

/** Passes everything on to a relay; `flip` changes the last byte of what the host says next. */
async function hostileTap(port: number): Promise<{ url: string; flip: () => void }> {
  let flips = 0;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connectTcp(port, "127.0.0.1");
    for (const [one, other] of [[near, far], [far, near]] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
    near.on("data", (bytes) => void far.write(bytes));
    far.on("data", (bytes) => {
      if (flips > 0 && bytes.length > 20) {
        flips -= 1;
        bytes[bytes.length - 1]! ^= 1;
      }
      near.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, flip: () => (flips += 1) };
}
