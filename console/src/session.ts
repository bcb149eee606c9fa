// Session: what every page works with, and the hooks by which it asks.
import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { type Api, CallFailed } from "./api.ts";
import type { Answers, CallName, Change, Statement } from "./types.ts";

/** What lies open above the page. */
export type Panel =
  | { kind: "statement"; id: string }
  | { kind: "episode"; id: string; quote?: string | undefined }
  | { kind: "change"; change: Change; of: { id: string; name: string }; statement?: Statement };

export interface Session {
  api: Api;
  graph: string;
  changes: boolean;
  /** Grows when what was read is to be read again. */
  turn: number;
  again(): void;
  open(panel: Panel): void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("there is no session here");
  return session;
}

export interface Asked<A> { answer: A | undefined; failure: CallFailed | undefined; asking: boolean }

type Read = Exclude<CallName, Change>;

function asFailure(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed("INTERNAL", String(error), 0);
}

interface Kept<A> extends Asked<A> {
  /** Of which question and turn: another one is being asked from the moment on at which it is another. */
  of: string;
}

/** Asks when `body` changes; null asks nothing. The answer before stays until the next one is here. */
export function useAsked<N extends Read>(name: N, body: object | null): Asked<Answers[N]> {
  const { api, turn } = useSession();
  const sent = body && JSON.stringify(body);
  const of = `${turn} ${sent}`;
  const [kept, setKept] = useState<Kept<Answers[N]>>({ answer: undefined, failure: undefined, asking: false, of: "" });
  useEffect(() => {
    if (sent === null) return;
    const abort = new AbortController();
    api.call(name, JSON.parse(sent), abort.signal).then(
      (answer) => abort.signal.aborted || setKept({ answer, failure: undefined, asking: false, of }),
      (error) => abort.signal.aborted || setKept({ answer: undefined, failure: asFailure(error), asking: false, of }),
    );
    return () => abort.abort();
  }, [api, turn, name, sent]);
  return sent === null ? NOTHING : { ...kept, asking: kept.of !== of };
}

const NOTHING = { answer: undefined, failure: undefined, asking: false };

/** Asks page after page, at most `most` items; what is there is shown while the rest comes. */
export function useAll<N extends Read, T>(name: N, body: object | null, itemsOf: (answer: Answers[N]) => T[] | undefined, most: number): Asked<T[]> & { more: boolean } {
  const { api, turn } = useSession();
  const sent = body && JSON.stringify(body);
  const of = `${turn} ${sent}`;
  const [kept, setKept] = useState<Kept<T[]> & { more: boolean }>({ answer: undefined, failure: undefined, asking: false, more: false, of: "" });
  useEffect(() => {
    if (sent === null) return;
    const abort = new AbortController();
    const ask = async () => {
      let items: T[] = [];
      let token = "";
      do {
        const answer = await api.call(name, { ...JSON.parse(sent), pageSize: 1000, pageToken: token }, abort.signal);
        items = items.concat(itemsOf(answer) ?? []);
        token = (answer as { nextPageToken?: string }).nextPageToken ?? "";
        setKept({ answer: items, failure: undefined, asking: token !== "" && items.length < most, more: token !== "", of });
      } while (token !== "" && items.length < most);
    };
    ask().catch((error) => abort.signal.aborted || setKept({ answer: undefined, failure: asFailure(error), asking: false, more: false, of }));
    return () => abort.abort();
  }, [api, turn, name, sent, most]);
  return sent === null ? { ...NOTHING, more: false } : { ...kept, asking: kept.asking || kept.of !== of };
}

/** How many of `total` to show: a screenful at once, the rest whenever the browser has nothing better to do. */
export function useGrowing(total: number, first: number, step: number): number {
  const [shown, setShown] = useState(first);
  useEffect(() => {
    if (shown >= total) return;
    const idle = requestIdleCallback(() => setShown((before) => before + step), { timeout: 200 });
    return () => cancelIdleCallback(idle);
  }, [shown, total, step]);
  return Math.min(shown, total);
}

/** The value that `value` was once it has stayed for a moment. */
export function useSettled<T>(value: T, millis: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), millis);
    return () => clearTimeout(timer);
  }, [value, millis]);
  return settled;
}

/** The same now for one look at what was read. */
export function useNow(): number {
  const { turn } = useSession();
  return useMemo(() => Date.now(), [turn]);
}
